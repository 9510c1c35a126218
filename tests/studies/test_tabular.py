"""The tables: nothing is learned from test rows, and the documentation says what was found."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from studies.tabular import compare, files
from studies.tabular.contest import BUDGET, Choice, Model, Problem, Table, View
from studies.tabular.datasets import LOADERS, Dataset, load
from studies.tabular.files import NoDataError, Source, find, unpack
from studies.tabular.models import ours, small
from studies.tabular.pages import picture, tables
from studies.tabular.protocols import beginnings, cells, clean, reference
from studies.tabular.protocols.clean import best_threshold, measure, split, violations

needs_data = pytest.mark.skipif(
    not os.environ.get("ISOTONE_DATA"),
    reason="set ISOTONE_DATA to the directory of the public tables",
)
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=400), RNG.exponential(size=400), RNG.integers(0, 2, 400)])
Z = X[:, 0] - 0.5 * X[:, 1] + np.sin(3 * X[:, 2])


def toy(task: Any = "regression", **fields: Any) -> Dataset:
    y = Z if task == "regression" else (Z > 0).astype(float)
    metric: Any = "rmse" if task == "regression" else "accuracy"
    directions = np.array([1, -1, 0], dtype=np.int8)
    return replace(Dataset("toy", task, metric, ("a", "b", "c"), directions, X, y), **fields)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("no network")

    monkeypatch.setattr(files, "fetch_file", refuse)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("ISOTONE_DATA", raising=False)
    load.cache_clear()
    return tmp_path


def serve(monkeypatch: pytest.MonkeyPatch, content: bytes, digest: str = "") -> None:
    sha256 = digest or hashlib.sha256(content).hexdigest()
    monkeypatch.setitem(files.SOURCES, "toy/toy.csv", Source("https://example.org/toy", sha256))
    monkeypatch.setattr(files, "fetch_file", server(content))


def server(content: bytes) -> Any:
    """What stands in for `sklearn.datasets.fetch_file`."""

    def fetch(url: str, folder: str, name: str, **_: Any) -> Path:
        path = Path(folder) / name
        path.write_bytes(content)
        return path

    return fetch


def test_without_data_and_network_a_message_says_what_to_do(no_network: Path) -> None:
    with pytest.raises(NoDataError, match="no network; put it below a directory and name"):
        find("boston_housing/Boston.csv")
    with pytest.raises(NoDataError, match="is not published in this form; put it"):
        find("loan/lendingclub_2007_2011.csv.gz")


def test_what_was_fetched_is_kept(no_network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, b"a,b\n1,2\n")
    path = find("toy/toy.csv")
    assert path.is_relative_to(no_network)
    serve(monkeypatch, b"other")
    assert find("toy/toy.csv").read_bytes() == b"a,b\n1,2\n"


def test_other_content_is_refused(no_network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, b"a,b\n", digest="0" * 64)
    with pytest.raises(NoDataError, match=f"has changed: its sha256 is .* but must be {'0' * 64}"):
        find("toy/toy.csv")
    assert not list(no_network.rglob("toy.csv*"))


def test_archives_are_unpacked_and_parts_joined_in_order() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("day-2", "day-1", "day", "else"):
            archive.writestr(name, name)
    assert unpack(packed.getvalue(), "day-") == b"day-1day-2"
    assert unpack(packed.getvalue(), "day") == b"day"
    tape = io.BytesIO()
    with tarfile.open(fileobj=tape, mode="w:gz") as tar:
        member = tarfile.TarInfo("a/b")
        member.size = 3
        tar.addfile(member, io.BytesIO(b"abc"))
    assert unpack(tape.getvalue(), "a/b") == b"abc"


@needs_data
def test_archives_of_blog_posts_become_the_files_that_are_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The 60 daily files and their index come back from an archive, with the right digests."""
    folder = Path(os.environ["ISOTONE_DATA"]) / "blog_feedback"
    rows = gzip.decompress((folder / "blogData_test.csv.gz").read_bytes()).splitlines(True)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for line in (folder / "blogData_test_index.csv").read_text().splitlines()[1:]:
            name, first, n = line.split(",")
            archive.writestr(name, b"".join(rows[int(first) : int(first) + int(n)]))
    monkeypatch.setattr(files, "fetch_file", server(packed.getvalue()))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("ISOTONE_DATA")
    for name in ("blogData_test.csv.gz", "blogData_test_index.csv"):
        assert find(f"blog_feedback/{name}").is_relative_to(tmp_path)


