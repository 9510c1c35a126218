"""Simulation of exported Verilog by Icarus Verilog or Verilator."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from isotone.typing import Integers

MANY = 1_000  # rows from which on compiling by Verilator pays


def find_simulator(n_rows: int) -> str:
    """iverilog for few rows and verilator for many, or the one that is there."""
    names = ("iverilog", "verilator") if n_rows < MANY else ("verilator", "iverilog")
    for name in names:
        if shutil.which(name):
            return name
    raise ValueError(
        "neither iverilog nor verilator was found, and the check simulates what was written; "
        "install one (Debian: apt-get install iverilog), or leave the check out (check=False, "
        "--no-check)"
    )


def simulate(
    path: Path,
    name: str,
    rows: Integers,
    widths: Sequence[int],
    n_outputs: int,
    simulator: str | None = None,
) -> Integers:
    """Scores (n_rows, n_outputs) of integer rows (n_rows, n_inputs) by the module in `path`.

    Parameters
    ----------
    widths : bits of an input and of a score
    """
    of_input, of_score = widths
    simulator = simulator or find_simulator(len(rows))
    files = [(path / f"{name}{suffix}.v").resolve() for suffix in ("", "_tb")]
    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory)
        (where / "rows.hex").write_text("\n".join(pack(rows, of_input)) + "\n")
        program = _BUILDERS[simulator](where, name, files)
        _run(program, where)
        lines = (where / "scores.hex").read_text().split()
    return unpack(lines[: len(rows)], of_score, n_outputs)


def pack(rows: Integers, width: int) -> list[str]:
    """Rows in hexadecimal, entry 0 in the lowest bits, each in two's complement."""
    mask = (1 << width) - 1
    return [
        f"{sum((n & mask) << (width * i) for i, n in enumerate(row)):x}" for row in rows.tolist()
    ]


def unpack(lines: Sequence[str], width: int, n: int) -> Integers:
    """The inverse of `pack`, for n entries in a line."""
    mask, half = (1 << width) - 1, 1 << (width - 1)
    return np.array(
        [
            [(((int(line, 16) >> (width * j)) & mask) ^ half) - half for j in range(n)]
            for line in lines
        ],
        np.int64,
    ).reshape(len(lines), n)


def _icarus(where: Path, name: str, files: Sequence[Path]) -> list[str]:
    _run(["iverilog", "-g2012", "-o", name, *map(str, files)], where)
    return [str(where / name)]


def _verilator(where: Path, name: str, files: Sequence[Path]) -> list[str]:
    options = ["--binary", "--timing", "-Wno-fatal", "-Wno-lint", "--top-module", f"{name}_tb"]
    _run(["verilator", *options, *map(str, files)], where)
    return [str(where / "obj_dir" / f"V{name}_tb")]


_BUILDERS: dict[str, Callable[[Path, str, Sequence[Path]], list[str]]] = {
    "iverilog": _icarus,
    "verilator": _verilator,
}


def _run(command: Sequence[str], where: Path) -> None:
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(f"{' '.join(command)} failed:\n{done.stderr or done.stdout}")
