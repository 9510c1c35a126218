"""Is the exported Verilog the model? A million rows by Verilator, and what the circuit takes.

Question: does the simulated module give the integers of the engine, on edge cases and a million
random rows? How many look-up tables, registers and clock cycles does it take?
Data: the paper's network 4-20-20-1, λ = 2, trained on two overlapping classes, with sorts of pairs
and of all units, in fixed point.
Claim: every score is equal.
Needs: da4ml, verilator, yosys. Areas are estimates: `synth_xilinx` of yosys for 7-series parts,
without placing and routing, and da4ml's own count of bits in adders and multiplexers.
Run time: about twenty minutes; ``--rows 1e4 --quick`` a few.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
import time
from itertools import product
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.proofs.last_bit import trained
from isotone import FrozenNetwork, certify, export, freeze
from isotone.typing import Integers

GROUP_SIZES = (2, None)
BITS = ((8, 6), (10, 8), (12, 10))
DEPTH = 4


def rows_of(frozen: FrozenNetwork, n_rows: int) -> Integers:
    """Corners of the box, what is near them and zero, and random rows."""
    largest = round(frozen.clip / (frozen.grid or 1.0))
    ends = (-largest, 1 - largest, -1, 0, 1, largest - 1, largest)
    edges = np.array(list(product(ends, repeat=frozen.n_features)))
    rng = np.random.default_rng(0)
    near = np.rint(rng.normal(scale=largest / 8, size=(n_rows, frozen.n_features)))
    return np.concatenate([edges, np.clip(near, -largest, largest)]).astype(np.int64)


def fact(path: Path, pattern: str) -> int:
    """A whole number that the module says of itself."""
    found = re.search(pattern, (path / f"{path.name}.v").read_text())
    assert found is not None
    return int(found[1])


def count_differences(frozen: FrozenNetwork, path: Path, rows: Integers) -> int:
    first, *_, last = certify(frozen).widths
    found = export.simulate(path, path.name, rows, [first, last], 1, "verilator")[:, 0]
    exponent = fact(path, r"scores of 2\^(-?\d+)")
    assert frozen.grid is not None
    return int(np.sum(np.ldexp(found.astype(float), exponent) != frozen.score(rows * frozen.grid)))


def synthesize(path: Path) -> tuple[int, int]:
    """Look-up tables and registers by yosys."""
    script = f"read_verilog {path / path.name}.v; synth_xilinx -flatten -top {path.name}; stat"
    done = subprocess.run(["yosys", "-p", script], capture_output=True, text=True, check=True)
    counts = re.findall(r"^ +(\w+) +(\d+)$", done.stdout.split("Number of cells:")[-1], re.M)
    tables = sum(int(n) for name, n in counts if re.fullmatch(r"LUT\d", name))
    return tables, sum(int(n) for name, n in counts if name.startswith("FD"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--quick", action="store_true", help="the narrowest networks only")
    arguments = parser.parse_args()
    table = Table(
        *("sort", "bits", "widths", "registers every", "cycles", "adders deep", "da4ml cost"),
        *("LUT", "FF", "rows", "differences"),
    )
    console = Console(width=140)
    for group_size, bits in product(GROUP_SIZES, BITS[:1] if arguments.quick else BITS):
        frozen = freeze(trained(0, group_size), precision="fixed", bits=bits, clip=8)
        widths = " ".join(map(str, certify(frozen).widths))
        for depth in (None, DEPTH):
            start = time.perf_counter()
            with tempfile.TemporaryDirectory() as directory:
                path = Path(directory) / "trigger"
                options = {"depth": depth} if depth else {}
                export.write(frozen, "verilog", path, check=False, **options)
                rows = rows_of(frozen, int(arguments.rows))
                wrong = count_differences(frozen, path, rows) if depth else None
                tables, registers = synthesize(path)
                patterns = r"(\d+) clock cycles", r"(\d+) adders deep", r"estimate (\d+)"
                cycles, deep, cost = (fact(path, pattern) for pattern in patterns)
            table.add_row(
                *("pairs" if group_size else "all", f"{bits[0]}, {bits[1]}", widths),
                *(str(depth or "–"), str(cycles), str(deep)),
                *(f"{cost:,}", f"{tables:,}", f"{registers:,}"),
                *((f"{len(rows):,}", str(wrong)) if depth else ("–", "–")),
            )
            console.print(table)
            console.print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