def test_a_comparison_without_data_says_so_and_ends(
    no_network: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compare, "stored", lambda cells: {})
    assert compare.main(["--quick"]) == 0
    printed = capsys.readouterr().out
    assert "without heart" in printed
    assert "nothing to compare" in printed


def test_unknown_data_are_refused() -> None:
    with pytest.raises(ValueError, match="`name='iris'` is unknown; choose from heart"):
        load("iris")


# rows, columns, directions that are not 0, rows of the test part: as the publishers describe them
SHAPES = {
    "heart": (303, 13, 2, None),
    "auto_mpg": (392, 7, 3, None),
    "boston": (506, 12, 3, None),
    "german": (1000, 52, 5, None),
    "compas": (6172, 13, 4, None),
    "california": (20640, 8, 1, None),
    "loan": (38011, 29, 5, None),
    "bike": (17379, 20, 2, 3476),
    "adult": (45222, 48, 3, 15060),
    "blog": (54314, 276, 8, 7027),
}


@needs_data
@pytest.mark.parametrize("name", LOADERS)
def test_data_are_what_their_publishers_describe(name: str) -> None:
    data = load(name)
    n_test = None if data.test is None else int(data.test.sum())
    n_monotone = np.count_nonzero(data.directions)
    assert (*data.X.shape, n_monotone, n_test) == SHAPES[name]
    assert len(data.features) == data.X.shape[1]
    assert np.all(np.isfinite(data.X))
    if data.task == "classification":
        assert set(data.y) == {0.0, 1.0}


@needs_data
def test_the_reference_rows_are_those_of_the_literature() -> None:
    sizes = {"compas": (4937, 1235), "auto_mpg": (313, 79), "heart": (242, 61)}
    for name, expected in (sizes | {"blog": (47302, 6968)}).items():
        _, train, test, _ = reference.reference_rows(name, 0)
        assert (len(train), len(test)) == expected, name
    _, _, compas, _ = reference.reference_rows("compas", 0)
    assert 1 - compas.y.mean() == pytest.approx(0.564, abs=5e-4)  # the majority
    heart, *_ = reference.reference_rows("heart", 0)
    assert heart.features[0] == "row"


def test_parts_of_a_split_have_no_row_in_common() -> None:
    data = toy(y=np.arange(400.0))
    for k in range(3):
        parts = split(data, k)
        rows = [set(part.y) for part in (parts.train, parts.validation, parts.test)]
        assert [len(part) for part in rows] == [240, 80, 80]
        assert len(set.union(*rows)) == 400
    assert set(split(data, 0).test.y) != set(split(data, 1).test.y)


def test_the_publishers_test_part_is_kept() -> None:
    test = np.arange(400) >= 300
    parts = split(toy(y=np.arange(400.0), test=test), 5)
    assert set(parts.test.y) == set(range(300, 400))


class Spy:
    """Remembers what it was shown."""

    name, needs, monotone = "spy", "isotone", True

    def __init__(self) -> None:
        self.shown: list[Table] = []

    def choose(self, problem: Problem, train: Table, validation: Table) -> Choice:
        self.shown += [train, validation]
        return Choice({}, 1, 0.0)

    def fit(self, problem: Problem, rows: Table, choice: Choice) -> Model:
        self.shown.append(rows)
        return Model(lambda X: X[:, 0], 1)


def test_no_contestant_is_shown_test_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    data = toy()
    monkeypatch.setattr(clean, "load", lambda name: data)
    spy = Spy()
    score = clean.clean(spy, "toy", 3)
    test = split(data, 3).test
    assert not np.isin(np.concatenate([table.y for table in spy.shown]), test.y).any()
    assert score.value == pytest.approx(np.sqrt(np.mean((test.y - test.X[:, 0]) ** 2)))
    assert score.violations == 0.0


