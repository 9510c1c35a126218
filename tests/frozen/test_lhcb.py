"""Files of LHCb's trigger read as networks: what the evaluator computes, and nothing believed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotone
from isotone.certificate import bounds
from isotone.export.lhcb.evaluator import evaluate
from isotone.frozen.lhcb import parse
from isotone.frozen.network import FrozenNetwork
from sigma_nets import dump, foreign

RESCALED = {"rescale_min": [-1.0, 0.0, 2.0, 0.5], "rescale_max": [9.0, 8.0, 12.0, 30.5]}
FILES: dict[str, dict[str, Any]] = {
    "two-track": foreign(),
    "electron": foreign(sizes=(6, 12, 12, 12, 12, 1)),
    "muon": foreign(sizes=(5, 10, 10, 10, 10, 10, 1)),
    "one layer": foreign(sizes=(4, 1)),
    "rescaled": foreign(**RESCALED),
    "clamped": foreign("hlt2", (9, 32, 32, 1)),
}


def rows(n_features: int, n_rows: int = 2000) -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.uniform(-4.0, 14.0, (n_rows, n_features)).astype(np.float32)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_read_scores_as_the_evaluator_does(name: str, tmp_path: Path) -> None:
    """In another order of sums, so that both are within E of the exact function."""
    path = dump(tmp_path / "file.json", FILES[name])
    frozen, net = isotone.load(path), parse(FILES[name])
    X = rows(frozen.n_features)
    found = evaluate(net, X, clips=True).response.astype(np.float64)
    error = float(bounds.rounding_errors(frozen)[0])
    # what folding a box rounds is no more than what summing rounds
    allowed = 2 * error if net.low is None else 4 * error
    assert np.abs(frozen.score(X.astype(np.float64)) - found).max() <= allowed
    assert isotone.certify(frozen).holds


def test_what_is_read_is_described(tmp_path: Path) -> None:
    frozen = isotone.load(dump(tmp_path / "file.json", foreign()))
    assert frozen.shape == "4-20-20-1"
    assert (frozen.precision, frozen.grid, frozen.outputs) == ("float32", None, "logits")
    assert frozen.features == ("x0", "x1", "x2", "x3")
    assert frozen.monotonic_cst.tolist() == [[1, 1, 0, 1]]
    assert frozen.provenance["nominal_cut"] == float(np.float32(0.9569))
    assert frozen.clip == 1024.0
    named = isotone.load(tmp_path / "file.json", features=["a", "b", "c", "d"], clip=64.0)
    assert named.features == ("a", "b", "c", "d")
    assert named.clip == 64.0


@pytest.mark.parametrize(
    ("layout", "sizes"),
    [("allen", (4, 40, 1)), ("hlt2", (9, 130, 1)), ("hlt2", (9, *[8] * 8, 1))],
)
def test_a_network_beyond_the_buffers_is_read_with_a_warning(
    layout: str, sizes: tuple[int, ...], tmp_path: Path
) -> None:
    path = dump(tmp_path / "file.json", foreign(layout, sizes))
    with pytest.warns(UserWarning, match=f"the evaluator of {layout} has room for") as told:
        frozen = isotone.load(path)
    assert [warning.filename for warning in told] == [__file__]
    assert frozen.shape == "-".join(map(str, sizes))


def test_lambda_in_every_layer_and_again_in_the_wrapper_is_found_out(tmp_path: Path) -> None:
    """As public training code for HLT2 writes it."""
    data = foreign("hlt2", (9, 32, 32, 1), per_layer=2.0)
    certificate = isotone.certify(isotone.load(dump(tmp_path / "file.json", data)))
    assert not certificate.holds
    assert max(certificate.constants) > 2.0
    assert not any(verdict.real for verdict in certificate.verdicts)


def test_one_unit_in_the_last_place_above_lambda_is_found_out(tmp_path: Path) -> None:
    """Although λ and the weight are the same float32 number after their box is folded in."""
    rng, n_same = np.random.default_rng(0), 0
    for _ in range(40):
        lipschitz, width = np.float32(rng.uniform(1.9, 2.0)), np.float32(rng.uniform(1.0, 1.1))
        steeper = np.nextafter(lipschitz, np.float32(3.0))
        n_same += np.float32(float(lipschitz) * width) == np.float32(float(steeper) * width)
        data = {
            "variables_constraints": [[0.0, float(width)]],
            "sigmanet.nn.00.parametrizations.weight.original": [[-float(steeper)]],
            "sigmanet.nn.00.bias": [0.0],
            "sigmanet.sigma": [float(lipschitz)],
            "constraints": [1],
        }
        assert not isotone.certify(isotone.load(dump(tmp_path / "file.json", data))).holds
    assert n_same > 0


def test_a_file_that_says_it_is_certified_is_not_believed(tmp_path: Path) -> None:
    data = foreign(per_layer=2.0, isotone={"certificate": {"holds": True}, "features": [1, 2]})
    frozen = isotone.load(dump(tmp_path / "file.json", data))
    assert not isotone.certify(frozen).holds
    assert frozen.features == ("x0", "x1", "x2", "x3")


def test_clamps_are_clamps_and_ends_of_a_rescaling_clip(tmp_path: Path) -> None:
    for name in ("clamped", "rescaled"):
        frozen = isotone.load(dump(tmp_path / "file.json", FILES[name]))
        net = parse(FILES[name])
        assert net.high is not None
        X = net.high.astype(np.float64)[None, :]
        assert frozen.score(X + 100.0) == frozen.score(X)


def test_a_clamp_to_one_number_leaves_a_feature_without_effect(tmp_path: Path) -> None:
    data = foreign("hlt2", (2, 4, 1), variables_constraints=[[1.0, 1.0], [0.0, 3.0]])
    frozen = isotone.load(dump(tmp_path / "file.json", data))
    scores = frozen.score([[-5.0, 1.0], [1.0, 1.0], [80.0, 1.0]])
    assert len(set(scores.tolist())) == 1
    assert isotone.certify(frozen).holds


def test_layers_are_ordered_by_number_not_by_text(tmp_path: Path) -> None:
    data = foreign(sizes=(4, 6, 6, 1))
    moved = {
        key.replace(".1.", ".10.").replace(".0.", ".9."): value for key, value in data.items()
    }
    moved = {key.replace(".2.", ".11."): value for key, value in moved.items()}
    first = isotone.load(dump(tmp_path / "a.json", data))
    second = isotone.load(dump(tmp_path / "b.json", dict(reversed(moved.items()))))
    assert first.fingerprint == second.fingerprint


def test_a_file_of_hlt2_without_directions_needs_them(tmp_path: Path) -> None:
    data = foreign("hlt2", (2, 4, 1))
    del data["constraints"], data["nominal_cut"]
    path = dump(tmp_path / "file.json", data)
    with pytest.warns(UserWarning, match="has no `constraints`.*give `monotonic_cst`"):
        assert not isotone.load(path).monotonic_cst.any()
    frozen = isotone.load(path, monotonic_cst=[1, -1])
    assert frozen.monotonic_cst.tolist() == [[1, -1]]
    assert "nominal_cut" not in frozen.provenance
    assert isotone.certify(frozen).holds


WRONG: dict[str, tuple[Any, str]] = {
    "list": ([1, 2, 3, 4], "is not a model file"),
    "no layers": ({"sigmanet.sigma": [1.0], "nominal_cut": 0.5}, "it has no layers"),
    "both": (
        foreign() | {"sigmanet.nn.00.parametrizations.weight.original": [[1.0]]},
        "layers of both kinds",
    ),
    "isotone's": ({"format": "isotone-json"}, "isotone.export.json.read"),
    "no lambda": ({k: v for k, v in foreign().items() if "sigma" not in k[-5:]}, "lacks"),
    "no cut": ({k: v for k, v in foreign().items() if k != "nominal_cut"}, "'nominal_cut'"),
    "negative lambda": (foreign(**{"sigmanet.sigma": [-1.0]}), "must be a list of one positive"),
    "two lambdas": (foreign(**{"sigmanet.sigma": [1.0, 2.0]}), "a list of one positive number"),
    "text": (foreign(nominal_cut="0.9"), "`nominal_cut`: a list of numbers was expected"),
    "true": (foreign(constraints=[True, 1, 0, 1]), "`constraints`: a list of numbers"),
    "half": (foreign(constraints=[0.5, 1, 0, 1]), "numbers that are -1, 0 or 1"),
    "five": (foreign(n_features=5), "the first layer takes 4; they must agree"),
    "ragged": (foreign(**{"sigmanet.nn.1.weight": [[1.0], [1.0, 2.0]]}), "have the same length"),
    "empty": (foreign(**{"sigmanet.nn.1.weight": []}), "layer 1 needs a weight"),
    "numbers": (foreign(**{"sigmanet.nn.1.weight": [1.0, 2.0]}), "a list of rows of numbers"),
    "no bias": ({k: v for k, v in foreign().items() if k != "sigmanet.nn.1.bias"}, "needs a bias"),
    "huge": (foreign(**{"sigmanet.nn.2.bias": [1e39]}), "that float32 cannot hold; all must be"),
    "twice": (foreign(**{"other.1.weight": [[1.0]]}), "two layers have the number 1"),
    "shape": (foreign(**{"sigmanet.nn.2.weight": [[1.0]]}), "takes 1 inputs but gets 20"),
    "odd": (foreign(sizes=(4, 5, 1)), "groups of 2 does not divide 5"),
    "outputs": (foreign(sizes=(4, 6, 2)), "the last layer has 2 outputs"),
    "ends": (foreign(rescale_min=[0.0] * 4, rescale_max=[1.0] * 3), "a lower and a larger upper"),
    "turned": (foreign(rescale_min=[1.0] * 4, rescale_max=[0.0] * 4), "larger upper end"),
    "no number": (foreign(**{"sigmanet.nn.last.weight": [[1.0]]}), "is like that of a layer"),
    "below zero": (foreign(**{"sigmanet.nn.-1.bias": [1.0]}), "is like that of a layer"),
    "far": (foreign(**{"sigmanet.nn.1000000.weight": [[1.0]]}), "number of at most 6 digits"),
    "other digits": (foreign(**{"sigmanet.nn.\u0663.weight": [[1.0]]}), "is like that of a layer"),
    "one end": (foreign(rescale_min=[1.0] * 4), "`rescale_max`: a list of numbers"),
    "clamps": (foreign("hlt2", variables_constraints=[1.0]), "a list of \\[low, high\\]"),
    "wide": (
        foreign("hlt2", (2, 4, 1), variables_constraints=[[0.0, 3e38]] * 2),
        "a number times the width of its box is beyond float32",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_such_a_file_is_refused(name: str, tmp_path: Path) -> None:
    data, message = WRONG[name]
    path = dump(tmp_path / "file.json", data)
    with pytest.raises(ValueError, match=message):
        isotone.load(path)


@pytest.mark.parametrize("data", [[1, 2], "sigmanet", 0.5, None])
def test_a_network_is_an_object(data: Any) -> None:
    with pytest.raises(ValueError, match="an object with layers was expected; got "):
        parse(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "has the name 'a' twice"),
        ('{"a": NaN}', "NaN is not a number"),
        ('{"a":' + "[" * 100 + "]" * 100 + "}", "nested"),
        ('{"a":' + "[" * 100_000 + "]" * 100_000 + "}", "nested"),
        ('{"a": 1e999}', "too large for float64"),
        ('{"a": ', "is not a network for Allen or HLT2"),
        ("{", "is not a network for Allen or HLT2"),
    ],
)
def test_hostile_text_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        isotone.load(path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"features": ["a"]}, "has 1 names; the file has 4 features"),
        ({"monotonic_cst": [1, 1]}, r"has shape \(2,\); 4 features need \(4,\)"),
        ({"monotonic_cst": [1, 1, 1, 1]}, "is not what the file says"),
        ({"monotonic_cst": [1, 2, 1, 1]}, "must hold -1"),
        ({"clip": -1.0}, "`clip=-1.0` must be between"),
    ],
)
def test_what_is_given_must_fit_the_file(
    given: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = dump(tmp_path / "file.json", foreign())
    with pytest.raises(ValueError, match=message):
        isotone.load(path, **given)


def test_a_model_file_takes_none_of_it(tmp_path: Path) -> None:
    frozen = isotone.load(dump(tmp_path / "file.json", foreign()))
    frozen.save(tmp_path / "model.isotone")
    assert isotone.load(tmp_path / "model.isotone").fingerprint == frozen.fingerprint
    with pytest.raises(ValueError, match="`clip` is for JSON files of LHCb's trigger"):
        isotone.load(tmp_path / "model.isotone", clip=2.0)


@pytest.mark.parametrize("seed", range(60))
def test_no_change_of_a_file_gives_anything_but_a_network_or_a_value_error(
    seed: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(seed)
    text = bytearray(json.dumps(foreign(sizes=(4, 4, 1))).encode())
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(text)))
        text[place] = rng.choice(list(b'0123456789.-e[]{}",: x'))
    path = tmp_path / "file.json"
    path.write_bytes(text)
    try:
        frozen = isotone.load(path)
    except ValueError:
        return
    assert isinstance(frozen, FrozenNetwork)
    isotone.certify(frozen)
