"""Streams: estimators fitted to data sets on disk, as if their rows were in memory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet
import pytest
from sklearn.metrics import log_loss

import isotone
from isotone import Category, MonotonicClassifier, MonotonicRegressor, Scaling
from isotone.data import survey
from isotone.estimators.fitting import members
from isotone.estimators.preparation.view import View
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Number
from isotone.training.streaming import chunks
from isotone.training.streaming.chunks import ChunkLearner

N = 6000
RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(2, N))
C = RNG.lognormal(size=N)
CITY = np.where(np.arange(N) == 5555, "Bern", np.where(RNG.random(N) < 0.5, "Oslo", "Rome"))
SCORE = A + np.log(C) - 0.5 * B + (CITY == "Rome")
COLUMNS: dict[str, Any] = {
    "a": A,
    "b": np.where(RNG.random(N) < 0.002, np.nan, B),
    "c": C,
    "city": CITY,
    "code": np.where(np.arange(N) % 3 > 0, "1", "2"),
}
CLASS = np.where(SCORE + RNG.logistic(size=N) > 0, "yes", "no")
VALUE = SCORE + RNG.normal(size=N)
OPTIONS: dict[str, Any] = {
    "lipschitz": 2.0,
    "hidden_layer_sizes": (8, 8),
    "missing": "indicator",
    "max_iter": 3,
    "n_members": 2,
    "random_state": 0,
    "batch_size": 64,
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that is large is small here."""
    monkeypatch.setattr(survey, "SMALL_ROWS", 1000)
    monkeypatch.setattr(survey, "SAMPLE_ROWS", 1500)
    monkeypatch.setattr(chunks, "CHUNK_NUMBERS", 15_000)


def write(folder: Path, **columns: Any) -> Path:
    folder.mkdir(exist_ok=True)
    table = pa.table(COLUMNS | columns)
    for k in range(3):
        part = table.slice(k * N // 3, N // 3)
        pa.parquet.write_table(part, folder / f"{k}.parquet", row_group_size=500)
    return folder


def frame(**columns: Any) -> pa.Table:
    return pa.table(COLUMNS | columns)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"knots": 8, "lipschitz": "learned"},
        {"lipschitz": "auto", "max_iter": 2},
        {"class_weight": "balanced", "positive": "no"},
        {"loss": "hinge"},
        {"lipschitz": {"a": 1.0, "b": 0.5, "c": 2.0, "city": 1.0, "code": 1.0}},
    ],
    ids=str,
)
def test_a_streamed_classifier_is_as_good_as_one_in_memory(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    sign = -1 if "positive" in options else 1
    model = MonotonicClassifier({"a": sign, "b": -sign, "c": sign}, **OPTIONS | options)
    scores = []
    for arguments in ((frame(), CLASS), (pads.dataset(write(tmp_path, y=CLASS)), "y")):
        model.fit(*arguments)
        assert model.certificate_.holds
        scores.append(model.score(frame(), CLASS))
    assert abs(scores[0] - scores[1]) < 0.02
    assert [str(c.name) for c in model.network_.inputs.columns] == list(COLUMNS)
    assert model.network_.inputs.column("city").describe() == "category: Bern, Oslo, Rome"
    assert "missing(b)" in model.network_.inputs.encoded


@pytest.mark.usefixtures("small")
def test_rare_categories_of_a_stream_are_pooled(tmp_path: Path) -> None:
    """Most are in no row of the sample: more than are told apart."""
    names = np.where(np.arange(N) % 2 > 0, "usual", [f"id {i}" for i in range(N)])
    columns: dict[str, Any] = {"name": names, "y": CLASS}
    model = MonotonicClassifier(min_frequency=50, **OPTIONS)
    model.fit(pads.dataset(write(tmp_path, **columns)), "y")
    city, name = (model.network_.inputs.column(name) for name in ("city", "name"))
    assert city == Category("city", ("Oslo", "Rome"), pooled=1)
    assert isinstance(name, Category)
    assert name.categories == ("usual",)
    assert model.score(frame(name=names), CLASS) > 0.6
    rows = frame(name=names).slice(0, 2).set_column(3, "city", pa.array(["Bern", "Nowhere"]))
    assert isotone.Engine(model.network_)(rows).shape == (2,)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("least", [30, 0.005])
def test_categories_of_a_stream_are_rare_by_all_rows(tmp_path: Path, least: float) -> None:
    code = np.repeat(["a", "b", "c", "d"], [N - 79, 29, 30, 20])
    code = np.random.default_rng(0).permutation(code)
    model = MonotonicClassifier(min_frequency=least, **OPTIONS | {"max_iter": 1})
    model.fit(write(tmp_path, code=code, y=CLASS), "y")
    assert model.network_.inputs.column("code") == Category("code", ("a", "c"), pooled=2)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "options",
    [{}, {"loss": "quantile", "quantile": (0.2, 0.5)}, {"early_stopping": True}],
    ids=str,
)
def test_a_streamed_regressor_is_as_good_as_one_in_memory(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    model = MonotonicRegressor({"a": 1, "missing(b)": -1}, **OPTIONS | {"max_iter": 6} | options)
    scores = []
    for arguments in ((frame(), VALUE), (str(write(tmp_path, v=VALUE)), "v")):
        scores.append(model.fit(*arguments).score(frame(), VALUE))
    assert abs(scores[0] - scores[1]) < 0.03
    assert len(model.history_.validation) == 6 * bool(options.get("early_stopping"))


def test_looking_copies_up_is_transforming_and_compressing() -> None:
    inputs = Inputs.numbers(["a", "b", "c"])
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(2000, 3)), 1)  # many of them at a knot
    knots = {"a": np.sort(rng.normal(size=9)).round(1), "c": np.linspace(-1, 1, 21)}
    scaling = Scaling.fit(X + 10, ["log", "log", "standard"])
    view = View.of(scaling, inputs, knots, ["a", "c"])
    X[:, 1] += 10  # of which the logarithm is taken
    x, found = view.transform(X), view.look(X)
    counts = np.bincount(view.sources)
    cells = np.arange(len(view.sources))
    for f, first in enumerate(np.cumsum(counts) - counts):
        own = cells[first : first + counts[f]]
        place, value = found.cells[:, [f]], found.values[:, [f]]
        expanded = np.where(own < place, 1.0, np.where(own > place, -1.0, value))
        np.testing.assert_allclose(expanded, x[:, own], rtol=1e-6, atol=1e-6)
    assert view.look(X[:0]).cells.shape == (0, 3)


