"""Signed weights: what is learned agrees with the truth that sWeights stand for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from isotone import MonotonicClassifier, MonotonicRegressor, cli
from isotone.cli.table.judging import signed_auc
from isotone.estimators.preparation.observations import with_groups
from isotone.estimators.preparation.signed import mean_weights
from isotone.training.rows import Rows
from isotone.typing import Floats

QUICK: dict[str, Any] = {"lipschitz": 3.0, "knots": None, "n_members": 1, "max_iter": 30}
QUICK |= {"hidden_layer_sizes": (16, 16), "random_state": 0}
SHARE = 0.4  # of signal in the mass distribution


def normal(x: Floats, mean: float, width: float) -> Floats:
    density: Floats = np.exp(-0.5 * ((x - mean) / width) ** 2) / (width * np.sqrt(2 * np.pi))
    return density


def mixture(n: int, seed: int) -> tuple[Floats, Floats]:
    """A feature of signal and background, and the sWeights of signal from their masses.

    With densities f of the mass and their covariance V, w = Σ_k V_sk f_k / Σ_k N_k f_k.
    """
    rng = np.random.default_rng(seed)
    is_signal = rng.random(n) < SHARE
    mass = np.where(is_signal, rng.normal(0.0, 0.5, n), rng.uniform(-4.0, 4.0, n))
    x = np.where(is_signal, rng.normal(0.8, 1.0, n), rng.normal(-0.8, 1.2, n))
    f = np.stack([normal(mass, 0.0, 0.5), np.full(n, 1 / 8)])
    total = n * np.array([SHARE, 1 - SHARE]) @ f
    covariance = np.linalg.inv(f / total @ (f / total).T)
    return x, (covariance @ f / total)[0]


N, N_OTHER = 6000, 2500
FEATURE, S_WEIGHT = mixture(N, seed=1)
OTHER = np.random.default_rng(2).normal(-0.8, 1.2, N_OTHER)
X = np.concatenate([FEATURE, OTHER])[:, None]
Y = np.repeat([1, 0], [N, N_OTHER])
WEIGHT = np.concatenate([S_WEIGHT, np.ones(N_OTHER)])
GRID = np.linspace(-2.5, 2.5, 41)[:, None]


def truth() -> Floats:
    """Probability of signal, as often as the weights say, rather than of the other sample."""
    signal = S_WEIGHT.sum() * normal(GRID[:, 0], 0.8, 1.0)
    return signal / (signal + N_OTHER * normal(GRID[:, 0], -0.8, 1.2))


def test_the_learned_probability_is_that_of_the_signal_behind_the_weights() -> None:
    assert (S_WEIGHT < 0).mean() > 0.4
    model = MonotonicClassifier([1], signed_weights=True, **QUICK).fit(X, Y, WEIGHT)
    error = np.abs(model.predict_proba(GRID)[:, 1] - truth())
    assert error.max() < 0.1
    assert error.mean() < 0.035
    # what cutting weights off at zero would give
    cut = MonotonicClassifier([1], **QUICK).fit(X, Y, np.maximum(WEIGHT, 0.0))
    assert np.abs(cut.predict_proba(GRID)[:, 1] - truth()).mean() > 0.08
    assert model.certificate_.holds


def test_a_regression_follows_the_weighted_rows() -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(-1.0, 1.0, 4000)
    kind = rng.random(4000) < 0.5
    y = np.where(kind, x, -1.0) + 0.1 * rng.normal(size=4000)
    weight = np.where(kind, np.where(rng.random(4000) < 0.7, 2.0, -1.0), 0.02)
    model = MonotonicRegressor([1], signed_weights=True, **QUICK).fit(x[:, None], y, weight)
    grid = np.linspace(-0.8, 0.8, 17)
    assert np.abs(model.predict(grid[:, None]) - grid).mean() < 0.12


def rows(groups: Any = None) -> Rows:
    raw = Rows(X, Y[:, None].astype(float), WEIGHT)
    return with_groups(raw, groups)


def test_means_are_not_negative_and_classes_keep_their_totals() -> None:
    mean = mean_weights(rows(), Y)
    assert mean.min() >= 0
    for k in (0, 1):
        assert mean[k == Y].sum() == pytest.approx(WEIGHT[k == Y].sum())
    assert np.array_equal(mean[Y == 0], WEIGHT[Y == 0])  # which has no negative weight
    density = SHARE * normal(FEATURE, 0.8, 1.0)
    expected = density / (density + (1 - SHARE) * normal(FEATURE, -0.8, 1.2))
    assert np.abs(mean[Y == 1] - expected).mean() < 0.06


def test_the_order_of_the_rows_changes_no_bit() -> None:
    order = np.random.default_rng(4).permutation(len(X))
    shuffled = Rows(X[order], Y[order, None].astype(float), WEIGHT[order])
    assert np.array_equal(mean_weights(shuffled, Y[order]), mean_weights(rows(), Y)[order])


def test_positive_weights_are_left_alone() -> None:
    positive = Rows(X, Y[:, None], np.abs(WEIGHT))
    assert np.array_equal(mean_weights(positive, Y), np.abs(WEIGHT))
    words: dict[str, Any] = QUICK | {"max_iter": 1}
    fits = [
        MonotonicClassifier(signed_weights=signed, **words).fit(X, Y, np.abs(WEIGHT))
        for signed in (False, True)
    ]
    assert fits[0].network_.fingerprint == fits[1].network_.fingerprint


def test_a_row_is_not_predicted_by_its_own_group() -> None:
    group = np.arange(len(X)) // 2
    assert not np.array_equal(mean_weights(rows(group), Y), mean_weights(rows(), Y))


def test_few_rows_share_one_mean() -> None:
    few = Rows(np.arange(6.0)[:, None], np.zeros((6, 1)), np.array([3.0, -1, 2, 1, 1, 0]))
    assert mean_weights(few, np.zeros(6, np.intp)).tolist() == [1.0] * 6


def test_a_class_needs_a_positive_total() -> None:
    weight = np.where(Y == 1, -0.5, 1.0)
    with pytest.raises(ValueError, match="the weights of class 1 add up to -3000; their total"):
        MonotonicClassifier(signed_weights=True, **QUICK).fit(X, Y, weight)
    with pytest.raises(ValueError, match="the weights of all rows add up to -"):
        MonotonicRegressor(signed_weights=True, **QUICK).fit(X, X[:, 0], weight - 1.0)


def test_who_did_not_ask_is_told_how() -> None:
    message = r"Negative values in `sample_weight`: -0\.\d+ in row \d+ \(.*signed_weights=True"
    with pytest.raises(ValueError, match=message):
        MonotonicClassifier(**QUICK).fit(X, Y, WEIGHT)
    with pytest.raises(ValueError, match=r"`signed_weights='yes'` is unknown; choose from True"):
        MonotonicClassifier(signed_weights="yes", **QUICK).fit(X, Y)  # type: ignore[arg-type]


def test_a_weighted_area_is_that_of_all_pairs() -> None:
    rng = np.random.default_rng(5)
    score, weight = rng.integers(0, 5, 40).astype(float), rng.normal(0.5, 1.0, 40)
    second = rng.random(40) < 0.5
    wins = np.greater.outer(score[second], score[~second]) + 0.5 * np.equal.outer(
        score[second], score[~second]
    )
    pairs = np.multiply.outer(weight[second], weight[~second])
    assert signed_auc(second, score, weight) == pytest.approx((wins * pairs).sum() / pairs.sum())


# The command


@pytest.fixture
def table(tmp_path: Path) -> Path:
    content = {"x": X[:, 0], "y": Y, "sw": WEIGHT}
    pa.parquet.write_table(pa.table(content), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def run(table: Path, words: str) -> int:
    command = f"--target y --features x --weights sw --lipschitz 3 --max-iter 2 {words}"
    with pytest.raises(SystemExit) as exit_:
        cli.main(["train", str(table), *command.split(), "--out", str(table.parent / "out")])
    return int(exit_.value.code or 0)


def test_the_command_learns_from_signed_weights(table: Path) -> None:
    assert run(table, "--signed-weights") == 0
    metrics = json.loads((table.parent / "out" / "metrics.json").read_text())
    assert metrics["validation rows"] == len(X) // 5
    assert 0.75 < metrics["AUC"] < 0.95


def test_the_command_tells_who_did_not_ask(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(table, "") == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "`--weights sw` is -0." in error
    assert "or add `--signed-weights` if negative weights are intended" in error


def test_a_stream_has_signed_weights(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isotone.data.survey.SMALL_ROWS", 100)
    (table.parent / "d").mkdir()
    table.rename(table.parent / "d" / "t.parquet")
    assert run(table.parent / "d", "--signed-weights") == 0
