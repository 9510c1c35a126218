"""torch: the score as a plain module, and as a `torch.export` program that needs no isotone.

Sums are matrix products and sorts are `torch.sort`, so the scores are within the rounding errors
of `FrozenNetwork.score`, not equal to it. Scaling, logarithm and activations are the same.

What the model does not know makes the score NaN; infinities are clamped like any large number.
"""

from __future__ import annotations

import io
import json
import math
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from isotone.export.claim import Arithmetic, Claim, SingleFile
from isotone.export.exactness import within
from isotone.export.formulas import activate, log, snap
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.program import Language
from isotone.frozen.steps import Dense, Members, Pointwise, Sort
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Column, Number, missing_code
from isotone.typing import Floats, Reals


@dataclass(frozen=True)
class Torch(SingleFile):
    """A `.pt2` file: ``torch.export.load(path).module()(X)`` with X in float64."""

    def content(self, frozen: FrozenNetwork, found: Claim) -> bytes:
        rows = torch.zeros(7, len(frozen.inputs.columns), dtype=torch.float64)
        batch = {0: torch.export.Dim("n_rows", min=1)}
        program = torch.export.export(to_module(frozen), (rows,), dynamic_shapes=(batch,))
        about = {"isotone.json": json.dumps(found.summary())}
        for node in program.graph.nodes:  # which hold paths of files on this machine
            node.meta.pop("stack_trace", None)
        content = io.BytesIO()
        torch.export.save(program, content, extra_files=about)
        return content.getvalue()

    def score(self, frozen: FrozenNetwork, path: Path, X: Floats) -> Reals:
        program = torch.export.load(io.BytesIO(path.read_bytes())).module()
        with torch.no_grad():
            scores: Reals = program(torch.from_numpy(X)).numpy()
        return scores

    def tolerance(self, frozen: FrozenNetwork) -> Floats:
        return within(frozen, frozen.precision)

    def arithmetic(self, frozen: FrozenNetwork) -> Arithmetic:
        words = f"{frozen.precision}, matrix products in any order"
        provided = "torch computes in IEEE arithmetic of this precision, as on a CPU"
        return Arithmetic(words, repeats=False, provided=provided)


def to_module(frozen: FrozenNetwork) -> nn.Module:
    """The score as a module of torch alone: float64 raw rows in, scores out.

    Categories are given as codes, their places among `categories`; NaN is a missing value. Where
    rare categories are pooled, any other number is the code of these, and of new ones. What the
    model does not know makes the score NaN.
    """
    return nn.Sequential(_Encoded(frozen.inputs), _Scaled(frozen), _Network(frozen))


