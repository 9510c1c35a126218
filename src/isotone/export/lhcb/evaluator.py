"""Evaluator: what LHCb's programs compute from a file, by NumPy and by a compiled C++ program.

Both are ours, made from a description of the format, and do the same operations in the same
order: without contraction of multiply-adds they have the same bits. `evaluator.cpp` reads the JSON
text on its own.
"""

from __future__ import annotations

import platform
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from isotone.arithmetic import ieee_arithmetic
from isotone.export.native.compiler import build, find_compiler
from isotone.frozen.lhcb import SigmaNet, Singles
from isotone.typing import Bools

SOURCE = Path(__file__).with_name("evaluator.cpp")
SEPARATE = ("-O2", "-ffp-contract=off")
CONTRACTED = (
    *("-O2", "-ffp-contract=fast"),
    *(["-mfma"] if platform.machine() in ("x86_64", "AMD64") else []),
)


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Responses, their sigmoids, and decisions, (n_rows,) each."""

    response: Singles
    sigmoid: Singles
    passes: Bools


@ieee_arithmetic()
def evaluate(net: SigmaNet, X: ArrayLike, clips: bool = False) -> Evaluated:
    """Evaluate rows (n_rows, n_features) with NumPy, without contraction.

    The sigmoid takes a correctly rounded exponential.
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        z = _prepare(net, np.asarray(X, np.float32).T, clips)
        h = z
        for k, (weight, bias) in enumerate(net.layers):
            h = h if k == 0 else _sort_pairs(h)
            h = _dot(weight, h) + bias[:, None]
        signs = np.zeros(len(z)) if net.monotonic_cst is None else net.monotonic_cst
        along = _dot(np.asarray(signs, np.float32)[None, :], z)
        response = (h + net.lipschitz * along)[0]
        sigmoid = np.float32(1) / (np.float32(1) + np.exp(-response.astype(float)).astype("f4"))
        sigmoid = np.where(np.isfinite(response), sigmoid, np.float32(0))
    cut = np.float32(np.inf) if net.cut is None else net.cut
    return Evaluated(response, sigmoid, sigmoid > cut)


def _prepare(net: SigmaNet, x: Singles, clips: bool) -> Singles:
    if net.low is None or net.high is None:
        return x
    low, high = net.low[:, None], net.high[:, None]
    if net.layout == "hlt2":
        return np.where(x < low, low, np.where(x > high, high, x))
    z = (x - low) / (high - low)
    return np.clip(z, np.float32(0), np.float32(1)) if clips else z


def _dot(weight: Singles, h: Singles) -> Singles:
    """Sums over the inputs in their order, from 0 on."""
    result = np.zeros((len(weight), h.shape[1]), np.float32)
    for j in range(weight.shape[1]):
        result += weight[:, j, None] * h[j]
    return result


def _sort_pairs(h: Singles) -> Singles:
    first, second = h[0::2], h[1::2]
    swap = first > second
    result = np.empty_like(h)
    result[0::2], result[1::2] = np.where(swap, second, first), np.where(swap, first, second)
    return result


@contextmanager
def compiled(options: Sequence[str] = SEPARATE, compiler: str | None = None) -> Iterator[Path]:
    """The C++ evaluator as a program, for as long as the context lasts."""
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "evaluator"
        build(SOURCE.read_text(encoding="utf-8"), program, options, compiler or find_compiler())
        yield program


def run(program: Path, file: Path, X: ArrayLike, clips: bool = False) -> Evaluated:
    """Evaluate rows with a file, by a program that `compiled` made."""
    command = [str(program), str(file), *(["--clip"] if clips else [])]
    data = np.ascontiguousarray(X, np.float32).tobytes()
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace")
        raise ValueError(f"the evaluator ended with status {done.returncode}: {said}")
    response, sigmoid, passes = np.frombuffer(done.stdout, np.float32).reshape(-1, 3).T
    return Evaluated(response, sigmoid, passes == 1)
