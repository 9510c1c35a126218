"""Compiled: the engine that `cpp/bindings` makes, checked on import; all others take it from here.

Python and the engine exchange memory whose layout both must know. An engine of another version
could train and score without an error, and wrongly.
"""

from __future__ import annotations

__all__ = ["INTERFACE", "check_interface", "engine"]

INTERFACE = 3  # raise it here and in cpp/bindings/module.cpp when arguments or layouts change

try:
    from isotone import _engine as engine
except ImportError as error:  # pragma: no cover
    raise ImportError(
        f"isotone's compiled part cannot be loaded ({error}); it was not built or is for another "
        "Python: install isotone again with pip, which compiles it"
    ) from error


def check_interface(compiled: object) -> None:
    """Raise `ImportError` unless this is an engine that the Python beside it was written for."""
    found = getattr(compiled, "INTERFACE", "none")
    if found != INTERFACE:
        raise ImportError(
            f"isotone's compiled part has interface {found}, and its Python needs {INTERFACE}; "
            "they must be of one version: install isotone again with pip, which compiles it"
        )


check_interface(engine)