class _Operators:
    """Numbers of `isotone.export.formulas` are tensors."""

    def let(self, x: Tensor) -> Tensor:
        return x

    def if_less(self, a: Tensor, b: float, yes: Tensor, no: Tensor) -> Tensor:
        return torch.where(a < b, yes, no)

    def maximum(self, a: Tensor, b: float) -> Tensor:
        return a.clamp(min=b)

    def minimum(self, a: Tensor, b: float) -> Tensor:
        return a.clamp(max=b)

    def rint(self, x: Tensor) -> Tensor:
        return torch.round(x)

    def frexp(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mantissa, exponent = torch.frexp(x)
        return mantissa, exponent.double()

    def ldexp(self, x: Tensor, k: Tensor) -> Tensor:
        # torch.ldexp takes a power, which need not be exact: this is 2^k by its bits
        return x * ((k.long() + 1023) << 52).view(torch.float64)


_OPERATORS = _Operators()


class _Encoded(nn.Module):
    """Features of numbers and codes."""

    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        self.inputs = inputs

    def forward(self, X: Tensor) -> Tensor:
        if self.inputs.is_plain:
            return X
        x = X.double()
        pairs = [_encode(column, x[:, i]) for i, column in enumerate(self.inputs.columns)]
        features = [feature for own, _ in pairs for feature in own]
        return torch.stack([*features, *(flag for _, flags in pairs for flag in flags)], dim=1)


def _encode(column: Column, code: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Features of a column, and the indicator of missing values if it has one."""
    missing, fill = code.isnan(), missing_code(column)
    filled = code if fill is None else torch.where(missing, fill, code)
    indicators = [] if column.fill is None else [missing.double()]
    if isinstance(column, Number):
        return [filled], indicators
    hits = [filled == k for k in range(len(column.categories))]
    known = reduce(torch.logical_or, hits, missing & (fill is not None))
    if isinstance(column, Category):
        if column.pooled:
            hits, known = [*hits, ~known], known | ~missing
        return [torch.where(known, hit.double(), math.nan) for hit in hits], indicators
    return [torch.where(known, filled, math.nan)], indicators


class _Scaled(nn.Module):
    """What enters the first step: scaled, clamped, on the grid; all copies of a feature."""

    log: Tensor
    offset: Tensor
    floor: Tensor
    center: Tensor
    factor: Tensor
    reach: Tensor
    sources: Tensor | None

    def __init__(self, frozen: FrozenNetwork) -> None:
        super().__init__()
        self.grid, self.precision = frozen.grid, frozen.precision
        scaling, copies = frozen.scaling, frozen.copies
        self.has_logs = bool(scaling.log.any())
        for name in ("log", "offset", "floor", "center", "factor"):
            self.register_buffer(name, torch.tensor(np.asarray(getattr(scaling, name))))
        sources = None if copies is None else torch.tensor(frozen.inputs.copies)
        self.register_buffer("sources", sources)
        reach = np.full(frozen.n_features, frozen.clip) if copies is None else copies.reach
        self.register_buffer("reach", torch.tensor(reach))

    def forward(self, X: Tensor) -> Tensor:
        x = X.double() if self.sources is None else X.double()[:, self.sources]
        if self.has_logs:
            v = torch.maximum(x + self.offset, self.floor)
            x = torch.where(self.log, log(_OPERATORS, v), x)
        u = torch.clamp((x - self.center) * self.factor, -self.reach, self.reach)
        if self.grid is not None:
            u = snap(_OPERATORS, u, self.grid)
        return u.float() if self.precision == "float32" else u


class _Network(nn.Module):
    """g + r · u of scaled rows."""

    residual: Tensor

    def __init__(self, frozen: FrozenNetwork) -> None:
        super().__init__()
        self.steps = nn.Sequential(*_Modules().run(frozen.steps, []))
        residual = frozen.residual.astype(frozen.precision)
        self.register_buffer("residual", torch.tensor(residual))

    def forward(self, u: Tensor) -> Tensor:
        scores: Tensor = self.steps(u) + u @ self.residual.T
        return scores[:, 0] if len(self.residual) == 1 else scores


class _Dense(nn.Module):
    weight: Tensor
    bias: Tensor

    def __init__(self, step: Dense) -> None:
        super().__init__()
        self.register_buffer("weight", torch.tensor(np.asarray(step.weight)))
        self.register_buffer("bias", torch.tensor(np.asarray(step.bias)))

    def forward(self, h: Tensor) -> Tensor:
        return nn.functional.linear(h, self.weight, self.bias)


class _Sort(nn.Module):
    def __init__(self, step: Sort) -> None:
        super().__init__()
        self.group_size = step.group_size

    def forward(self, h: Tensor) -> Tensor:
        groups = h.reshape(-1, h.shape[1] // self.group_size, self.group_size)
        return groups.sort(dim=2).values.flatten(1)


class _Pointwise(nn.Module):
    def __init__(self, step: Pointwise) -> None:
        super().__init__()
        self.step = step

    def forward(self, h: Tensor) -> Tensor:
        activated: Tensor = activate(_OPERATORS, self.step, h.double()).to(h.dtype)
        return activated


class _Members(nn.Module):
    def __init__(self, weights: tuple[float, ...], members: list[list[nn.Module]]) -> None:
        super().__init__()
        self.weights = weights
        self.members = nn.ModuleList(nn.Sequential(*modules) for modules in members)

    def forward(self, h: Tensor) -> Tensor:
        parts = [w * member(h) for w, member in zip(self.weights, self.members, strict=True)]
        total: Tensor = reduce(torch.add, parts)
        return total


class _Modules(Language[list[nn.Module]]):
    """The modules so far."""

    def dense(self, step: Dense, h: list[nn.Module]) -> list[nn.Module]:
        return [*h, _Dense(step)]

    def sort(self, step: Sort, h: list[nn.Module]) -> list[nn.Module]:
        return [*h, _Sort(step)]

    def pointwise(self, step: Pointwise, h: list[nn.Module]) -> list[nn.Module]:
        return [*h, _Pointwise(step)]

    def members(self, step: Members, h: list[nn.Module], copies: bool) -> list[nn.Module]:
        return [*h, _Members(step.weights, self.parts(step, [], copies))]
