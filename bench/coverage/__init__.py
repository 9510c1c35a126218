"""Coverage: which branches of the package, and of the shipped C++ header, some test takes."""