def test_wrong_moves_are_found() -> None:
    data = toy()
    parts = split(data, 0)
    assert violations(lambda X: X[:, 0] - X[:, 1], data, parts) == 0.0
    assert violations(lambda X: X[:, 0] + X[:, 1], data, parts) == 0.5
    assert violations(lambda X: np.sin(9 * X[:, 0]), data, parts) == 0.5


def test_metrics() -> None:
    y, score = np.array([0.0, 1.0, 1.0, 0.0]), np.array([0.1, 0.4, 0.9, 0.35])
    assert measure("accuracy", y, score, 0.5) == 0.75
    assert measure("auc", y, score) == 1.0
    assert measure("mse", y, y + 2.0) == 4.0
    assert measure("rmse", y, y + 2.0) == 2.0
    assert best_threshold(y, score, np.array([0.2, 0.38, 0.39, 0.6])) == 0.39


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("name", cells.CONTESTANTS)
def test_contestants_learn_and_the_monotone_ones_are(name: str, task: Any) -> None:
    contestant = cells.CONTESTANTS[name]
    pytest.importorskip(contestant.needs)
    data = toy(task)
    parts, problem = split(data, 0), Problem.of(data, 0, quick=True)
    choice = contestant.choose(problem, parts.train, parts.validation)
    model = contestant.fit(problem, parts.train + parts.validation, choice)
    score = model.score(parts.test.X)
    flat = np.full(len(score), parts.train.y.mean())
    assert problem.loss(parts.test.y, score) < problem.loss(parts.test.y, flat)
    assert model.n_parameters > 0
    if contestant.monotone:
        assert violations(model.score, data, parts) == 0.0


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_ours_are_the_estimators_with_all_defaults(task: Any) -> None:
    problem = Problem.of(toy(task), 5)
    for contestant in (ours.PLAIN, ours.TAUGHT):
        model = contestant._model(problem)
        teacher = model.teacher
        assert (teacher is not None) == (contestant.name == "isotone, teacher")
        for estimator in (model.set_params(teacher=None), teacher):
            if estimator is not None:
                plain = type(estimator)(monotonic_cst=problem.directions, random_state=5)
                assert estimator.get_params() == plain.get_params()


def test_wide_tables_are_narrowed_by_training_rows_and_keep_directions() -> None:
    X = np.random.default_rng(1).normal(size=(200, 80))
    directions = np.zeros(80, dtype=np.int8)
    directions[70] = 1
    view = View.of(Problem("regression", directions), Table(X, 3 * X[:, 7]))
    assert len(view.kept) == 25
    assert {7, 70} <= set(view.kept.tolist())


def test_all_peers_have_the_same_budget() -> None:
    peers = [c for name, c in cells.CONTESTANTS.items() if name not in tables.OURS]
    settings = {c.name: getattr(c, "settings", None) for c in peers}
    assert settings.pop("logistic / ridge") is None  # its strengths are a range
    assert {len(found or ()) for found in settings.values()} == {BUDGET}


