"""Outputs: what is explained, one number per row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from isotone.checks import check_count, suggest
from isotone.frozen.engine import Engine
from isotone.frozen.network import FrozenNetwork
from isotone.typing import Floats, Reals


@dataclass(frozen=True, eq=False)
class Output:
    """One number per row: the score, one of several scores, or the probability of a class.

    Directions are about these numbers, and where they hold to the last bit, they hold for these.

    Parameters
    ----------
    number : of the output, counted from 0
    """

    frozen: FrozenNetwork
    number: int

    @classmethod
    def of(cls, frozen: FrozenNetwork, name: str | int | None) -> Output:
        """The output of that name or number; of a single one there is no need to name it."""
        names = frozen.output_names
        if name is None and len(names) == 1:
            return cls(frozen, 0)
        if isinstance(name, str) and name in names:
            return cls(frozen, names.index(name))
        if isinstance(name, int) and check_count("output", name, least=0) < len(names):
            return cls(frozen, name)
        known = f"choose from {', '.join(names[:20])}"
        hint = suggest(name, names, known) if isinstance(name, str) else known
        raise ValueError(
            f"`output={name!r}` must name one of the {len(names)} outputs, because reasons are "
            f"for one at a time; {hint}"
        )

    @property
    def name(self) -> str:
        return self.frozen.about(self.number) if self.frozen.of_classes else "score"

    @property
    def is_additive(self) -> bool:
        """Whether it is an output of the network as it stands: a sum, if that is."""
        return not self.frozen.of_classes

    @cached_property
    def _engine(self) -> Engine:
        return Engine(self.frozen)

    def __call__(self, columns: list[Reals]) -> Floats:
        """Of encoded features, an array (n_rows,) each."""
        scores = self._engine.score_columns(columns)
        if self.frozen.of_classes:
            scores = self.frozen.to_probability(scores)
        found = scores if scores.ndim == 1 else scores[:, self.number]
        return np.asarray(found, np.float64)
