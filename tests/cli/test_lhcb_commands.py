"""The commands with files of LHCb's trigger: written, shown, certified, scored."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import isotone
from isotone.cli import main
from isotone.export.lhcb.evaluator import evaluate
from isotone.files.untrusted import read_json
from isotone.frozen.lhcb import SigmaNet, parse
from isotone.rounding import digits_up
from sigma_nets import draw_pairs, dump, foreign

POINT = {"format": 1, "rule": ">=", "threshold": 1.25}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    frozen, _ = draw_pairs(0)
    frozen.save(tmp_path / "model.isotone")
    (tmp_path / "point.json").write_text(json.dumps(POINT | {"fingerprint": frozen.fingerprint}))
    return tmp_path / "model.isotone"


def command(*words: object) -> int | None:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    assert left.value.code is None or isinstance(left.value.code, int)
    return left.value.code


def test_export_prints_the_claim_and_the_decisions(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, point = model.with_name("f.json"), model.with_name("point.json")
    words = ["export", model, "--to", "allen", "--point", point, "--reach", 64, "--out", out]
    assert not command(*words)
    said = capsys.readouterr().out
    assert "decisions: those on" in said
    assert "guaranteed: computed responses are monotone up to" in said
    assert "decisions are those of score >= 1.25" in said
    assert read_json(out)["isotone"]["threshold"] == 1.25
    assert not command("show", out)
    assert "nominal_cut" in capsys.readouterr().out
    assert not command("certify", out)
    assert "HOLDS" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (POINT | {"fingerprint": "ab" * 32}, "was chosen for the model abababababab"),
        (POINT, "names no model"),
    ],
)
def test_a_threshold_of_another_model_is_refused(
    content: dict[str, object], message: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    point = dump(model.with_name("other.json"), content)
    out = model.with_name("f.json")
    assert command("export", model, "--to", "hlt2", "--point", point, "--out", out) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_foreign_file_is_certified_and_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = dump(tmp_path / "theirs.json", foreign(per_layer=2.0))
    assert command("certify", path) == 1
    assert "FAILS" in capsys.readouterr().out
    table = tmp_path / "table.csv"
    rows = np.random.default_rng(0).normal(size=(5, 4))
    np.savetxt(table, rows, delimiter=",", header="x0,x1,x2,x3", comments="")
    assert not command("score", path, table, "--out", tmp_path / "scores.csv")
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == 6


FAR = foreign("hlt2", (4, 8, 1), variables_constraints=[[99_990.0, 100_010.0]] * 4)
BOXES = {
    "clamped": FAR | {"constraints": [1, 1, 0, 1]},
    "rescaled": foreign(rescale_min=[9e4] * 4, rescale_max=[1e5] * 4),
    "plain": foreign(),
}


@pytest.mark.parametrize("name", BOXES)
def test_certify_tells_the_error_of_the_evaluator(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """E of the evaluator bounds what it computes, and is not that of isotone, far from zero."""
    path = dump(tmp_path / "theirs.json", BOXES[name])
    assert not command("certify", path, "--json")
    found = json.loads(capsys.readouterr().out)["evaluator"]
    net = parse(BOXES[name])
    low, high = (-1024.0, 1024.0) if net.low is None else (net.low, net.high)
    X = np.random.default_rng(0).uniform(low, high, (2000, 4)).astype(np.float32)
    clear = exact(net, X)
    off = np.abs(evaluate(net, X).response - clear).max()
    assert 0 < off <= found["rounding_error"]
    assert found["drop"] == 2 * found["rounding_error"]
    if name == "clamped":
        assert found["rounding_error"] != max(isotone.certify(isotone.load(path)).rounding_errors)
    assert not command("certify", path)
    said = " ".join(capsys.readouterr().out.split())
    assert f"guaranteed the evaluator of {net.layout} computes responses within E = " in said
    assert "in isotone a computed score is off by at most" in said
    assert f"; in the evaluator of {net.layout} E = {digits_up(found['rounding_error'])}" in said
    assert "are off by up to E, each arithmetic by its own." in said
    does_not = f"which the evaluator of {net.layout} does not do: nothing is claimed of it there"
    assert (does_not in said) == (name != "clamped")


def exact(net: SigmaNet, X: np.ndarray) -> np.ndarray:
    """The responses in float64, whose rounding is far below that of float32."""
    x = X.astype(np.float64).T
    if net.low is not None and net.layout == "allen":
        x = (x - net.low[:, None]) / net.width.astype(np.float64)[:, None]
    h = x
    for k, (weight, bias) in enumerate(net.layers):
        h = h if k == 0 else np.sort(h.reshape(-1, 2, h.shape[1]), axis=1).reshape(h.shape)
        h = weight.astype(np.float64) @ h + bias[:, None]
    response: np.ndarray = (h + net.residual @ x)[0]
    return response


def test_what_fails_claims_no_more_of_the_evaluator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = dump(tmp_path / "theirs.json", foreign(per_layer=2.0))
    assert command("certify", path, "--json") == 1
    found = json.loads(capsys.readouterr().out)["evaluator"]
    assert found["drop"] is None
    assert "monotone" not in found["guarantee"]


@pytest.mark.filterwarnings("default")
def test_nothing_is_claimed_of_an_evaluator_without_room(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = dump(tmp_path / "wide.json", foreign("allen", (4, 40, 1)))
    assert not command("certify", path)
    said, told = (" ".join(text.split()) for text in capsys.readouterr())
    excess = "has 40 units in a layer, but the evaluator of allen has room for 32"
    assert f"warning: the file {excess}: it cannot compute this network; train" in told
    assert "UserWarning" not in told
    assert f"evaluator nothing: the network {excess}. With larger buffers the evaluator" in said
    assert "guaranteed the evaluator" not in said
    assert not command("certify", path, "--json")
    found = json.loads(capsys.readouterr().out)["evaluator"]
    assert found["excess"] == excess.removeprefix("has ")
    assert found["guarantee"].startswith("nothing: ")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, 2.0, (400, 3))
    rows = np.column_stack([X, X[:, 0] > 3])
    path = tmp_path / "table.csv"
    np.savetxt(path, rows, delimiter=",", header="a,b,c,y", comments="")
    return path


@pytest.mark.parametrize("to", ["allen", "hlt2"])
def test_train_for_an_evaluator_gives_what_export_takes(
    to: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = table.with_name("m.isotone"), table.with_name("f.json")
    words = ["--target", "y", "--increasing", "a", "--lipschitz", 2, "--max-iter", 2]
    assert not command("train", table, *words, "--for", to, "--out", model)
    said = capsys.readouterr().out
    assert f"fits {to}: write it with isotone export --to {to}" in said
    assert "unscaled" in said
    words = ["--threshold", 0.5, "--reach", 64, "--out", out, "--no-check"]
    assert not command("export", model, "--to", to, *words)
    assert not command("certify", out)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "`lipschitz='auto'` does not fit; the evaluator of allen needs a known λ"),
        (["--lipschitz", 1, "--knots", 8], "has no knots"),
        (["--lipschitz", 1, "--n-members", 4], "computes one network"),
        (["--lipschitz", 1, "--group-size", "full"], "sorts pairs"),
        (["--lipschitz", 1, "--log", "a"], "`scaling='log'` does not fit"),
        (["--lipschitz", 1, "--hidden-layer-sizes", "40,40"], "at most 32"),
    ],
)
def test_train_for_an_evaluator_refuses_what_does_not_fit(
    words: list[object], message: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = table.with_name("m.isotone")
    assert command("train", table, "--target", "y", *words, "--for", "allen", "--out", out) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not out.exists()
