"""Files for LHCb's evaluators: their decisions are the model's, and the claim is true of them."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotone
from isotone import FrozenNetwork, MonotonicNetwork, Scaling, export, freeze
from isotone.certificate import bounds
from isotone.export.lhcb.cut import Cut, sigmoid
from isotone.export.lhcb.decisions import disagreements
from isotone.export.lhcb.evaluator import (
    CONTRACTED,
    SEPARATE,
    SOURCE,
    compiled,
    evaluate,
    run,
)
from isotone.export.lhcb.fold import fold
from isotone.export.lhcb.target import Allen, Hlt2
from isotone.files.untrusted import read_json
from isotone.frozen.lhcb import parse
from isotone.typing import Floats
from networks import every_step, small
from programs import STRICT, need, on_x86
from sigma_nets import SHAPES, draw_pairs

CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("allen", {}, {}),
    ("allen", {}, {"rescale": "unit"}),
    ("allen", {"scaling": "standard"}, {}),
    ("allen", {"lipschitz": [2.0, 0.5, 1.0, 3.0], "scaling": "robust"}, {}),
    ("allen", {"lipschitz": [1e-3] * 4}, {}),
    ("allen", {"lipschitz": [1e3] * 4}, {}),
    ("hlt2", {}, {}),
    ("hlt2", {"steep": True}, {}),
    ("allen", {"precision": "float32"}, {"shift": True}),
]


WAYS: list[tuple[str, dict[str, Any]]] = [
    ("allen", {}),
    ("allen", {"rescale": "unit"}),
    ("hlt2", {}),
]


def write(frozen: FrozenNetwork, to: str, path: Path, **options: Any) -> Any:
    """An export without the programs that its check would compile."""
    options = {"threshold": 1.0, "reach": 64.0, **options}
    return export.write(frozen, to, path, check=False, **options)


def target_of(to: str, **options: Any) -> Any:
    options = {"threshold": 1.0, "reach": 64.0, **options}
    return Allen(**options) if to == "allen" else Hlt2(**options)


@pytest.mark.parametrize(("to", "drawn", "options"), CASES, ids=str)
def test_responses_and_decisions_are_those_of_the_model(
    to: str, drawn: dict[str, Any], options: dict[str, Any], tmp_path: Path
) -> None:
    frozen, X = draw_pairs(3, **drawn)
    score = frozen.score(X).astype(np.float64)
    threshold = float(np.quantile(score, 0.9))
    if not -80 < threshold < 10:
        options = options | {"shift": True}
    options = options | {"threshold": threshold}
    claim = write(frozen, to, tmp_path / "f.json", **options)
    about = read_json(tmp_path / "f.json")["isotone"]
    box = np.array(about["box"])
    assert np.array_equal(np.clip(X, box[:, 0], box[:, 1]), X)
    net = parse(read_json(tmp_path / "f.json"))
    found = evaluate(net, X)
    back = threshold if options.get("shift") else 0.0
    assert np.abs(found.response + back - score).max() <= claim.distance[0]
    n = disagreements(score, found.passes, threshold, about["undecided"], "NumPy")
    assert n <= 0.01 * len(X)
    export.parity.compare(frozen, target_of(to, **options), tmp_path / "f.json")


@pytest.mark.parametrize(("to", "drawn", "options"), CASES, ids=str)
def test_the_numbers_in_the_file_keep_every_direction(
    to: str, drawn: dict[str, Any], options: dict[str, Any], tmp_path: Path
) -> None:
    """Proved from the file alone: λ is at least the slope of g along every feature."""
    for seed in range(3):
        frozen, _ = draw_pairs(seed, **drawn)
        claim = write(frozen, to, tmp_path / "f.json", **options)
        net = parse(read_json(tmp_path / "f.json"))
        assert np.all(bounds.slopes(net.steps, net.n_features) <= float(net.lipschitz))
        again = isotone.certify(isotone.load(tmp_path / "f.json"))
        assert again.holds
        assert claim.holds
        assert claim.drop is not None
        assert not claim.to_the_last_bit


@pytest.mark.parametrize("to", ["allen", "hlt2"])
def test_the_evaluator_falls_along_a_rising_feature_by_less_than_is_claimed(
    to: str, tmp_path: Path
) -> None:
    """Float32 does fall, on the steepest networks; never by more than 2E."""
    worst = 0.0
    for seed in range(4):
        frozen, X = draw_pairs(seed, steep=True)
        claim = write(frozen, to, tmp_path / "f.json", reach=32.0)
        net = parse(read_json(tmp_path / "f.json"))
        for i in np.flatnonzero(frozen.monotonic_cst[0]):
            low, high = X.astype(np.float32), X.astype(np.float32)
            high[:, i] = np.nextafter(high[:, i], np.float32(np.inf))
            change = evaluate(net, high).response - evaluate(net, low).response
            worst = max(worst, float((-frozen.monotonic_cst[0, i] * change).max()))
            assert worst <= claim.drop
    assert worst > 0  # so that "to the last bit" would be wrong


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_cpp_has_the_bits_of_numpy_without_contraction_and_is_within_2e_with_it(
    compiler: str, tmp_path: Path
) -> None:
    need(compiler)
    with (
        compiled([*STRICT, *SEPARATE], compiler) as separate,
        compiled(CONTRACTED, compiler) as contracted,
    ):
        for shape, (to, options) in product(SHAPES.values(), WAYS):
            frozen, X = draw_pairs(1, tuple(shape))
            X = np.concatenate([X, -X, 1e-30 * X, 0.0 * X, -0.0 * X])
            drop = write(frozen, to, tmp_path / "f.json", **options).drop
            check_programs(separate, contracted, tmp_path / "f.json", X, drop)


def check_programs(separate: Path, contracted: Path, path: Path, X: Floats, drop: float) -> None:
    for clips in (False, True):
        expected = evaluate(parse(read_json(path)), X, clips)
        found = run(separate, path, X, clips)
        assert np.array_equal(found.response.view("u4"), expected.response.view("u4"))
        assert np.abs(found.sigmoid - expected.sigmoid).max() <= 2.0**-23
        other = run(contracted, path, X, clips).response
        assert np.abs(other - expected.response).max() <= drop


def test_contraction_changes_bits(tmp_path: Path) -> None:
    """Otherwise the comparison above would show nothing."""
    need("g++")
    if not on_x86():
        pytest.skip("other processors may have no such option")
    frozen, X = draw_pairs(1)
    write(frozen, "allen", tmp_path / "f.json")
    with compiled(CONTRACTED, "g++") as program:
        found = run(program, tmp_path / "f.json", X).response
    assert np.any(found != evaluate(parse(read_json(tmp_path / "f.json")), X).response)


def test_nvcc_takes_the_evaluator(tmp_path: Path) -> None:
    need("nvcc")
    source = tmp_path / "evaluator.cu"
    shutil.copy(SOURCE, source)
    command = ["nvcc", "-std=c++17", "-O1", str(source), "-o", str(tmp_path / "evaluator")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    frozen, X = draw_pairs(1)
    write(frozen, "allen", tmp_path / "f.json")
    found = run(tmp_path / "evaluator", tmp_path / "f.json", X).response
    expected = evaluate(parse(read_json(tmp_path / "f.json")), X).response
    assert np.abs(found - expected).max() <= 1e-3


def test_the_check_after_an_export_compares_decisions(tmp_path: Path) -> None:
    frozen, _ = draw_pairs(2)
    claim = export.write(frozen, "allen", tmp_path / "f.json", threshold=1.0, reach=32.0)
    assert "candidates are the model's, but for some of the" in claim.checked
    assert "0 by NumPy" in claim.checked
    assert "checked" not in read_json(tmp_path / "f.json")["isotone"]["certificate"]


def test_without_a_compiler_numpy_alone_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    frozen, _ = draw_pairs(2)
    claim = export.write(frozen, "hlt2", tmp_path / "f.json", threshold=1.0)
    assert "by NumPy" in claim.checked
    assert "C++" not in claim.checked


@pytest.mark.parametrize("to", ["allen", "hlt2"])
def test_a_file_with_another_cut_or_weight_is_caught(to: str, tmp_path: Path) -> None:
    frozen, _ = draw_pairs(2)
    path, target = tmp_path / "f.json", target_of(to)
    write(frozen, to, path)
    data = read_json(path)
    path.write_text(json.dumps(data | {"nominal_cut": 0.9}))
    with pytest.raises(ValueError, match=r"decisions are not those of the model.*do not use"):
        target.check(frozen, path)
    name = next(name for name in data if name.endswith("2.bias"))
    path.write_text(json.dumps(data | {name: [data[name][0] + 0.1]}))
    with pytest.raises(ValueError, match="does not score as the model does"):
        export.parity.compare(frozen, target, path)


def test_the_layout_of_a_file_for_allen(tmp_path: Path) -> None:
    frozen, _ = draw_pairs(0)
    write(frozen, "allen", tmp_path / "f.json", bare=True)
    data = read_json(tmp_path / "f.json")
    layers = [f"sigmanet.nn.{k}.{part}" for k in range(3) for part in ("weight", "bias")]
    rest = ["n_features", "sigmanet.sigma", "constraints", "nominal_cut"]
    assert sorted(data) == sorted([*layers, *rest])
    assert data["n_features"] == 4
    assert data["sigmanet.sigma"] == [2.0]
    assert data["constraints"] == frozen.monotonic_cst[0].tolist()
    assert np.shape(data["sigmanet.nn.0.weight"]) == (20, 4)
    write(frozen, "allen", tmp_path / "f.json", bare=True, rescale="unit")
    data = read_json(tmp_path / "f.json")
    assert data["rescale_min"] == [-64.0] * 4
    assert data["rescale_max"] == [64.0] * 4


@pytest.mark.parametrize(("reach", "in_box"), [(None, False), (1024.0, False), (64.0, True)])
def test_clamps_inside_those_of_the_model_are_provided_for(
    reach: float | None, in_box: bool, tmp_path: Path
) -> None:
    """Beyond a smaller box the evaluator of HLT2 clamps and the model does not."""
    frozen, _ = draw_pairs(lipschitz=2.0)
    claim = write(frozen, "hlt2", tmp_path / "f.json", reach=reach)
    assert ("raw inputs are in the box of the file" in claim.provided) == in_box
    far = np.full((1, 4), 900.0)
    moved = np.abs(
        evaluate(parse(read_json(tmp_path / "f.json")), far).response - frozen.score(far)
    )
    assert (moved[0] > claim.distance[0]) == in_box


def test_the_layout_of_a_file_for_hlt2(tmp_path: Path) -> None:
    frozen, _ = draw_pairs(0, scaling="identity")
    write(frozen, "hlt2", tmp_path / "f.json", reach=16.0)
    data = read_json(tmp_path / "f.json")
    assert next(iter(data)) == "variables_constraints"
    assert data["variables_constraints"] == [[-16.0, 16.0]] * 4
    assert np.shape(data["sigmanet.nn.02.parametrizations.weight.original"]) == (1, 20)
    assert len(data["sigmanet.nn.00.bias"]) == 20


def test_the_claim_stands_in_the_file_and_no_reader_takes_it_for_numbers(tmp_path: Path) -> None:
    """Readers look for parts of keys: none of them is in the one key that is ours."""
    frozen, _ = draw_pairs(0)
    claim = write(frozen, "allen", tmp_path / "f.json")
    data = read_json(tmp_path / "f.json")
    assert data["isotone"]["fingerprint"] == frozen.fingerprint
    assert data["isotone"]["certificate"] == json.loads(json.dumps(claim.to_dict()))
    for part in ("weight", "bias", "constraints", "rescale", "sigma", "features", "."):
        assert part not in "isotone"


def test_numbers_are_float32_whatever_reads_them(tmp_path: Path) -> None:
    frozen, _ = draw_pairs(0, scaling="standard")
    write(frozen, "allen", tmp_path / "f.json")
    data = read_json(tmp_path / "f.json")
    for name, value in data.items():
        if name != "isotone":
            flat = np.array(value, float).ravel()
            assert np.array_equal(flat, flat.astype(np.float32)), name


@pytest.mark.parametrize("to", ["allen", "hlt2"])
def test_there_and_back_the_network_is_the_same(to: str, tmp_path: Path) -> None:
    frozen, X = draw_pairs(4, features=["logfd", "sumpt", "chi2", "logip"])
    claim = write(frozen, to, tmp_path / "f.json")
    back = isotone.load(tmp_path / "f.json")
    assert back.features == frozen.features
    assert back.monotonic_cst.tolist() == frozen.monotonic_cst.tolist()
    assert back.provenance["exported from"] == frozen.fingerprint
    error = isotone.certify(back).rounding_errors[0]
    assert np.abs(back.score(X) - frozen.score(X)).max() <= claim.distance[0] + 3 * error
    again = write(back, to, tmp_path / "g.json", reach=None)
    assert again.holds
    first, second = (read_json(tmp_path / name) for name in ("f.json", "g.json"))
    assert first["nominal_cut"] == second["nominal_cut"]


# ---- the cut


@pytest.mark.parametrize("threshold", [-79.0, -20.0, -1.0, 0.0, 1e-30, 0.5, 3.1, 7.7, 12.0])
def test_float32_scores_pass_the_cut_as_they_pass_the_threshold(threshold: float) -> None:
    """But for those between `low` and `high`, which lie around the threshold."""
    cut = Cut.of(threshold)
    assert cut.low <= threshold <= cut.high
    near = np.float32(threshold) + np.linspace(-1, 1, 20001, dtype=np.float32)
    near = np.concatenate([near, np.linspace(cut.low - 1e-4, cut.high + 1e-4, 2001, dtype="f4")])
    with np.errstate(over="ignore"):
        found = np.float32(1) / (np.float32(1) + np.exp(-near)) > cut.value
    assert np.all(found[near >= cut.high])
    assert not np.any(found[near < cut.low])
    if abs(threshold) < 4:
        assert cut.high - cut.low < 2e-5


def test_a_threshold_passes_itself() -> None:
    for threshold in np.random.default_rng(0).uniform(-8, 8, 200):
        single = np.float32(threshold)
        single = single if single >= threshold else np.nextafter(single, np.float32(np.inf))
        assert np.float32(sigmoid(float(single))) > Cut.of(float(threshold)).value


@pytest.mark.parametrize("threshold", [16.0, 100.0, 1e30, 1e300])
def test_a_threshold_whose_sigmoid_is_one_is_refused(threshold: float, tmp_path: Path) -> None:
    frozen, _ = draw_pairs(0)
    with pytest.raises(ValueError, match="cannot tell from 1; it must: give shift=True"):
        write(frozen, "allen", tmp_path / "f.json", threshold=threshold)
    assert not (tmp_path / "f.json").exists()


def test_a_threshold_whose_sigmoid_is_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot tell from 0; it must"):
        Cut.of(-81.0)
    with pytest.raises(ValueError, match="`threshold=nan` must be a finite number"):
        Cut.of(float("nan"))


def test_a_shift_keeps_decisions_where_the_sigmoid_is_blind(tmp_path: Path) -> None:
    frozen, X = draw_pairs(0)
    score = frozen.score(X)
    threshold = float(np.quantile(score, 0.99))
    assert threshold > 16
    write(frozen, "allen", tmp_path / "f.json", threshold=threshold, shift=True)
    data = read_json(tmp_path / "f.json")
    assert data["nominal_cut"] == float(np.nextafter(np.float32(0.5), np.float32(0)))
    passes = evaluate(parse(data), X).passes
    assert disagreements(score, passes, threshold, data["isotone"]["undecided"], "x") == 0
    assert 0 < passes.sum() < 40


def test_a_file_needs_a_threshold(tmp_path: Path) -> None:
    frozen, _ = draw_pairs(0)
    with pytest.raises(ValueError, match="holds the cut of a trigger line; give the score"):
        write(frozen, "allen", tmp_path / "f.json", threshold=None)


# ---- what is refused


def pairs(layers: list[int], **options: Any) -> FrozenNetwork:
    signs = [1] * layers[0]
    options = {"group_size": 2, "lipschitz": 1.0, **options}
    return freeze(MonotonicNetwork(layers, monotonic_cst=signs, **options))


def linear(n_outputs: int) -> FrozenNetwork:
    """Every kind of step, without a logarithm before them."""
    frozen = every_step(n_outputs)
    return replace(frozen, scaling=Scaling.identity(frozen.n_features))


REFUSED: list[tuple[Any, str, str]] = [
    (lambda: pairs([3, 8, 1], group_size=None), "allen", "sort in groups of 8.*pairs sorted"),
    (lambda: pairs([3, 8, 1], group_size=4), "allen", "groups of 4.*`isotone train --for allen`"),
    (lambda: pairs([3, 34, 1]), "allen", "has 34 units in a layer; .* has room for 32"),
    (lambda: pairs([33, 2, 1]), "allen", "has 33 units in a layer; .* has room for 32"),
    (lambda: pairs([3, 130, 1]), "hlt2", "has 130 units in a layer; .* has room for 128"),
    (lambda: pairs([3, *[4] * 8, 1]), "hlt2", "has 9 layers; the evaluator of hlt2 has room for"),
    (lambda: linear(1), "allen", "the network is .*; the evaluator of allen has dense"),
    (lambda: linear(3), "allen", "has 3 outputs; the evaluator of allen computes one"),
    (small, "hlt2", "`isotone train --for hlt2`"),
]


@pytest.mark.parametrize(("make", "to", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_the_evaluator_cannot_compute_is_refused(
    make: Any, to: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        write(make(), to, tmp_path / "f.json", reach=None)


def test_a_logarithm_is_refused(tmp_path: Path) -> None:
    frozen, _ = draw_pairs(0, scaling="log")
    with pytest.raises(ValueError, match=r"takes the logarithm of \['x0'\]; .* scales linearly"):
        write(frozen, "allen", tmp_path / "f.json")


def test_a_residual_that_is_not_lambda_times_a_direction_is_refused(tmp_path: Path) -> None:
    frozen, _ = draw_pairs(0)
    bent = replace(frozen, monotonic_cst=np.zeros((1, 4)))
    with pytest.raises(ValueError, match="a residual along a column without a direction"):
        write(bent, "allen", tmp_path / "f.json")


@pytest.mark.parametrize("to", ["allen", "hlt2"])
def test_several_lambdas_need_a_rescaling(to: str, tmp_path: Path) -> None:
    frozen, _ = draw_pairs(0, lipschitz=[1.0, 2.0, 2.0, 2.0])
    options = {"rescale": "none"} if to == "allen" else {}
    with pytest.raises(ValueError, match="λ per raw unit is 1 along 'x0' and 2 along 'x1'; with"):
        write(frozen, to, tmp_path / "f.json", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reach": 2048.0}, "`reach=2048` must be positive and at most the clip of the model"),
        ({"reach": 0.0}, "`reach=0` must be positive"),
        ({"rescale": "some"}, "`rescale='some'`"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    frozen, _ = draw_pairs(0)
    with pytest.raises(ValueError, match=message):
        write(frozen, "allen", tmp_path / "f.json", **options)


def test_what_float32_cannot_hold_is_refused() -> None:
    frozen, _ = draw_pairs(0)
    large = replace(frozen, scaling=Scaling(*_scaled(center=np.full(4, 1e39))))
    with pytest.raises(ValueError, match="beyond float32"):
        fold(large, "allen", 64.0, "none")
    flat = replace(frozen, scaling=Scaling(*_scaled(center=np.full(4, 1e12))))
    with pytest.raises(ValueError, match="a width that float32 cannot tell from it"):
        fold(flat, "allen", 64.0, "unit")


def _scaled(center: Floats) -> tuple[Any, ...]:
    n = len(center)
    return np.zeros(n, bool), np.zeros(n), np.ones(n), center, np.ones(n)


# ---- extremes


@pytest.mark.parametrize(
    ("scale", "center"), [(1e-6, 0.0), (1.0, 0.0), (1e6, 0.0), (1.0, 1e5), (1e6, 1e5), (1.0, 1e6)]
)
def test_features_of_any_size_keep_the_claim(scale: float, center: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    network = MonotonicNetwork([3, 8, 8, 1], monotonic_cst=[1, -1, 0], group_size=2)
    X = (center + scale * rng.normal(size=(2000, 3))).astype(np.float32).astype(np.float64)
    scaling = Scaling.fit(X, "standard")
    frozen = freeze(network, scaling=scaling)
    claim = write(frozen, "allen", tmp_path / "f.json", reach=8.0, threshold=0.5)
    inside = np.abs(scaling.transform(X)).max(axis=1) <= 8.0
    found = evaluate(parse(read_json(tmp_path / "f.json")), X[inside])
    assert np.abs(found.response - frozen.score(X[inside])).max() <= claim.distance[0]


@pytest.mark.parametrize("seed", range(12))
def test_random_networks_keep_the_claim_to_the_ends_of_the_box(seed: int, tmp_path: Path) -> None:
    """All depths, λ from 10⁻⁶ to 10⁶ and by feature, biases and features of any size."""
    rng = np.random.default_rng(seed)
    n, depth = int(rng.integers(1, 9)), int(rng.integers(0, 6))
    layers = (n, *(2 * rng.integers(1, 17, depth)).tolist(), 1)
    spread = (10.0 ** rng.uniform(-3, 3, n)).tolist()
    lipschitz = spread if seed % 2 else 10.0 ** rng.uniform(-6, 6)
    frozen, X = draw_pairs(seed, layers, lipschitz, "standard", steep=seed % 3 == 0)
    scaling = frozen.scaling
    scale = 10.0 ** rng.uniform(-6, 6, n)
    large = Scaling(scaling.log, *_wide(scaling, scale))
    frozen, X = replace(frozen, scaling=large), (X * scale).astype(np.float32).astype(np.float64)
    threshold = float(np.quantile(frozen.score(X), 0.7))
    options = {"threshold": threshold, "shift": True, "reach": 16.0}
    claim = write(frozen, "allen", tmp_path / "f.json", **options)
    data = read_json(tmp_path / "f.json")
    low, high = np.array(data["isotone"]["box"]).T
    X = np.clip(X, low, high)
    X = np.where(rng.random(X.shape) < 0.2, high, X).astype(np.float32).astype(np.float64)
    score = frozen.score(X)
    for clips in (False, True):
        found = evaluate(parse(data), X, clips)
        distance = np.abs(found.response.astype(np.float64) + threshold - score).max()
        assert distance <= claim.distance[0]
        disagreements(score, found.passes, threshold, data["isotone"]["undecided"], "NumPy")
    assert isotone.certify(isotone.load(tmp_path / "f.json")).holds


def _wide(scaling: Scaling, scale: Floats) -> tuple[Floats, ...]:
    center, factor = scaling.center * scale, scaling.factor / scale
    return scaling.offset, scaling.floor, center, factor


def test_a_network_that_was_read_can_be_exported_elsewhere(tmp_path: Path) -> None:
    frozen, X = draw_pairs(0)
    write(frozen, "allen", tmp_path / "f.json")
    back = isotone.load(tmp_path / "f.json")
    export.write(back, "json", tmp_path / "g.json")
    export.write(back, "cpp", tmp_path / "g")
    assert len(back.score(X)) == len(X)


def test_zero_columns_and_a_single_layer(tmp_path: Path) -> None:
    frozen = pairs([3, 1])
    claim = write(frozen, "allen", tmp_path / "f.json")
    assert claim.holds
    zeroed, X = draw_pairs(0)
    steps = list(zeroed.steps)
    weight = steps[0].weight.copy()  # type: ignore[union-attr]
    weight[:, 0] = 0.0
    steps[0] = type(steps[0])(weight, steps[0].bias)  # type: ignore[call-arg, union-attr]
    zeroed = replace(zeroed, steps=tuple(steps))
    claim = write(zeroed, "hlt2", tmp_path / "f.json")
    found = evaluate(parse(read_json(tmp_path / "f.json")), X)
    assert np.abs(found.response - zeroed.score(X)).max() <= claim.distance[0]


def test_a_model_whose_certificate_fails_gets_a_file_without_a_claim(tmp_path: Path) -> None:
    frozen, _ = draw_pairs(0)
    bad = replace(frozen, lipschitz=np.full(4, 0.5), residual=frozen.residual * 0.25)
    claim = write(bad, "allen", tmp_path / "f.json")
    assert not claim.holds
    assert claim.guarantee.startswith("not claimed")


def test_a_response_that_is_no_number_fails(tmp_path: Path) -> None:
    need("g++")
    frozen, X = draw_pairs(0)
    write(frozen, "allen", tmp_path / "f.json", threshold=-50.0)
    X = X[:3].copy()
    X[0, 0], X[1, 1], X[2, 2] = np.nan, np.inf, 3e38
    with compiled(SEPARATE, "g++") as program:
        found = run(program, tmp_path / "f.json", X)
    assert not found.passes[:2].any()
    assert np.array_equal(found.passes, evaluate(parse(read_json(tmp_path / "f.json")), X).passes)


def test_the_evaluator_says_what_it_cannot_read(tmp_path: Path) -> None:
    need("g++")
    (tmp_path / "f.json").write_text("{}")
    with (
        compiled(SEPARATE, "g++") as program,
        pytest.raises(ValueError, match="weights and biases do not match"),
    ):
        run(program, tmp_path / "f.json", np.zeros((1, 4)))
