"""Decisions: those of a written file, by every evaluator at hand, against those of the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from isotone.export.lhcb.evaluator import (
    CONTRACTED,
    SEPARATE,
    Evaluated,
    compiled,
    evaluate,
    run,
)
from isotone.export.native.compiler import find_compiler
from isotone.export.parity import check_rows
from isotone.files.untrusted import read_json
from isotone.frozen.lhcb import parse
from isotone.frozen.network import FrozenNetwork
from isotone.typing import Bools, Floats

_N_ROWS = 10_000


def compare_decisions(
    frozen: FrozenNetwork,
    path: Path,
    threshold: float,
    undecided: float,
    admit: Callable[[Floats], Floats],
) -> str:
    """Decide about rows with a file and with the model; what was found, in words.

    Raises `ValueError` where they disagree about a score further than `undecided` from the
    threshold, or where C++ and NumPy differ without contraction.
    """
    X = admit(check_rows(frozen, _N_ROWS))
    score = frozen.score(X).astype(np.float64)
    found = evaluate_everywhere(path, X)
    differ = {
        who: disagreements(score, by.passes, threshold, undecided, f"{path}, by {who}")
        for who, by in found.items()
    }
    counts = ", ".join(f"{count} by {who}" for who, count in differ.items())
    n_close = np.count_nonzero(np.abs(score - threshold) <= undecided)
    return (
        f"those on {len(X):,} candidates are the model's, but for some of the {n_close} whose "
        f"score is within {undecided:.3g} of the threshold: {counts}"
    )


def evaluate_everywhere(path: Path, X: Floats) -> dict[str, Evaluated]:
    """Results by NumPy, and by C++ with and without contraction if there is a compiler."""
    net = parse(read_json(path))
    found = {"NumPy": evaluate(net, X)}
    try:
        compiler = find_compiler()
    except ValueError:
        return found
    for options in (SEPARATE, CONTRACTED):
        with compiled(options, compiler) as program:
            found[f"C++ with {options[1]}"] = run(program, path, X)
    separate = found[f"C++ with {SEPARATE[1]}"].response
    if not np.array_equal(separate, found["NumPy"].response, equal_nan=True):
        raise ValueError(
            f"{str(path)!r}: {compiler} and NumPy do not compute the same responses, and without "
            "contraction they must; name another compiler in $CXX, and report this"
        )
    return found


def disagreements(
    score: Floats, passes: Bools, threshold: float, undecided: float, who: str
) -> int:
    """How many decisions differ from score ≥ threshold, all of them close to it.

    Raises `ValueError` for one that is further away.
    """
    differ = passes != (score >= threshold)
    far = differ & (np.abs(score - threshold) > undecided)
    if np.any(far):
        worst = score[far][np.argmax(np.abs(score[far] - threshold))]
        raise ValueError(
            f"{who}: {np.count_nonzero(far)} of {len(score)} decisions are not those of the "
            f"model, such as for a score of {worst}; with the threshold {threshold} they must be "
            f"for all further than {undecided:.3g} from it: do not use the file, and report this "
            "with the model"
        )
    return int(np.count_nonzero(differ))
