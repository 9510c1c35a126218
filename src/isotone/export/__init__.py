"""Exports: one frozen network, many ways to run it, each checked against `FrozenNetwork.score`.

`write(frozen, "onnx", "model.onnx")` writes a file and then scores edge cases and random rows
with that file. Every target takes raw columns, has encodings, fills and the scaling inside, and
carries the fingerprint and what holds for its own arithmetic (`isotone.export.claim`). See
docs/exports.md for the layout of each.

===========  ===================================  =====================================
target       what is written                      promise, for a float64 network
===========  ===================================  =====================================
``json``     a documented text                    the same numbers after ``json.read``
``onnx``     a graph of standard operators        the same numbers; within 2E by matmul
``sql``      one SELECT, in three dialects        the same numbers
``torch``    a ``torch.export`` program           within 2E
``cpp``      a directory with two C++ headers     the same bits
``cpp-int``  a directory with an integer header   the same numbers; for fixed point only
``cuda``     a directory with a CUDA header       the same bits
``verilog``  a directory with a module            the same numbers; for fixed point only
``allen``    a JSON file of LHCb's first trigger  within a bound that the claim states
``hlt2``     a JSON file of LHCb's second one     within a bound that the claim states
===========  ===================================  =====================================
"""

from __future__ import annotations

import importlib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from isotone import limits
from isotone.arithmetic import ieee_arithmetic
from isotone.checks import check_choice
from isotone.export.claim import Claim, Target
from isotone.export.fpga.simulation import simulate as simulate
from isotone.export.parity import compare
from isotone.extras import lacking
from isotone.frozen.loading import check_network
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import work_of

# The module within this package and the class in it. Loaded on first use: each has its needs.
TARGETS = {
    "allen": ("lhcb.target", "Allen"),
    "cpp": ("native.cpp", "Cpp"),
    "cpp-int": ("native.integer", "CppInteger"),
    "cuda": ("native.cuda", "Cuda"),
    "hlt2": ("lhcb.target", "Hlt2"),
    "json": ("json", "Json"),
    "onnx": ("onnx.model", "Onnx"),
    "sql": ("sql.select", "Sql"),
    "torch": ("torch", "Torch"),
    "verilog": ("fpga.verilog", "Verilog"),
}


@ieee_arithmetic()
def write(
    frozen: FrozenNetwork, target: str, path: str | Path, *, check: bool = True, **options: Any
) -> Claim:
    """Export a network, and by default compare what was written with `FrozenNetwork.score`.

    Returns what is claimed of the file; it carries the same.

    Parameters
    ----------
    target : "allen", "cpp", "cpp-int", "cuda", "hlt2", "json", "onnx", "sql", "torch" or "verilog"
    path : the file to write; for "cpp", "cpp-int", "cuda" and "verilog" a directory
    check : score edge cases and random rows with the file; raises `ValueError` if a score is
        further from that of `frozen` than the target promises, and leaves the file there
    options : of the target, such as precision="float32" for "onnx"
    """
    check_network("`write` exports", frozen)
    limits.EXPORT.check(work_of(frozen.steps, frozen.n_features))
    chosen, path = _target(target, options), Path(path)
    try:
        found = chosen.write(frozen, path)
        if check:
            compare(frozen, chosen, path)
            found = replace(found, checked=chosen.check(frozen, path))
    except ModuleNotFoundError as error:
        raise _missing(target, error) from error
    return found


def _target(name: str, options: dict[str, Any]) -> Target:
    check_choice("target", name, sorted(TARGETS))
    try:
        module, kind_name = TARGETS[name]
        kind: Any = getattr(importlib.import_module(f"isotone.export.{module}"), kind_name)
    except ModuleNotFoundError as error:
        raise _missing(name, error) from error
    known = [field.name for field in fields(kind)]
    for option in options:
        if option not in known:
            raise ValueError(
                f"`{option}` is not an option of the target {name!r}; it takes "
                f"{', '.join(known) or 'none'}"
            )
    target: Target = kind(**options)
    return target


# The extra of a package that may be missing, and whether only the check needs it.
_EXTRAS = {
    "torch": ("train", False),
    "onnx": ("export", False),
    "onnxruntime": ("export", True),
    "duckdb": (None, True),
    "da4ml": ("fpga", False),
}


def _missing(target: str, error: ModuleNotFoundError) -> ImportError:
    package = (error.name or "").split(".")[0]
    if package not in _EXTRAS:
        return error
    extra, only_check = _EXTRAS[package]
    job = f"the {'check of the export' if only_check else 'export'} to {target}"
    advice = ", or leave the check out (check=False, --no-check)" if only_check else ""
    return ImportError(lacking(job, package, extra) + advice)
