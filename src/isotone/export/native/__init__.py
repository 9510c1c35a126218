"""C++ and CUDA: headers with the numbers of a model."""
