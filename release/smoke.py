"""What an installed wheel must do, with NumPy alone: `python release/smoke.py`.

It builds a model by hand, saves and loads it, certifies it, scores hostile rows with every
instruction set, writes exports, and runs the command line. Run it with the interpreter of an
environment into which the wheel was installed, outside a clone.
"""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import isotone
from isotone import Engine, FrozenNetwork, Scaling, export
from isotone.frozen import reference
from isotone.frozen.steps import Dense, Sort
from isotone.typing import Floats


def make_model() -> FrozenNetwork:
    """Two columns, eight units: g has slope at most 0.99, the residual 1."""
    rng = np.random.default_rng(0)
    first, last = rng.normal(size=(8, 2)), rng.normal(size=(1, 8))
    first *= 0.99 / np.abs(first).sum(axis=0)
    last /= np.abs(last).max()
    return FrozenNetwork(
        features=("income", "debt"),
        scaling=Scaling.fit(rows(), "standard"),
        steps=(Dense(first, rng.normal(size=8)), Sort(8), Dense(last, np.zeros(1))),
        residual=np.array([[1.0, -1.0]]),
        lipschitz=np.ones(2),
        monotonic_cst=np.array([[1, -1]]),
        outputs="logits",
    )


def rows() -> Floats:
    return np.random.default_rng(1).normal(size=(5000, 2)) * [10.0, 5.0] + [40.0, 15.0]


def hostile_rows() -> Floats:
    """Rows in pairs: the second has more income, by as little as possible and by a lot."""
    base = rows()
    more = base.copy()
    more[::2, 0] = np.nextafter(base[::2, 0], math.inf)
    more[1::2, 0] += 1e9
    return np.stack([base, more])


def check_scores(frozen: FrozenNetwork) -> None:
    less, more = hostile_rows()
    expected = reference.score(frozen, less)
    for isa in Engine.instruction_sets():
        engine = Engine(frozen, isa=isa)
        assert np.array_equal(engine(less), expected), isa
        assert np.all(engine(more) >= engine(less)), isa
    assert np.all(frozen.probability(more) >= frozen.probability(less))


def check_command_line(path: Path) -> None:
    for arguments in (["--help"], ["certify", str(path)], ["show", str(path)]):
        command = Path(sys.executable).with_name("isotone")
        subprocess.run([command, *arguments], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    assert importlib.util.find_spec("torch") is None, "the smoke test is one without torch"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.isotone"
        make_model().save(path)
        frozen = isotone.load(path)
        certificate = isotone.certify(frozen)
        assert certificate.holds
        assert "to the last bit" in certificate.guarantee
        check_scores(frozen)
        for target in ("json", "sql"):
            export.write(frozen, target, Path(folder) / f"model.{target}")
        check_command_line(path)
    sets = ", ".join(Engine.instruction_sets())
    print(f"isotone {isotone.__version__} on Python {sys.version.split()[0]}: all well ({sets})")


if __name__ == "__main__":
    main()