@pytest.mark.usefixtures("small")
def test_weights_of_a_large_spread_keep_predictions_calibrated(tmp_path: Path) -> None:
    """Rows that are weighed as often as others are repeated teach the same."""
    weight = RNG.lognormal(0, 1, N)
    folder = write(tmp_path / "weighted", y=CLASS, w=weight)
    model = MonotonicClassifier({"a": 1}, **OPTIONS | {"max_iter": 10})
    losses = [
        log_loss(CLASS, model.fit(*arguments).predict_proba(frame()), sample_weight=weight)
        for arguments in ((frame(), CLASS, weight), (folder, "y", "w"))
    ]
    assert abs(losses[0] - losses[1]) < 0.02
    p = model.predict_proba(frame())[:, 1]
    assert np.average(p, weights=weight) == pytest.approx(
        np.average(CLASS == "yes", weights=weight), abs=0.02
    )


def test_a_small_data_set_is_read_as_a_table(tmp_path: Path) -> None:
    model = MonotonicRegressor({"a": 1}, **OPTIONS | {"max_iter": 1})
    model.set_params(categorical_features=["tenth"])
    folder = write(tmp_path, tenth=CODES["tenth"], v=VALUE)
    prints = {
        model.fit(*arguments).network_.fingerprint
        for arguments in ((frame(tenth=CODES["tenth"]), VALUE), (pads.dataset(folder), "v"))
    }
    assert len(prints) == 1


@pytest.mark.usefixtures("small")
def test_numbers_stored_as_categories_stay_categories(tmp_path: Path) -> None:
    coded = pa.array(COLUMNS["code"]).dictionary_encode()
    model = MonotonicRegressor(**OPTIONS | {"max_iter": 1})
    model.fit(write(tmp_path / "categories", code=coded, v=VALUE), "v")
    assert model.network_.inputs.column("code").describe() == "category: 1, 2"
    model.fit(write(tmp_path / "texts", v=VALUE), "v")
    assert model.network_.inputs.column("code").describe() == "number"


