"""Limits: the largest networks and files, one table that every part of the package reads.

The loader, the certifier, the engine, the trainers, the exports and the command line refuse what
is beyond them before they begin. Within them, a model file that loads is certified in seconds, the
largest in about ten, and in less than a gigabyte of memory. `cpp/runtime/models.hpp` has the same
numbers.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """The largest count of something, and what to do about more.

    Examples
    --------
    >>> GROUP.check(1024)
    >>> GROUP.check(2048)
    Traceback (most recent call last):
    ...
    ValueError: 2048 units are sorted together; the limit is 1024: choose a smaller `group_size`
    """

    largest: int
    what: str
    advice: str

    def check(self, n: int) -> None:
        """Raise `ValueError` if `n` is larger."""
        if n > self.largest:
            raise ValueError(f"{n} {self.what}; the limit is {self.largest}: {self.advice}")


GROUP = Limit(1024, "units are sorted together", "choose a smaller `group_size`")
WIDTH = Limit(65536, "units are computed by one step", "use narrower layers")
MATRIX = Limit(2**24, "weights are in one step", "use narrower layers, or smaller images")
STEPS = Limit(
    1024,
    "steps are in the network (residual blocks and members count as one more)",
    "use fewer layers",
)
DEPTH = Limit(
    16,
    "residual blocks or members are nested in one another",
    "put residual blocks one after the other",
)
FEATURES = Limit(16384, "features are read", "leave some out")
OUTPUTS = Limit(4096, "outputs are computed", "split them among several networks")
SLOPES = Limit(2**19, "slopes, outputs times features, are certified", "use fewer of either")
WORK = Limit(2**27, "operations are needed for a row", "use fewer or narrower layers")
TENSORS = Limit(1024, "arrays are in the model", "use fewer layers")
BYTES = Limit(2**28, "bytes of numbers are in the model", "use narrower layers, or float32")
HEADER = Limit(2**22, "bytes of text are in the model", "shorten names and provenance")
NESTING = Limit(64, "lists and objects are nested in JSON", "flatten it")
TEXT = Limit(2**29, "bytes are in a JSON file", "keep the .isotone file instead")
SIGMA_NET = Limit(2**24, "bytes are in a file for Allen or HLT2", "use narrower layers")
JOINT = Limit(16, "joint directions are declared", "leave some out")
JOINT_VERDICTS = Limit(1024, "joint directions times outputs are judged", "leave some out")
JOINT_COLUMNS = Limit(64, "columns move in one joint direction", "leave some out")
EXPORT = Limit(2**22, "operations would be written out", "score with `isotone.Engine` instead")
NUMBER = 1e100  # the largest that is learned from; its square is far from overflow
