"""Claims: an exported file says what holds for its own arithmetic, and no more."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from bench.proofs import last_bit
from isotone import FrozenNetwork, Scaling, certify, export, freeze
from isotone.export.claim import Claim, claim
from isotone.export.onnx.model import Onnx
from isotone.frozen.steps import Dense
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Number
from networks import by_hand, every_step, small

TARGETS: dict[str, tuple[str, dict[str, Any]]] = {
    "json": ("json", {}),
    "onnx": ("onnx", {}),
    "onnx ordered": ("onnx", {"sums": "ordered"}),
    "onnx matmul": ("onnx", {"sums": "matmul"}),
    "onnx float32": ("onnx", {"precision": "float32"}),
    "onnx float32 ordered": ("onnx", {"precision": "float32", "sums": "ordered"}),
    "sqlite": ("sql", {}),
    "duckdb": ("sql", {"dialect": "duckdb"}),
    "torch": ("torch", {}),
    "cpp": ("cpp", {"name": "model"}),
    "cuda": ("cuda", {"name": "model"}),
}
REPEAT = {"json", "onnx", "onnx ordered", "sqlite", "duckdb", "cpp", "cuda"}
N_PAIRS = 4000


@cache
def adversary(logs: bool = False) -> FrozenNetwork:
    """Its exact score is nearly constant along constrained features: every rounding shows."""
    X = np.random.default_rng(0).lognormal(1, 2, (1000, 4))
    scaling = Scaling.fit(X, ["log", "standard", "robust", "log"]) if logs else None
    return freeze(last_bit.adversarial([4, 20, 20, 1], 0), scaling=scaling)


def one_ulp_apart(frozen: FrozenNetwork, dtype: Any, n: int) -> tuple[Any, Any]:
    """Rows, some on the edges of cells, and the same with feature 0 one step up."""
    rows = last_bit.base_rows(frozen, np.random.default_rng(0), n)
    low = np.clip(rows, -1e30, 1e30).astype(dtype)  # which float32 holds
    high = low.copy()
    high[:, 0] = np.nextafter(low[:, 0], dtype(np.inf))
    return low.astype(float), high.astype(float)


def stated(name: str, path: Path) -> dict[str, Any]:
    """The claim that a file carries."""
    found: Any
    if name.startswith("onnx"):
        about = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
        found = json.loads(about["isotone.certificate"])
    elif name == "json":
        found = json.loads(path.read_text())["certificate"]
    elif name in ("sqlite", "duckdb"):
        found = json.loads(path.read_text().split("/* isotone: ")[1].split(" */")[0])
        found = found["certificate"]
    elif name == "torch":
        extra = {"isotone.json": ""}
        torch.export.load(path, extra_files=extra)
        found = json.loads(extra["isotone.json"])["certificate"]
    else:
        text = next(path.glob("model.*")).read_text()
        lines = text.split("certificate[] =  // JSON\n")[1].split(";\n")[0].splitlines()
        found = json.loads("".join(line.strip()[1:-1] for line in lines).replace('\\"', '"'))
    return dict(found)


def written(name: str, frozen: FrozenNetwork, path: Path) -> Claim:
    target, options = TARGETS[name]
    return export.write(frozen, target, path, check=False, **options)


@pytest.mark.parametrize("name", TARGETS)
def test_the_file_carries_what_is_returned(name: str, tmp_path: Path) -> None:
    for frozen in (small(), by_hand(0.5, precision="float64", grid=None)):
        found = written(name, frozen, tmp_path / "model")
        assert stated(name, tmp_path / "model") == json.loads(json.dumps(found.to_dict()))


@pytest.mark.parametrize("name", TARGETS)
def test_a_network_is_certified_once_for_an_export(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certified: list[FrozenNetwork] = []
    monkeypatch.setattr(
        "isotone.export.claim.certify", lambda frozen: certified.append(frozen) or certify(frozen)
    )
    written(name, small(), tmp_path / "model")
    assert len(certified) == 1


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("logs", [False, True], ids=["plain", "logs"])
def test_what_claims_the_last_bit_never_falls(name: str, logs: bool, tmp_path: Path) -> None:
    """In one batch, in batches of three and one by one; the others fall, and say how far."""
    frozen, options = adversary(logs), TARGETS[name][1]
    found = written(name, frozen, tmp_path / "model")
    assert found.to_the_last_bit == (name in REPEAT)
    assert ("to the last bit" in found.guarantee) == found.to_the_last_bit
    dtype = np.float32 if options.get("precision") == "float32" else np.float64
    low, high = one_ulp_apart(frozen, dtype, N_PAIRS)
    score = scorer(name, frozen, tmp_path / "model")
    below = score(low)
    runs = {"together": score(high)}
    if name.startswith(("onnx", "torch")):  # what loads once and can be asked often
        runs["by three"] = np.concatenate([score(high[i : i + 3]) for i in range(0, 600, 3)])
        runs["alone"] = np.concatenate([score(high[i : i + 1]) for i in range(600)])
    falls = {how: float((below[: len(above)] - above).max()) for how, above in runs.items()}
    assert found.drop is not None
    assert max(falls.values()) <= found.drop
    if name in ("onnx float32", "onnx float32 ordered", "torch"):
        assert max(falls.values()) > 0  # the comparison can fail


def scorer(name: str, frozen: FrozenNetwork, path: Path) -> Any:
    """Scores by the file, loaded once."""
    target, options = TARGETS[name]
    if name.startswith("onnx"):
        session = onnxruntime.InferenceSession(path.read_bytes())
        dtype = options.get("precision", "float64")
        return lambda X: session.run(None, {"X": X.astype(dtype)})[0].astype(float)
    if name == "torch":
        module = torch.export.load(path).module()
        return lambda X: module(torch.from_numpy(X)).detach().numpy()
    return lambda X: np.ravel(export._target(target, options).score(frozen, path, X))


@pytest.mark.parametrize("name", TARGETS)
def test_the_bounds_that_are_stated_hold(name: str, tmp_path: Path) -> None:
    """`export.write` compares with `distance`; here `drop` follows from it."""
    frozen = small(precision="float32")
    found = written(name, frozen, tmp_path / "model")
    assert not found.to_the_last_bit
    assert found.holds
    repeats = name in {"json", "cpp", "cuda"}
    (distance,) = found.distance
    assert distance is not None
    assert found.drop == (certify(frozen).drop if repeats else 2 * distance)


@pytest.mark.parametrize("name", ["json", "cpp", "cuda"])
def test_float32_on_a_grid_carries_over_where_it_is_repeated(name: str, tmp_path: Path) -> None:
    frozen = freeze(
        last_bit.adversarial([4, 20, 20, 1], 0), precision="float32", clip=8.0, grid=2.0**-6
    )
    assert "to the last bit" in certify(frozen).guarantee
    assert written(name, frozen, tmp_path / name).to_the_last_bit
    X = last_bit.base_rows(frozen, np.random.default_rng(0), N_PAIRS) / 100
    higher = X.copy()
    higher[:, 0] += 10.0 ** np.random.default_rng(1).uniform(-9, 0, N_PAIRS)
    score = scorer(name, frozen, tmp_path / name)
    assert np.all(score(higher) >= score(X))
    assert not written("onnx", frozen, tmp_path / "x").to_the_last_bit
    assert not written("sqlite", frozen, tmp_path / "x").to_the_last_bit


@pytest.mark.parametrize("name", TARGETS)
def test_a_model_that_fails_claims_nothing(name: str, tmp_path: Path) -> None:
    found = written(name, by_hand(2.0), tmp_path / "model")
    assert not found.holds
    assert found.guarantee == "not claimed: a declared constraint of the model does not hold"
    assert (found.drop, found.to_the_last_bit) == (None, False)


def test_nothing_is_claimed_where_no_bound_is_known() -> None:
    """The offset is so large that a float32 logarithm tells nothing about the floor."""
    scaling = Scaling(*(np.array([v]) for v in (True, 1e9, 1e-3, 0.0, 1.0)))
    frozen = replace(by_hand(0.5), scaling=scaling)
    found = claim(export._target("onnx", {"precision": "float32"}), frozen)
    assert found.guarantee.startswith("not claimed: no bound on the rounding error is known")
    assert (found.holds, found.drop, found.distance) == (False, None, (None,))


def test_differences_of_logits_have_two_errors() -> None:
    frozen = every_step(3, outputs="logits")
    assert claim(export._target("torch", {}), frozen).drop is None  # no direction is declared
    steps = (Dense(np.full((3, 1), 0.1), np.zeros(3)),)  # products are rounded
    declared = replace(
        by_hand(0.5),
        steps=steps,
        residual=np.array([[1.0], [0.0], [0.0]]),
        monotonic_cst=np.array([[1], [0], [0]], np.int8),
        outputs="logits",
    )
    found = claim(export._target("torch", {}), declared)
    assert found.drop == 4 * max(d or 0.0 for d in found.distance)
    assert "their differences are monotone up to" in found.guarantee
    same = claim(export._target("json", {}), declared)
    assert same.guarantee == "computed differences of logits are monotone to the last bit"


def test_integers_of_64_bits_are_ordered_in_sqlite(tmp_path: Path) -> None:
    frozen = adversary()
    written("sqlite", frozen, tmp_path / "model.sql")
    values = np.sort(np.random.default_rng(0).integers(-1000, 1000, 500))
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE data (x0 INTEGER, x1 REAL, x2 REAL, x3 REAL)")
        rows = [(int(v), 0.1, 0.2, 0.3) for v in values]
        connection.executemany("INSERT INTO data VALUES (?, ?, ?, ?)", rows)
        scores = connection.execute((tmp_path / "model.sql").read_text()).fetchall()
    assert np.all(np.diff(np.ravel(scores)) >= 0)


def test_where_nothing_is_claimed_nothing_is_promised_about_missing_values() -> None:
    inputs = Inputs((Number("income", fill=0.0),))
    huge = replace(small((0, -1)), features=inputs.features, inputs=inputs)
    huge = replace(huge, residual=np.array([[0.0, -1e36]]))
    found = claim(Onnx(precision="float32"), huge)
    assert found.guarantee.startswith("not claimed")
    assert found.about_missing == "of income: nothing is promised"