LAST = np.arange(N) == N - 1  # which is in the last file, and in no sample
CODES: dict[str, Any] = {
    "zip": np.where(LAST, 9, RNG.integers(-2, 3, N)),
    "tenth": np.where(LAST, np.nan, RNG.integers(3, size=N) / 10).astype(np.float32),
    "digit": np.where(LAST, "10", RNG.integers(3, size=N).astype(str)),
    "truth": RNG.random(N) < 0.5,
    "word": np.where(LAST, "  ", np.where(RNG.random(N) < 0.5, " b", "a ")),
    "kind": pa.array(np.where(LAST, "z", "k")).dictionary_encode(),
    "size": pa.DictionaryArray.from_arrays(
        pa.array(RNG.integers(3, size=N)), pa.array(["s", "m", "l", "xl"]), ordered=True
    ),
}


def _mask(names: list[str]) -> list[bool]:
    return [name in names for name in (*COLUMNS, *CODES)]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "listed",
    [
        ["zip", "tenth", "digit", "truth", "city"],
        np.array(["zip", "size"]),
        [len(COLUMNS), len(COLUMNS) + 1],
        _mask(["digit", "tenth"]),
        "from_dtype",
    ],
    ids=str,
)
def test_categories_of_a_stream_are_those_of_the_rows_in_memory(
    tmp_path: Path, listed: Any
) -> None:
    """Names, order, and missing values, wherever the only row stands that has one of them."""
    model = MonotonicRegressor({"a": 1}, categorical_features=listed, **OPTIONS | {"max_iter": 1})
    found = []
    for arguments in ((frame(**CODES), VALUE), (write(tmp_path, **CODES, v=VALUE), "v")):
        model.fit(*arguments)
        columns = model.network_.inputs.columns
        found.append([c for c in columns if not isinstance(c, Number)])
        assert model.certificate_.holds
    assert found[0] == found[1]
    assert len(found[0]) >= 4
    assert np.isfinite(model.predict(frame(**CODES))).all()


@pytest.mark.usefixtures("small")
def test_what_cannot_be_a_category_of_a_stream_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path, many=np.arange(N) % 80 // (1 + (np.arange(N) > 100)), v=VALUE)

    def fit(listed: Any) -> None:
        MonotonicRegressor(categorical_features=listed, **OPTIONS).fit(folder, "v")

    for name in ("a", "many"):
        with pytest.raises(ValueError, match=f"{name!r} holds more than 64 categories.*min_freq"):
            fit([name])
    with pytest.raises(ValueError, match="'v', which is not a column of `X`"):
        fit(["v"])
    with pytest.raises(ValueError, match="'city' holds categories, but `categorical_features=No"):
        fit(None)


@pytest.mark.usefixtures("small")
def test_a_category_by_the_type_of_one_file_is_one_in_all(tmp_path: Path) -> None:
    folder = write(tmp_path, v=VALUE)
    part = frame(v=VALUE).slice(0, 10)
    coded = part["code"].combine_chunks().dictionary_encode()
    part = part.set_column(part.schema.names.index("code"), "code", coded)
    pa.parquet.write_table(part, folder / "3.parquet")
    model = MonotonicRegressor(**OPTIONS | {"max_iter": 1}).fit(folder, "v")
    assert model.network_.inputs.column("code").describe() == "category: 1, 2"


@pytest.mark.usefixtures("small")
def test_ordered_categories_are_ranks(tmp_path: Path) -> None:
    order = ["small", "medium", "large"]
    size = pa.DictionaryArray.from_arrays(
        pa.array(RNG.integers(3, size=N)), pa.array(order), ordered=True
    )
    model = MonotonicRegressor({"size": 1}, **OPTIONS | {"max_iter": 1})
    model.fit(write(tmp_path, size=size, v=VALUE), "v")
    assert model.network_.inputs.column("size").describe() == "ordered: small < medium < large"


