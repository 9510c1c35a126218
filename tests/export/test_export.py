"""Exports: what is written scores as the model does, or the export says that it does not."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotone import FrozenNetwork, Scaling, export, freeze
from isotone.certificate.bounds import rounding_errors
from isotone.export import json as json_export
from isotone.export import parity
from isotone.export.claim import claim
from isotone.export.exactness import float32_shift, in_precision, within
from isotone.export.formulas import rounds
from isotone.export.json import Json
from isotone.frozen import reference
from isotone.frozen.activations import ACTIVATIONS
from isotone.frozen.steps import Dense, Pointwise, residual_block
from networks import by_hand, draw_network, every_step, small

CHOICES: list[tuple[str, dict[str, Any]]] = [
    ("json", {}),
    ("onnx", {"sums": "matmul"}),
    ("onnx", {"sums": "ordered"}),
    ("onnx", {"sort": "topk"}),
    ("onnx", {"precision": "float32"}),
    ("onnx", {"precision": "float64", "opset": 18}),
    ("sql", {"dialect": "sqlite"}),
    ("sql", {"dialect": "duckdb"}),
]


def bits(name: str, options: dict[str, Any]) -> bool:
    """Whether a float64 network is promised the same numbers."""
    wide = options.get("precision", "float64") == "float64"
    return name in ("json", "sql") or (wide and options.get("sums") != "matmul")


def check_scores(
    frozen: FrozenNetwork, name: str, options: dict[str, Any], path: Path, n_rows: int = 300
) -> None:
    """What is written scores as the reference in NumPy does: not as the export's own check says.

    Bits where those are promised. In float32 the engine, which the promise is about, may fuse
    products, so that both may be E off.
    """
    export.write(frozen, name, path, check=False, **options)
    target = export._target(name, options)
    X = target.admit(frozen, parity.check_rows(frozen, n_rows))
    with np.errstate(over="ignore", invalid="ignore"):
        expected = reference.score(frozen, X).astype(np.float64).reshape(len(X), -1)
    found = np.asarray(target.score(frozen, path, X), np.float64).reshape(len(X), -1)
    allowed = target.tolerance(frozen)
    if frozen.precision == "float32":
        allowed = allowed + 2 * rounding_errors(frozen)
    elif bits(name, options):
        assert np.all(allowed == 0)
    assert len(X) > n_rows
    assert np.all(np.isfinite(expected))
    assert np.all(np.abs(found - expected) <= allowed)


@pytest.mark.parametrize(("name", "options"), CHOICES, ids=str)
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_every_target_takes_every_step(
    name: str, options: dict[str, Any], precision: str, n_outputs: int, tmp_path: Path
) -> None:
    frozen = every_step(n_outputs, precision=precision, outputs="logits")
    check_scores(frozen, name, options, tmp_path / "model")
    target = export._target(name, options)
    promised = target.tolerance(frozen)
    assert np.all(promised == 0) == (bits(name, options) and precision == "float64") or (
        name == "json"
    )


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize(
    ("name", "options"),
    [("onnx", {"sums": "ordered"}), ("sql", {}), ("sql", {"dialect": "duckdb"})],
    ids=str,
)
def test_activations_have_the_same_bits(
    activation: str, name: str, options: dict[str, Any], tmp_path: Path
) -> None:
    check_scores(every_step(activation=activation, grid=None), name, options, tmp_path / "x")


def test_a_sigmoid_times_a_number_has_the_same_bits(tmp_path: Path) -> None:
    """ONNX Runtime would make c / y of (1 / y) · c."""
    blend = residual_block(1.0, 0.3125, (Pointwise("sigmoid"),))
    frozen = replace(by_hand(0.5), steps=(blend,))
    check_scores(frozen, "onnx", {"sums": "ordered"}, tmp_path / "x")


@pytest.mark.parametrize("seed", range(12))
def test_random_networks_can_be_exported(seed: int, tmp_path: Path) -> None:
    frozen = freeze(draw_network(seed, max_width=24, max_depth=4).network)
    for name, options in CHOICES:
        if options.get("precision") != "float32":  # which cannot hold all of their weights
            check_scores(frozen, name, options, tmp_path / "model", 100)


def test_a_file_of_another_model_is_noticed(tmp_path: Path) -> None:
    frozen, other = small(seed=0), small(seed=1)
    for name, options in CHOICES:
        target = export._target(name, options)
        target.write(other, tmp_path / "model")
        with pytest.raises(ValueError, match=r"does not score as the model does: \d+ of \d+ rows"):
            parity.compare(frozen, target, tmp_path / "model")
    assert (tmp_path / "model").exists()


def test_one_bit_is_noticed(tmp_path: Path) -> None:
    frozen = small()
    steps = list(frozen.steps)
    assert isinstance(steps[-1], Dense)
    bias = np.nextafter(steps[-1].bias, np.inf)
    Json().write(
        replace(frozen, steps=(*steps[:-1], Dense(steps[-1].weight, bias))), tmp_path / "x"
    )
    with pytest.raises(ValueError, match="differ by more than 0; output 0 is"):
        parity.compare(frozen, Json(), tmp_path / "x")


def test_check_rows_stand_on_every_edge() -> None:
    frozen = every_step()
    X = parity.check_rows(frozen, 100)
    assert np.all(np.isfinite(X))
    assert frozen.grid is not None
    with np.errstate(over="ignore"):
        x = frozen.scaling.transform(X)
    for i in range(frozen.n_features):
        assert {0.0, 5e-324, -5e-324, 1e300} <= set(X[:, i])
    for i in (0, 2):  # the logarithm of a double does not reach the clip
        assert np.any(x[:, i] > frozen.clip)
        assert np.any(x[:, i] < -frozen.clip)
        cells = x[np.abs(x[:, i]) < frozen.clip, i] / frozen.grid
        assert np.count_nonzero(np.abs(cells - np.floor(cells) - 0.5) < 1e-3) > 5
    above_floor = X[:, 1] + 0.5 - 1e-3
    near = above_floor[np.abs(above_floor) < 1e-15]
    assert near.min() < 0 < near.max()


def test_without_a_bound_nothing_is_called_checked(tmp_path: Path) -> None:
    frozen = by_hand(3e288, clip=2.0**64, grid=None)
    with pytest.raises(ValueError, match="was written but cannot be checked: no bound"):
        export.write(frozen, "onnx", tmp_path / "model.onnx", sums="matmul")
    export.write(frozen, "onnx", tmp_path / "model.onnx", check=False)
    export.write(frozen, "sql", tmp_path / "model.sql")
    scaling = Scaling(*(np.array([v]) for v in (True, 1e6, 1e-6, 0.0, 1.0)))
    frozen = replace(by_hand(0.5), scaling=scaling)
    with pytest.raises(ValueError, match="the offset of a logarithm are too large"):
        export.write(frozen, "onnx", tmp_path / "model.onnx", precision="float32")


def test_unknown_targets_options_and_models_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with pytest.raises(ValueError, match="`target='excel'` is unknown; choose from 'allen'"):
        export.write(small(), "excel", path)
    with pytest.raises(ValueError, match="`sort` is not an option of the target 'json'; it takes"):
        export.write(small(), "json", path, sort="topk")
    with pytest.raises(ValueError, match="not an option of the target 'sql'; it takes dialect"):
        export.write(small(), "sql", path, sort="topk")
    with pytest.raises(TypeError, match="exports a FrozenNetwork; got str: call"):
        export.write("model.isotone", "json", path)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`sort='bubble'` is unknown; choose from 'network'"):
        export.write(small(), "onnx", path, sort="bubble")
    with pytest.raises(ValueError, match=r"`dialect='oracle'` is unknown; choose from"):
        export.write(small(), "sql", path, dialect="oracle")
    assert not path.exists()


@pytest.mark.parametrize(
    ("package", "target", "options", "message"),
    [
        ("onnx", "onnx", {}, r"export to onnx needs onnx, .*pip install onnx onnxruntime, or pip"),
        ("onnxruntime", "onnx", {}, "check of the export to onnx needs onnxruntime.*--no-check"),
        (
            "duckdb",
            "sql",
            {"dialect": "duckdb"},
            "check of the export to sql needs duckdb.*pip install duckdb",
        ),
        ("torch", "torch", {}, r"export to torch needs torch.*'\.\[train\]'"),
    ],
)
def test_a_missing_package_is_named(
    package: str,
    target: str,
    options: dict[str, Any],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frozen = small()
    for module in (f"isotone.export.{export.TARGETS[target][0]}", "isotone.export.onnx.graph"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=message):
        export.write(frozen, target, tmp_path / "x", **options)


def test_rounds_sort_and_touch_a_unit_once() -> None:
    for size in (1, 2, 3, 5, 8, 20):
        values = np.random.default_rng(size).permutation(2 * size).reshape(2, size)
        found = values.ravel().copy()
        for pairs in rounds(size, 2 * size):
            units = [unit for pair in pairs for unit in pair]
            assert len(set(units)) == len(units)
            for i, j in pairs:
                found[i], found[j] = min(found[i], found[j]), max(found[i], found[j])
        assert np.array_equal(found, np.sort(values, axis=1).ravel())


class TestTolerance:
    def test_float32_is_within_the_bound_of_any_network(self, tmp_path: Path) -> None:
        """The bound is far from what happens, but not by orders of magnitude without reason."""
        frozen = every_step(activation="relu")
        promised = within(frozen, "float32", float32_shift(frozen))
        X = np.clip(parity.check_rows(frozen, 5000), -1e38, 1e38)
        export.write(frozen, "onnx", tmp_path / "x", precision="float32")
        found = export._target("onnx", {"precision": "float32"}).score(frozen, tmp_path / "x", X)
        assert 0 < np.abs(found - frozen.score(X)).max() < promised[0]

    def test_the_same_precision_is_twice_e(self) -> None:
        frozen = small()
        assert np.allclose(within(frozen, "float64"), 2 * rounding_errors(frozen), rtol=1e-12)
        assert in_precision(frozen, "float64") is frozen

    def test_numbers_that_float32_cannot_hold_are_refused(self, tmp_path: Path) -> None:
        scaling = Scaling(*(np.array([v]) for v in (False, 0.0, 1.0, 0.0, 1e-40)))
        with pytest.raises(ValueError, match="`factor` of the scaling is 1e-40, which float32"):
            export.write(
                replace(by_hand(0.5), scaling=scaling), "onnx", tmp_path / "x", precision="float32"
            )
        with pytest.raises(ValueError, match="a weight is 1e-42, which float32 cannot hold"):
            export.write(by_hand(1e-42), "onnx", tmp_path / "x", precision="float32")


class TestJson:
    @pytest.mark.parametrize("precision", ["float64", "float32"])
    def test_reading_back_gives_the_same_fingerprint(self, precision: str, tmp_path: Path) -> None:
        names = ("é", "background", "signal")
        frozen = every_step(
            3, precision=precision, outputs="logits", classes=names, provenance={"seed": 7}
        )
        export.write(frozen, "json", tmp_path / "model.json")
        again = json_export.read(tmp_path / "model.json")
        assert again.fingerprint == frozen.fingerprint
        assert again.provenance == frozen.provenance
        X = parity.check_rows(frozen, 100)
        assert again.score(X).tobytes() == frozen.score(X).tobytes()

    def test_every_kind_of_network_comes_back(self, tmp_path: Path) -> None:
        for seed in range(10):
            frozen = freeze(draw_network(seed, max_width=16, max_depth=3).network)
            Json().write(frozen, tmp_path / "x")
            assert json_export.read(tmp_path / "x").fingerprint == frozen.fingerprint

    def test_the_layout_is_the_documented_one(self, tmp_path: Path) -> None:
        export.write(small(), "json", tmp_path / "model.json")
        data = json.loads((tmp_path / "model.json").read_text())
        page = (Path(__file__).parents[2] / "docs/exports.md").read_text()
        for name in data:
            assert f'"{name}"' in page, name
        assert data["certificate"]["holds"] is True
        assert data["steps"][0]["kind"] == "dense"

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"version": 1}, "`version` 3; export it again"),
            ({"fingerprint": "0" * 64}, "states 000000000000…: it was altered"),
            ({"steps": [{"kind": "magic"}]}, "kind 'magic' is unknown"),
            ({"residual": "x"}, "could not convert"),
            ({"clip": -1.0}, "must be between"),
        ],
    )
    def test_what_is_no_export_is_refused(
        self, change: dict[str, Any], message: str, tmp_path: Path
    ) -> None:
        data = json_export.to_dict(small(), claim(Json(), small())) | change
        (tmp_path / "x").write_text(json.dumps(data))
        with pytest.raises(ValueError, match=message):
            json_export.read(tmp_path / "x")

    @pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, "3"])
    def test_other_text_is_refused(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "x").write_text(text)
        with pytest.raises(ValueError, match="is not a JSON export of a network"):
            json_export.read(tmp_path / "x")

    def test_an_entry_that_lacks_is_named(self, tmp_path: Path) -> None:
        data = json_export.to_dict(small(), claim(Json(), small()))
        del data["grid"]
        (tmp_path / "x").write_text(json.dumps(data))
        with pytest.raises(ValueError, match="lacks 'grid'"):
            json_export.read(tmp_path / "x")


def log_only(n: int) -> FrozenNetwork:
    """All features take the logarithm, some over nearly the whole range of doubles."""
    rng = np.random.default_rng(n)
    floor = np.array([1e-310, 1e-3, 1e300])[:n]
    zeros = np.zeros(n)
    return FrozenNetwork(
        features=tuple("abc"[:n]),
        scaling=Scaling(np.ones(n, bool), zeros, floor, zeros, np.full(n, 1e-3)),
        steps=(Dense(rng.normal(size=(1, n)), np.zeros(1)),),
        residual=np.ones((1, n)),
        lipschitz=np.full(n, 10.0),
        monotonic_cst=np.zeros((1, n), np.int8),
        grid=None,
    )


@pytest.mark.parametrize("n", [1, 3])
def test_logarithms_have_the_same_bits_from_subnormal_to_huge(n: int, tmp_path: Path) -> None:
    frozen = log_only(n)
    ways: list[tuple[str, dict[str, Any]]] = [
        ("onnx", {"sums": "ordered"}),
        ("sql", {}),
        ("sql", {"dialect": "duckdb"}),
    ]
    for name, options in ways:
        check_scores(frozen, name, options, tmp_path / "x")
