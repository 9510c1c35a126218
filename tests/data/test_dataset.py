"""Data sets: Parquet files that are one table, row by row and group by group."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from isotone.data.dataset import open_dataset


def write(folder: Path) -> None:
    (folder / "2024").mkdir()
    for name, values in (("b.parquet", [5, 6, 7]), ("2024/a.pq", [0, 1, 2, 3, 4])):
        table = pa.table({"a": values, "y": [v % 2 for v in values]})
        pa.parquet.write_table(table, folder / name, row_group_size=2)


def test_files_are_one_table_in_the_order_of_their_names(tmp_path: Path) -> None:
    write(tmp_path)
    dataset = open_dataset(tmp_path)
    rows = [v for batch in dataset.batches(["a"], 2) for v in batch.column("a").to_pylist()]
    assert rows == list(range(8))
    assert (dataset.n_rows, dataset.columns) == (8, ("a", "y"))
    assert [tuple(g[1:]) for g in dataset.groups] == [
        *((0, 0, 0, 2), (1, 2, 2, 2), (2, 4, 4, 1)),
        *((0, 0, 5, 2), (1, 2, 7, 1)),
    ]
    assert dataset.schema(["y"]) == pa.schema([("y", pa.int64())])


def test_a_group_is_read_alone(tmp_path: Path) -> None:
    write(tmp_path)
    dataset = open_dataset(tmp_path)
    for group in dataset.groups:
        batches = dataset.group_batches(group, ["a"], 1)
        rows = [value for batch in batches for value in batch.column("a").to_pylist()]
        assert rows == list(range(group.start, group.start + group.n_rows))


def test_what_is_no_data_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there are no Parquet files in .*; give another dir"):
        open_dataset(tmp_path)
    write(tmp_path)
    pa.parquet.write_table(pa.table({"a": [1]}), tmp_path / "c.parquet")
    with pytest.raises(ValueError, match=r"c.parquet' has no column 'y'; give one of its columns"):
        open_dataset(tmp_path).find(["a", "y"])
    (tmp_path / "d.parquet").write_text("no table")
    with pytest.raises(ValueError, match=r"cannot read .*d.parquet'"):
        open_dataset(tmp_path)