@pytest.mark.usefixtures("small")
def test_a_killed_fit_resumes_to_the_same_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "rows", y=CLASS)
    undisturbed = MonotonicClassifier({"a": 1}, **OPTIONS).fit(folder, "y")
    monkeypatch.setattr(members, "CHECKPOINT_SECONDS", 0.0)
    learn_chunk, done = ChunkLearner._learn_chunk, []

    def killed(self: Any, *args: Any) -> None:
        done.append(args[1])
        if len(done) in (2, 9):
            raise KeyboardInterrupt
        learn_chunk(self, *args)

    monkeypatch.setattr(ChunkLearner, "_learn_chunk", killed)
    model = MonotonicClassifier({"a": 1}, **OPTIONS).keep_checkpoints(tmp_path / "checkpoints")
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            model.fit(folder, "y")
    model.fit(folder, "y")
    assert model.network_.fingerprint == undisturbed.network_.fingerprint
    counts = [done.count(epoch) for epoch in range(3)]
    assert sum(counts) == 3 * min(counts) + 2  # two chunks were repeated


@pytest.mark.usefixtures("small")
def test_progress_says_which_rows_decide_what(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = MonotonicRegressor(**OPTIONS | {"max_iter": 1, "verbose": True})
    model.fit(write(tmp_path, v=VALUE), "v")
    said = " ".join(capsys.readouterr().out.split())
    assert "first pass" in said
    about = (
        r"scaling, knots and any choice of λ from [12],\d{3} of 6,000 rows; categories, classes"
    )
    assert re.search(f"{about} and weights from all", said)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("model", "target", "message"),
    [
        (MonotonicClassifier(loss="dynamic_hinge", **OPTIONS), "y", "but it does not support Dyn"),
        (MonotonicClassifier(**OPTIONS), "k", "'k' holds more than 1024 different values"),
        (
            MonotonicRegressor(**OPTIONS | {"missing": "error"}),
            "v",
            f"`X` has {np.isnan(COLUMNS['b']).sum()} missing values .NaN. in feature 'b', the fir"
            f"st in row {np.isnan(COLUMNS['b']).argmax()} of '.*/0.parquet'",
        ),
        (MonotonicRegressor(**OPTIONS | {"max_iter": 0}), "v", "`max_iter` is 0|`max_iter=0`"),
        (MonotonicRegressor(**OPTIONS), "z", "has no column 'z'"),
    ],
)
def test_what_cannot_be_streamed_is_refused(
    tmp_path: Path, model: Any, target: str, message: str
) -> None:
    columns = {"y": {"y": CLASS}, "k": {"k": np.arange(N) % 1100}}.get(target, {"v": VALUE})
    with pytest.raises(ValueError, match=message):
        model.fit(write(tmp_path, **columns), target)


def test_a_target_must_be_named(tmp_path: Path) -> None:
    folder, model = write(tmp_path, v=VALUE), MonotonicRegressor()
    with pytest.raises(TypeError, match="`y` is a ndarray but `X` is a data set, whose rows are"):
        model.fit(folder, VALUE)
    with pytest.raises(TypeError, match="`sample_weight` is a list but `X` is a data set"):
        model.fit(folder, "v", [1.0])
    with pytest.raises(ValueError, match=r"0.parquet', which is not a directory; a path must be"):
        model.fit(folder / "0.parquet", "v")


def test_other_data_sets_are_refused(tmp_path: Path) -> None:
    model = MonotonicRegressor()
    folder = write(tmp_path / "rows", v=VALUE)
    with pytest.raises(ValueError, match="`X` is a InMemoryDataset that is not of Parquet files"):
        model.fit(pads.dataset(frame(v=VALUE)), "v")
    with pytest.raises(ValueError, match="`X` has a filter; all rows and columns of the files"):
        model.fit(pads.dataset(folder).filter(pads.field("a") > 0), "v")
    (tmp_path / "parts" / "year=2024").mkdir(parents=True)
    (folder / "0.parquet").rename(tmp_path / "parts" / "year=2024" / "0.parquet")
    with pytest.raises(ValueError, match="`X` has the column 'year', which is not in its files"):
        model.fit(pads.dataset(tmp_path / "parts", partitioning="hive"), "v")
    with pytest.raises(
        ValueError, match=r"is partitioned by 'year', .* such as 'year=2024'; only"
    ):
        model.fit(tmp_path / "parts", "v")
    model.set_params(**OPTIONS | {"max_iter": 1})
    model.fit(pads.dataset(tmp_path / "parts", partitioning=None), "v")
    assert model.network_.inputs.names == tuple(COLUMNS)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("groups", ["event", ["event", "run"]])
