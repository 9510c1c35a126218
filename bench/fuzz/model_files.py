"""Fuzz all that reads model files: `python -m bench.fuzz.model_files --runs 100000`.

Question: is there a file that crashes loading, certifying, scoring or exporting, or whose
certificate holds while a computed score falls?
Method: Atheris chooses by coverage of the Python code, from drawn models on; a mutator that knows
the format changes numbers, shapes and texts, and makes checksums fit again. What must hold is
`examine` in `tests/hostile.py`; `make test` runs the corpus in `tests/fuzz` again.
Run time: 60 executions a second on a core that others used as well. Needs the package `atheris`.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bench.fuzz import corpus

_ROOT = Path(__file__).parents[2]
_FOLDER = _ROOT / "build" / "fuzz" / "files"
_WATCHED = ("isotone.certificate", "isotone.frozen", "isotone.inputs", "isotone.files.untrusted")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=0, help="at most; 0: as long as it takes")
    parser.add_argument("--keep", action="store_true", help="renew the corpus in tests/fuzz")
    options = parser.parse_args()
    sys.path.insert(0, str(_ROOT / "tests"))  # which have the models and what must hold
    warnings.simplefilter("ignore")
    atheris: Any = importlib.import_module("atheris")
    hostile: Any = importlib.import_module("hostile")
    mutants: Any = importlib.import_module("mutants")
    _start(importlib.import_module("candidates"))

    def mutate(raw: bytes, max_size: int, seed: int) -> bytes:
        try:
            found: bytes = mutants.mutate(raw, np.random.default_rng(seed))
        except Exception:  # not a file of this format any more
            found = atheris.Mutate(raw, max_size)
        return found[:max_size]

    words = [f"-runs={options.runs}", f"-max_total_time={options.seconds}", "-max_len=65536"]
    words += ["-print_final_stats=1", f"-artifact_prefix={_FOLDER.parent}/", str(_FOLDER)]
    if options.keep:
        print("the corpus is renewed from what earlier runs left in", _FOLDER)
        corpus.pack("model_files", _smallest(hostile))
        return
    _instrument(atheris)
    atheris.Setup([sys.argv[0], *words], hostile.examine, custom_mutator=mutate)
    atheris.Fuzz()


def _instrument(atheris: Any) -> None:
    """Let the functions that read and judge files tell which of their branches were taken."""
    modules = [name for name in sys.modules if name.startswith(_WATCHED)]
    for name in modules:
        for value in list(vars(sys.modules[name]).values()):
            for function in [value, *vars(value).values()] if inspect.isclass(value) else [value]:
                if inspect.isfunction(function) and function.__module__ == name:
                    atheris.instrument_func(function)


def _start(candidates: Any) -> None:
    """The inputs that everything begins with: one model of each kind, and the corpus."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    if (corpus.CORPORA / "model_files.zip").exists():
        corpus.unpack("model_files", _FOLDER)
    with tempfile.TemporaryDirectory() as name:
        for seed in range(24):
            path = Path(name) / f"{seed}.isotone"
            candidates.draw_model(seed).save(path)
            shutil.copy(path, _FOLDER / path.name)


def _smallest(hostile: Any) -> list[bytes]:
    """Of every way to end, by the first words of a refusal, the smallest file."""
    found: dict[str, bytes] = {}
    for path in sorted(_FOLDER.iterdir(), key=lambda file: file.stat().st_size):
        raw = path.read_bytes()
        found.setdefault(re.sub(r"[0-9'].*", "", hostile.examine(raw)), raw)
    return list(found.values())


if __name__ == "__main__":
    main()