def test_a_cell_depends_on_the_library_of_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours on scikit-learn, which also makes the teacher."""
    for name in ("isotone, teacher", "CatBoost"):
        cell = cells.Cell("clean", "heart", name, 0)
        key = cell.key()
        cells.key_of.cache_clear()
        with monkeypatch.context() as other:
            other.setattr(cells.importlib.metadata, "version", lambda package: "0")
            assert cell.key() != key
        cells.key_of.cache_clear()


def test_cells_of_one_contestant_on_one_data_set_are_one_job() -> None:
    found = [
        cells.Cell("clean", data, "mononet", k) for k in range(3) for data in ("heart", "bike")
    ]
    names = {job.name: len(job.items) for job in compare.jobs_of(found)}
    assert names == {"clean/heart/mononet": 3, "clean/bike/mononet": 3}


@needs_data
def test_a_quick_comparison_runs_and_goes_on(tmp_path: Path) -> None:
    wanted = [
        cell
        for cell in compare.cells_of(["auto_mpg", "heart"], 1, quick=True, root=tmp_path)
        if cell.contestant in ("isotone", "isotone, small", "XGBoost")
    ]
    done = wanted[0].run()
    scores = compare.run_all(wanted, 1, Console(quiet=True))
    assert scores[wanted[0]] == done
    assert compare.stored(wanted) == scores
    summary = tables.summarize(scores)
    assert tables.overview(summary).count("\n") == 4
    assert all(table(summary) for table in tables.TABLES.values())  # with what is there
    wanted[0].path.write_text(wanted[0].path.read_text().replace('"key": "', '"key": "old'))
    assert wanted[0].stored() is None


def test_verdicts_count_standard_errors_on_common_splits() -> None:
    def summary(*values: float) -> Any:
        return {"values": {str(k): value for k, value in enumerate(values)}}

    clean = {"isotone": summary(3.0, 4.0, 5.0), "XGBoost": summary(4.0, 5.0, 6.0, 99.0)}
    assert tables.compare("boston", clean["isotone"], clean["XGBoost"]) == pytest.approx(1.5**0.5)
    assert tables.verdict("boston", clean, "isotone") == "ahead"  # smaller errors are better
    assert tables.verdict("heart", clean, "isotone") == "behind XGBoost (1.2)"
    level = clean | {"XGBoost": summary(3.5, 4.5, 5.5)}
    assert tables.verdict("heart", level, "isotone") == "level"
    alone = {"isotone": clean["isotone"], "logistic / ridge": clean["XGBoost"]}
    assert tables.verdict("heart", alone, "isotone") == "–"


def test_the_documentation_says_what_was_found() -> None:
    pages = [page.read_text() for page in tables.PAGES]
    assert [tables.render(page, tables.load_results()) for page in pages] == pages
    found = re.findall(r"<!-- table (\w+) -->", "".join(pages))
    assert sorted(found) == sorted(tables.TABLES)


def test_the_picture_shows_by_how_many_errors_ours_is_ahead_of_the_best_peer() -> None:
    results = tables.load_results()
    for name in tables.OURS:
        for dataset, lead in picture.leads(results, name).items():
            words = tables.verdict(dataset, results["clean"][dataset], name)
            assert words != "ahead" or lead > 1
            assert words.startswith("behind") or lead >= -1
    assert len(picture.figure(results).axes[0].collections) == len(tables.OURS)


def test_tables_are_written_without_a_model_of_ours() -> None:
    results = tables.load_results()
    for table in results["clean"].values():
        table.pop("isotone, teacher", None)
    lines = tables.overview(results).splitlines()[2:]
    assert all(line.endswith("| – |") for line in lines)
    assert '"isotone": ' in tables.goal(results)


def test_knots_of_the_reference_protocol_are_of_training_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = toy()
    rows = Table(data.X, data.y)
    train, test = (Table(rows.X[i], rows.y[i]) for i in (slice(0, 30), slice(30, None)))
    published = reference.Published(epochs=1)
    setup = reference.Setup(data, Problem.of(data, 0, True), train, test, rows, published)
    seen: list[Table] = []
    view_of = small.view_of

    def note(problem: Problem, table: Table, setting: small.Setting) -> View:
        seen.append(table)
        return view_of(problem, table, setting)

    monkeypatch.setattr(small, "view_of", note)
    for n_tiles, wanted in ((None, rows), (2, train)):
        setting = small.Setting((8,), 0.5, n_tiles=n_tiles)
        monkeypatch.setattr(reference, "_cross_validated", lambda *_, chosen=setting: chosen)
        reference._own(setup)
        assert seen[-1] is wanted


@needs_data
@pytest.mark.parametrize("variant", beginnings.VARIANTS[:2])
def test_beginnings_differ_and_are_kept(variant: str, tmp_path: Path) -> None:
    wanted = [
        beginnings.Beginning("beginnings", "auto_mpg", variant, k, True, tmp_path)
        for k in (0, 1, beginnings.N)
    ]
    values = [cell.run().value for cell in wanted]
    assert len(set(values)) == 3
    assert [score.value for score in compare.stored([*wanted]).values()] == values


def test_parts_of_beginnings_are_told_apart() -> None:
    values = {str(k): float(k // beginnings.N) for k in range(3 * beginnings.N)}
    means, spreads = beginnings.summary(values)
    assert means.tolist() == [0, 1, 2]
    assert spreads.tolist() == [0, 0, 0]
