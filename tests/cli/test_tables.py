"""Several tables in one command: signal and background apart, patterns, trees of candidates."""

from __future__ import annotations

import json
from pathlib import Path

import awkward as ak
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import uproot

import isotone
from isotone import cli
from isotone.trigger.candidates import read_candidates

QUICK = "--max-iter 3 --n-members 1 --hidden-layer-sizes 8,8 --lipschitz 2 --knots none"
N = 150


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as exit_:
        cli.main([part for word in words for part in str(word).split(" ")])
    return int(exit_.value.code or 0)


def events(seed: int, shift: float) -> dict[str, object]:
    """Events of up to three candidates, each with a transverse momentum."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, N)
    pt = rng.exponential(1.0, counts.sum()) + shift
    return {
        "run": rng.integers(1, 3, N).astype(np.int32),
        "event": np.arange(N, dtype=np.uint64) + 2**62,
        "n_pv": rng.integers(1, 6, N).astype(np.int16),
        "pt": ak.unflatten(pt, counts),
        "w": rng.uniform(0.5, 1.5, N),
    }


def write(path: Path, content: dict[str, object], tree: str = "Hlt/Tree") -> None:
    kinds = {
        name: "var * float64" if isinstance(column, ak.Array) else column.dtype  # type: ignore[attr-defined]
        for name, column in content.items()
    }
    with uproot.recreate(path) as file:
        file.mktree(tree, kinds).extend(content)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "signal.root", events(0, 1.0))
    for i in (1, 2):
        write(tmp_path / f"background{i}.root", events(i, 0.0))
    return tmp_path


def n_candidates(*seeds: int) -> int:
    return sum(len(ak.flatten(events(seed, 0.0)["pt"])) for seed in seeds)


APART = "--signal signal.root:Hlt/Tree --background background*.root:Hlt/Tree"


def train(*words: object) -> int:
    return run("train", APART, "--features pt,n_pv --increasing pt --out m.isotone", *words, QUICK)


def test_the_file_tells_the_class(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train() == 0
    assert "probability of signal = 1, rather than 0" in capsys.readouterr().out
    model = isotone.load("m.isotone")
    stated = model.provenance
    assert stated["target"] == "signal"
    assert stated["table"] == (
        "signal.root:Hlt/Tree, background1.root:Hlt/Tree, background2.root:Hlt/Tree"
    )
    n_rows = n_candidates(0, 1, 2)
    assert stated["rows"] == n_rows - round(0.2 * n_rows)
    low, high = model.score([[0.5, 3.0], [3.0, 3.0]])
    assert high > low


def test_the_model_is_that_of_one_table(folder: Path) -> None:
    assert train("--random-state 3") == 0
    apart = isotone.load("m.isotone").fingerprint
    columns = []
    for seed, shift, y in ((1, 0.0, 0), (2, 0.0, 0), (0, 1.0, 1)):
        found = events(seed, shift)
        counts = ak.num(found["pt"]).to_numpy()
        n_pv = np.repeat(np.asarray(found["n_pv"]), counts)
        pt = ak.flatten(found["pt"]).to_numpy()
        columns.append(pa.table({"pt": pt, "n_pv": n_pv, "signal": np.full(len(pt), y)}))
    pa.parquet.write_table(pa.concat_tables(columns), "all.parquet")
    words = "train all.parquet --target signal --increasing pt --out all.isotone --random-state 3"
    assert run(words, QUICK) == 0
    assert isotone.load("all.isotone").fingerprint == apart


def test_tables_of_candidates_are_judged_event_by_event(folder: Path) -> None:
    assert train() == 0
    exposure = "--event run,event --n-events 1000 --max-rate 3e6 --out point.json"
    assert run("trigger m.isotone", APART, exposure) == 0
    found = json.loads(Path("point.json").read_text())
    assert [table["path"] for table in found["tables"]] == [
        "signal.root:Hlt/Tree",
        "background1.root:Hlt/Tree",
        "background2.root:Hlt/Tree",
    ]
    with_candidate = int((ak.num(events(0, 1.0)["pt"]).to_numpy() > 0).sum())
    assert found["groups"]["all"]["events"] == [with_candidate]


def test_candidates_keep_the_events_and_weights_of_their_tree(folder: Path) -> None:
    assert train() == 0
    found = read_candidates(
        isotone.load("m.isotone"),
        signal=["signal.root:Hlt/Tree"],
        background=["background*.root:Hlt/Tree"],
        event=["run", "event"],
        weights="w",
    )
    assert found.is_signal.sum() == n_candidates(0)
    assert len(found) == n_candidates(0, 1, 2)
    best = found.signal.best([])
    content = events(0, 1.0)
    has_one = ak.num(content["pt"]).to_numpy() > 0
    assert best.weight is not None
    assert sorted(best.weight) == sorted(np.asarray(content["w"])[has_one])


def test_without_a_target_tables_must_be_of_one_class(folder: Path) -> None:
    assert train() == 0
    model = isotone.load("m.isotone")
    with pytest.raises(ValueError, match="`target` must name the column that tells them apart"):
        read_candidates(model, "signal.root:Hlt/Tree", event=["event"])


def test_scores_of_several_tables_are_one_table(folder: Path) -> None:
    assert train() == 0
    assert run("score m.isotone *.root:Hlt/Tree --keep event,pt --out scores.parquet") == 0
    scores = pa.parquet.read_table("scores.parquet")
    pt = np.concatenate([ak.flatten(events(s, d)["pt"]) for s, d in ((1, 0), (2, 0), (0, 1))])
    assert scores["pt"].to_numpy().tolist() == pt.tolist()
    assert scores["event"].type == pa.uint64()


def test_cells_are_named_with_their_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, cell in (("a", "1"), ("b", "oops")):
        Path(f"{name}.csv").write_text(f"x,y\n1,0\n2,1\n{cell},1\n")
    assert run("train a.csv b.csv --target y --features x --out n.isotone", QUICK) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "b.csv: column 'x'" in error
    assert "in row 2 (data rows" in error


def test_classes_of_different_types_are_one_target(folder: Path) -> None:
    x = np.linspace(0.0, 1.0, 40)
    y = np.arange(40) % 2
    pa.parquet.write_table(pa.table({"x": x, "y": y.astype(np.int8)}), "a.parquet")
    Path("b.csv").write_text("x,y\n" + "".join(f"{a},{b}\n" for a, b in zip(x, y, strict=True)))
    assert run("train a.parquet b.csv --target y --out n.isotone", QUICK) == 0
    assert isotone.load("n.isotone").classes == ("0", "1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "no table was given; at least one is needed: give its path, or `--signal FILE"),
        ("a.csv", "`--target` is missing; 'a.csv' needs a column to learn or to judge by"),
        ("--signal signal.root:Hlt/Tree", "`--signal` was given without `--background`; both"),
        ("--background signal.root", "`--background` was given without `--signal`; both"),
        ("x*.root --target y", "no file matches 'x*.root'"),
        (
            "signal.root:Hlt --target y",
            "has no tree 'Hlt'; one of them must be named: choose from",
        ),
        (f"{APART} --target pt", "has a column 'pt' already, which is to hold the class"),
        (
            f"{APART} --workers 2",
            "`--workers 2` is for directories; 'background1.root:Hlt/Tree and",
        ),
    ],
)
def test_advice_for_every_mistake(
    folder: Path, words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*f"train {words}".split(), "--features pt --out m.isotone", QUICK) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_result_never_replaces_a_table_that_a_pattern_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("s.isotone").write_bytes(Path("signal.root").read_bytes())
    Path("s.root").hardlink_to("s.isotone")
    words = "--signal s*.root:Hlt/Tree --background background1.root:Hlt/Tree --features pt"
    assert run("train", words, "--out s.isotone", QUICK) == 2
    assert "outputs must not be inputs" in " ".join(capsys.readouterr().err.split())
