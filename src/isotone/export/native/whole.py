"""The steps of a network in fixed point as lines of integer C++."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isotone.certificate.widths import Whole, WholeNumbers
from isotone.compiled import engine
from isotone.export.native import source
from isotone.frozen.program import Language
from isotone.frozen.steps import Dense, Members, Pointwise, Sort
from isotone.typing import Reals

_LANES = "for (int i = 0; i < {n}; ++i)\n    for (int e = 0; e < n_lanes; ++e) {{"


def integers(numbers: Reals, exponent: int) -> str:
    """Numbers times 2^exponent, which are whole, as literals between braces."""
    whole = [whole_number(number, exponent) for number in np.ravel(numbers).tolist()]
    return source.braces(map(literal, whole), " " * 8)


def whole_number(number: float, exponent: int) -> int:
    numerator, denominator = number.as_integer_ratio()
    scaled, rest = divmod(numerator << max(exponent, 0), denominator << max(-exponent, 0))
    assert rest == 0
    return scaled


def literal(whole: int) -> str:
    return f"{whole}ll" if abs(whole) >= 2**31 else str(whole)


def _bits(width: int) -> int:
    return 32 if width <= 32 else 64


@dataclass(frozen=True)
class Array:
    """Units in an array of the function, of a given number of bits."""

    name: str
    whole: Whole
    bits: int

    @property
    def n(self) -> int:
        return len(self.whole.each)


class Code(Language[Array]):
    """Lines of C++ on arrays u, h0, h1, ..., each of which is written once."""

    def __init__(self) -> None:
        self.numbers = WholeNumbers("float64")
        self.functions: list[str] = []
        self.lines: list[str] = []
        self._sizes: set[int] = set()
        self._n_arrays = 0

    def dense(self, step: Dense, h: Array) -> Array:
        out = self._array(self.numbers.dense(step, h.whole))
        exponent = h.whole.exponent - out.whole.exponent
        weights = [whole_number(w, exponent) for w in step.weight.ravel().tolist()]
        width = max(abs(w) for w in weights).bit_length() + 1
        self.functions.append(
            _DENSE.format(
                name=out.name,
                shape=f"{h.n}, {out.n}",
                bits=_bits(width),
                weight=source.braces(map(literal, weights), " " * 8),
                bias=integers(step.bias, -out.whole.exponent),
                out=out.bits,
                input=h.bits,
            )
        )
        self.lines.append(f"dense_{out.name}<n_lanes>({h.name}, {out.name});")
        return out

    def sort(self, step: Sort, h: Array) -> Array:
        size, out = step.group_size, self._copy(h, self.numbers.sort(step, h.whole))
        if size not in self._sizes:
            self._sizes.add(size)
            self.functions.append(_sort_function(size))
        self.lines.append(
            f"for (int i = 0; i < {h.n}; i += {size}) sort_{size}<n_lanes>({out.name} + i);"
        )
        return out

    def pointwise(self, step: Pointwise, h: Array) -> Array:
        out = self._copy(h, self.numbers.pointwise(step, h.whole))
        finer = h.whole.exponent - out.whole.exponent
        kept = f"static_cast<int{out.bits}_t>({literal(1 << finer)}) * v"
        one = literal(1 << max(-out.whole.exponent, 0))
        slope = literal(whole_number(step.negative_slope, finer))
        activation = {
            "relu": "v < 0 ? 0 : v",
            "abs": "v < 0 ? -v : v",
            "hardtanh": f"clamp({kept}, static_cast<int{out.bits}_t>({one}))",
            "leaky_relu": f"v < 0 ? {slope} * v : {kept}",
        }[step.name]
        self.lines += [
            *_LANES.format(n=h.n).splitlines(),
            f"    const int{out.bits}_t v = {out.name}[i][e];",
            f"    {out.name}[i][e] = {activation};",
            "}",
        ]
        return out

    def members(self, step: Members, h: Array, copies: bool) -> Array:
        parts = self.parts(step, h, copies)
        whole = self.numbers.members(step, h.whole, copies)
        total = self._array(whole)
        for k, (weight, part) in enumerate(zip(step.weights, parts, strict=True)):
            factor = literal(whole_number(weight, part.whole.exponent - whole.exponent))
            term = f"static_cast<int{total.bits}_t>({factor}) * {part.name}[i][e]"
            self.lines += [
                *_LANES.format(n=total.n).splitlines(),
                f"    {total.name}[i][e] {'+=' if k else '='} {term};",
                "}",
            ]
        return total

    def _array(self, whole: Whole, bits: int | None = None) -> Array:
        array = Array(f"h{self._n_arrays}", whole, bits or _bits(whole.width))
        self._n_arrays += 1
        self.lines.append(f"int{array.bits}_t {array.name}[{array.n}][n_lanes];")
        return array

    def _copy(self, h: Array, whole: Whole) -> Array:
        """A copy that may be changed; compilers leave it out where nothing reads the units."""
        out = self._array(whole, max(h.bits, _bits(whole.width)))
        self.lines.append(f"copy<{h.n}, n_lanes>({h.name}, {out.name});")
        return out


def _sort_function(size: int) -> str:
    exchanges = [f"    exchange<n_lanes>(h[{i}], h[{j}]);" for i, j in engine.comparators(size)]
    head = [f"template <int n_lanes, class Int>\nvoid sort_{size}(Int (*h)[n_lanes]) {{"]
    return "\n".join([*head, *(exchanges or ["    (void)h;"]), "}"])


_DENSE = """template <int n_lanes>
void dense_{name}(const int{input}_t (*h)[n_lanes], int{out}_t (*out)[n_lanes]) {{
    static constexpr int{bits}_t weight[] = {weight};
    static constexpr int{out}_t bias[] = {bias};
    dense<{shape}, n_lanes>(weight, bias, h, out);
}}"""
