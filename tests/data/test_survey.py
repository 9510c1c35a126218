"""Surveys: a sample that has every category, range and missing value of the whole data set."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from isotone.data import survey as module
from isotone.data.dataset import open_dataset
from isotone.data.holdout import GROUP, DrawnGroups
from isotone.data.source import Source
from isotone.data.survey import Survey, take_survey

N = 5000
RNG = np.random.default_rng(0)
COLUMNS: dict[str, Any] = {
    "x": np.where(np.arange(N) == 4321, np.nan, RNG.normal(size=N)),
    "city": ["Bern" if i == 4000 else None if i == 17 else "Oslo" for i in range(N)],
    "code": [str(i) if i != 4900 else "NA" for i in range(N)],
    "y": np.where(np.arange(N) == 2500, 7.0, np.arange(N) % 2),
    "w": RNG.pareto(1.0, N) * (np.arange(N) % 5 > 0),
}


@pytest.fixture(autouse=True)
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLE_ROWS", 200)
    monkeypatch.setattr(module, "BATCH_ROWS", 300)


def write(folder: Path, **columns: Any) -> Path:
    table = pa.table(COLUMNS | columns)
    for k in range(4):
        part = table.slice(k * N // 4, N // 4)
        pa.parquet.write_table(part, folder / f"{k}.parquet", row_group_size=400)
    return folder


def survey(folder: Path, weight: str | None = None, n_held: int = 0, **options: Any) -> Survey:
    names = ("x", "city", "code")
    source = Source(open_dataset(folder), names, "y", weight, frozenset(["city"]), **options)
    return take_survey(source, n_held=n_held)


def test_the_sample_has_what_few_rows_have(tmp_path: Path) -> None:
    found = survey(write(tmp_path))
    X = found.sample.X
    assert {4321, 4000, 17, 4900, 2500} <= set(found.sample.rows.tolist())
    assert set(X["city"].to_pylist()) == {"Oslo", "Bern", None}
    x = COLUMNS["x"]
    present = X["x"].to_numpy()
    assert (np.nanmin(present), np.nanmax(present)) == (np.nanmin(x), np.nanmax(x))
    assert found.classes == {0.0: 2499.0, 1.0: 2500.0, 7.0: 1.0}
    assert found.missing == {
        "x": (1, str(tmp_path / "3.parquet"), 4321 - 3750),
        "city": (1, str(tmp_path / "0.parquet"), 17),
        "code": (1, str(tmp_path / "3.parquet"), 4900 - 3750),
    }
    assert found.levels == {"city": {"Oslo": 4998, None: 1, "Bern": 1}}
    assert str(X.schema.field("city").type).startswith("dictionary")


def test_texts_are_categories_unless_each_of_them_is_a_number(tmp_path: Path) -> None:
    words = np.where(np.arange(N) == 4900, " none of them", np.arange(N) % 7)
    found = survey(write(tmp_path, code=words))
    assert found.levels["code"] == Counter(text.strip() for text in words)
    found = survey(write(tmp_path, code=np.where(np.arange(N) % 9 > 0, words, "")))
    assert found.missing["code"][0] == found.levels["code"][None] == -(-N // 9)
    assert "code" not in survey(write(tmp_path, code=[f"{i} km" for i in range(N)])).levels


def test_rows_of_the_sample_stand_for_all(tmp_path: Path) -> None:
    found = survey(write(tmp_path))
    drawn = found.sample.weight > 1
    assert np.count_nonzero(drawn) == 200
    assert found.sample.weight[drawn].sum() == pytest.approx(N)
    assert set(found.sample.weight[~drawn]) == {1.0}
    rows, cells = found.sample.rows, found.sample.X["x"].to_numpy()
    assert np.array_equal(cells, COLUMNS["x"][rows], equal_nan=True)


def test_rows_are_held_out_unless_they_are_like_no_others(tmp_path: Path) -> None:
    found = survey(write(tmp_path), n_held=N)  # more than can be held out
    assert len(found.held.rows) <= 200
    assert not set(found.held.rows) & set(found.sample.rows)
    assert np.all(np.diff(found.held.rows) > 0)
    assert np.all(found.held.weight == 1)
    values = COLUMNS["y"][found.held.rows]
    assert np.array_equal(found.held.cells.to_numpy(), values)


def test_rows_of_no_weight_do_not_count(tmp_path: Path) -> None:
    found = survey(write(tmp_path), weight="w", n_held=50)
    assert found.n_rows == np.count_nonzero(COLUMNS["w"])
    assert found.total == pytest.approx(COLUMNS["w"].sum())
    assert not np.any(found.sample.rows % 5 == 0)
    assert not np.any(found.held.rows % 5 == 0)
    drawn = found.sample.weight / COLUMNS["w"][found.sample.rows]
    assert drawn.max() == pytest.approx(found.n_rows / np.count_nonzero(drawn > 1.5))


def test_the_digest_tells_rows_from_others(tmp_path: Path) -> None:
    digests = set()
    for seed in range(2):
        (tmp_path / str(seed)).mkdir()
        x = np.roll(COLUMNS["x"], 1000 * seed)
        digests.add(survey(write(tmp_path / str(seed), x=x)).digest)
    assert len(digests) == 2
    assert survey(tmp_path / "0").digest in digests


def test_a_target_of_many_values_has_no_classes(tmp_path: Path) -> None:
    assert survey(write(tmp_path, y=np.arange(N) * 0.5)).classes is None


@pytest.mark.parametrize(
    ("columns", "weight", "message"),
    [
        ({"x": [1.0] * 4999 + [np.inf]}, None, r"3.parquet: column 'x' is inf in row 1249"),
        (
            {"y": [0.0] * 1250 + [None] * 3750},
            None,
            r"1.parquet: the target 'y' is missing in row",
        ),
        ({"w": [-1.0] * N}, "w", "the weight 'w' is -1 in row 0 .*weights must be 0 or more"),
        ({"w": [np.nan] * N}, "w", "the weight 'w' is nan in row 0"),
        ({"w": [0.0] * N}, "w", "has a weight of 0 in all; training needs rows of positive"),
    ],
)
def test_rows_that_cannot_be_learned_from_are_named(
    tmp_path: Path, columns: dict[str, Any], weight: str | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        survey(write(tmp_path, **columns), weight)


def test_files_must_agree(tmp_path: Path) -> None:
    write(tmp_path)
    other = pa.table({"x": [1.0], "city": ["Rome"], "code": ["1"], "y": ["good"]})
    pa.parquet.write_table(other, tmp_path / "4.parquet")
    with pytest.raises(ValueError, match="'y' is of type double in some files and string in oth"):
        survey(tmp_path)
    for name, order in (("a", ["low", "high"]), ("b", ["high", "low"])):
        kind = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(order), ordered=True)
        table = pa.table({"size": kind, "y": [0, 1]})
        (tmp_path / "orders").mkdir(exist_ok=True)
        pa.parquet.write_table(table, tmp_path / "orders" / f"{name}.parquet")
    source = Source(open_dataset(tmp_path / "orders"), ("size",), "y")
    with pytest.raises(ValueError, match="of column 'size' are stored in different orders"):
        take_survey(source)


EVENTS = RNG.permutation(np.arange(N) // 4)  # all over the files


@pytest.mark.parametrize("event", [EVENTS, EVENTS.astype(float), EVENTS.astype(str), EVENTS % 600])
def test_groups_are_held_out_as_a_whole(event: Any, tmp_path: Path) -> None:
    folder = write(tmp_path, event=event, run=np.arange(N) % 2)
    for by in (("event",), ("event", "run")):
        found = survey(folder, n_held=150, group=by)
        held, sample = found.held.rows, found.sample.rows
        label = np.array([f"{a} {b}" for a, b in zip(event, np.arange(N) % 2, strict=True)])
        label = label if len(by) == 2 else event
        assert len(held) > 0
        assert np.array_equal(np.sort(held), np.flatnonzero(np.isin(label, label[held])))
        assert not np.isin(label[sample], label[held]).any()
        # one key for a group, and one group for a key
        assert found.sample.group is not None
        pairs = set(zip(label[sample].tolist(), found.sample.group.tolist(), strict=True))
        assert len(pairs) == len(set(label[sample].tolist()))
        assert {4321, 4000, 17, 4900, 2500} <= set(sample.tolist())  # like no others
        drawn = found.sample.stands_for > 1
        assert found.sample.weight[drawn].sum() == pytest.approx(N)


def test_groups_that_cannot_be_held_out_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path, one=np.zeros(N), gap=[None, *range(N - 1)])
    with pytest.raises(ValueError, match=r"'gap' is missing in row 0 .* belong to an event"):
        survey(folder, group=("gap",))
    with pytest.raises(ValueError, match="one name too few groups to hold some out at random"):
        survey(folder, n_held=1, group=("one",))
    assert survey(folder, group=("one",)).held.rows.tolist() == []
    drawn = DrawnGroups(100, of=100, seed=0, by=("one",))
    rows = pa.record_batch({GROUP: np.zeros(350, np.uint64)})
    drawn.see(rows, np.arange(350))
    with pytest.raises(ValueError, match="one group of one has more than 400 rows; a group is"):
        drawn.see(rows, np.arange(350, 700))


def test_groups_are_let_go_where_they_become_too_many() -> None:
    drawn, keys = DrawnGroups(100, of=200, seed=0, by=("g",)), np.arange(5000, dtype=np.uint64)
    for start in range(0, 5000, 250):
        part = np.repeat(keys[start : start + 250], 2)
        drawn.see(pa.record_batch({GROUP: part}), np.arange(2 * start, 2 * start + 500))
        assert drawn.n_rows <= 600
    kept = drawn.kept({})
    assert kept.sum() == 100
    numbers = np.concatenate(drawn.numbers)[kept]
    assert (np.bincount(numbers // 2) % 2 == 0).all()  # both rows of every group


def test_signed_weights_are_read_if_they_may_be(tmp_path: Path) -> None:
    signed = np.where(np.arange(N) % 5 > 3, -0.5, 1.5)
    folder = write(tmp_path, w=signed)
    with pytest.raises(ValueError, match=r"the weight 'w' is -0.5 in row 4 .*signed_weights=True"):
        survey(folder, "w")
    found = survey(folder, "w", signed=True)
    assert found.is_negative
    assert found.total == pytest.approx(signed.sum())
    assert np.array_equal(found.sample.weight / found.sample.stands_for, signed[found.sample.rows])
    assert not survey(write(tmp_path), "w").is_negative