def test_a_stream_keeps_groups_together(groups: Any, tmp_path: Path) -> None:
    """Early stopping judges by rows of events that are not learned from."""
    event = RNG.permutation(np.arange(N) // 3)
    folder = write(tmp_path, y=CLASS, event=event, run=event % 7)
    options = OPTIONS | {"early_stopping": True, "lipschitz": "auto", "max_iter": 2}
    model = MonotonicClassifier({"a": 1}, **options).fit(folder, "y", groups=groups)
    assert model.certificate_.holds
    taken = set(COLUMNS) | ({"run"} if groups == "event" else set())
    assert {column.name for column in model.network_.inputs.columns} == taken
    with pytest.raises(TypeError, match="`groups` is a list but `X` is a data set, whose rows"):
        model.fit(folder, "y", groups=[1, 2])
    with pytest.raises(ValueError, match="has no column 'nope'"):
        model.fit(folder, "y", groups="nope")


def test_groups_of_a_small_data_set_are_those_of_its_rows(tmp_path: Path) -> None:
    event = np.arange(N) // 3
    folder = write(tmp_path, y=CLASS, event=event)
    model = MonotonicClassifier({"a": 1}, **OPTIONS | {"max_iter": 1})
    model.fit(folder, "y", groups="event")
    assert {column.name for column in model.network_.inputs.columns} == set(COLUMNS)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", ["classes", "positive", "values"])
def test_a_stream_with_signed_weights_learns_what_they_stand_for(
    kind: str, tmp_path: Path
) -> None:
    """Rows of 1.5 and -0.5 with means that make targets of one kind rarer where a is positive."""
    rng = np.random.default_rng(5)
    share = np.where((CLASS == "yes") & (A > 0), 0.25, 1.0)  # the mean weight
    weight = np.where(rng.random(N) < (share + 0.5) / 2.0, 1.5, -0.5)
    options = OPTIONS | {"signed_weights": True, "max_iter": 8}
    signed, plain = write(tmp_path / "s", y=CLASS, v=VALUE, w=weight), (tmp_path / "m")
    write(plain, y=CLASS, v=VALUE, w=share)
    if kind == "values":
        both = [
            MonotonicRegressor({"a": 1}, **options).fit(each, "v", "w")
            for each in (_without(signed, "y"), _without(plain, "y"))
        ]
        found, truth = (model.predict(frame()) for model in both)
        assert np.sqrt(np.mean((found - truth) ** 2)) < 0.25 * VALUE.std()
        return
    chosen = {"positive": "no"} if kind == "positive" else {}
    model = MonotonicClassifier(**options | chosen)
    both = [
        model.fit(_without(each, "v"), "y", "w").predict_proba(frame())[:, 1]
        for each in (signed, plain)
    ]
    assert np.abs(both[0] - both[1]).mean() < 0.06
    unweighted = model.fit(_without(plain, "v", "w"), "y").predict_proba(frame())[:, 1]
    assert np.abs(unweighted - both[1]).mean() > 0.1


def _without(folder: Path, *names: str) -> Path:
    """The same rows without some columns."""
    other = folder.with_name(f"{folder.name} {' '.join(names)}")
    other.mkdir(exist_ok=True)
    for path in folder.glob("*.parquet"):
        table = pa.parquet.read_table(path).drop_columns(list(names))
        pa.parquet.write_table(table, other / path.name, row_group_size=500)
    return other


@pytest.mark.usefixtures("small")
def test_signed_weights_of_a_stream_must_add_up_to_something(tmp_path: Path) -> None:
    weight = np.where(CLASS == "yes", -1.0, 2.0)
    with pytest.raises(ValueError, match=r"class .* add up to -\d+; their total must be"):
        MonotonicClassifier(**OPTIONS | {"signed_weights": True}).fit(
            write(tmp_path, y=CLASS, w=weight), "y", "w"
        )
