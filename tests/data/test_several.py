"""Several tables as one: order, patterns, classes, and what does not fit together."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
import uproot

from isotone.data.dataset import Dataset
from isotone.data.several import expand, join, open_tables, with_class
from isotone.data.table import Table, open_table, write_table


def write(path: Path, *x: float, **more: list[object]) -> str:
    batch = pa.RecordBatch.from_pydict({"x": list(x)} | more)
    write_table(path, batch.schema, [batch])
    return str(path)


def column(table: Table, name: str = "x") -> list[object]:
    return [cell for batch in table.batches([name]) for cell in batch.column(name).to_pylist()]


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    with uproot.recreate(tmp_path / "t.root") as file:
        for i, name in enumerate(("B0/Tree", "Bs/Tree", "Other")):
            file.mktree(name, {"x": "f8"}).extend({"x": [float(i)]})
    return tmp_path / "t.root"


def test_rows_come_in_the_order_of_the_paths(tmp_path: Path) -> None:
    paths = [write(tmp_path / "b.csv", 3.0), write(tmp_path / "a.parquet", 1.0, 2.0)]
    table = open_tables(paths)
    assert [float(str(x)) for x in column(table)] == [3.0, 1.0, 2.0]
    assert table.path == f"{paths[0]} and 1 more"
    assert [part.path for part in table.parts] == paths
    assert table.local_files == [Path(path) for path in paths]


def test_a_pattern_stands_for_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    for i in (2, 0, 1):
        write(tmp_path / f"run{i}.parquet", float(i))
    table = open_tables([str(tmp_path / "run*.parquet")])
    assert column(table) == [0.0, 1.0, 2.0]
    assert isinstance(table, Dataset)  # which may be larger than memory
    assert table.n_rows == 3


def test_a_pattern_goes_before_the_tree(tmp_path: Path) -> None:
    for i in (1, 0):
        write(tmp_path / f"{i}.root:T", float(i))
    assert column(open_tables([f"{tmp_path}/*.root:T"])) == [0.0, 1.0]


def test_a_file_whose_name_looks_like_a_pattern_is_itself(tmp_path: Path) -> None:
    path = write(tmp_path / "a[1].csv", 4.0)
    assert expand(path) == [path]


def test_a_pattern_without_a_match(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file matches '.*/x.*'; a pattern must match"):
        open_tables([f"{tmp_path}/x*.csv"])


def test_several_trees_of_one_file(trees: Path) -> None:
    assert column(open_tables([f"{trees}:Other", f"{trees}:B0/Tree"])) == [2.0, 0.0]
    assert column(open_tables([f"{trees}:*/Tree"])) == [0.0, 1.0]
    with pytest.raises(ValueError, match=r"no tree of .* matches 'D\*'; .*'B0/Tree', 'Bs/Tree'"):
        open_tables([f"{trees}:D*"])


def test_directories_and_files_together(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    write(tmp_path / "d" / "a.parquet", 1.0)
    write(tmp_path / "d" / "b.parquet", 2.0)
    table = open_tables([str(tmp_path / "d"), write(tmp_path / "c.parquet", 3.0)])
    assert column(table) == [1.0, 2.0, 3.0]
    assert len(table.parts) == 3


def test_columns_may_have_another_order_but_not_be_missing(tmp_path: Path) -> None:
    a = write(tmp_path / "a.parquet", 1.0, y=[5.0])
    batch = pa.RecordBatch.from_pydict({"y": [6.0], "x": [2.0]})
    write_table(tmp_path / "b.csv", batch.schema, [batch])
    table = open_tables([a, str(tmp_path / "b.csv")])
    assert [float(str(y)) for y in column(table, "y")] == [5.0, 6.0]
    other = open_tables([a, write(tmp_path / "c.csv", 1.0)])
    with pytest.raises(ValueError, match=r"c\.csv' has no column 'y'"):
        list(other.batches(["y"]))
    with pytest.raises(ValueError, match=r"c\.csv' has no column 'y', which the model needs"):
        other.require(["y"])


def test_types_are_widened_or_refused(tmp_path: Path) -> None:
    whole, text = pa.table({"x": pa.array([1], pa.int32())}), pa.table({"x": ["a"]})
    pa.parquet.write_table(whole, tmp_path / "a.parquet")
    pa.parquet.write_table(text, tmp_path / "c.parquet")
    a, b, c = tmp_path / "a.parquet", write(tmp_path / "b.parquet", 0.5), tmp_path / "c.parquet"
    assert join([open_table(a), open_table(b)]).schema(["x"]).types == [pa.float64()]
    with pytest.raises(ValueError, match="column 'x' is of type int32 in some tables and string"):
        join([open_table(a), open_table(c)]).schema(["x"])


def test_a_class_is_one_more_column(tmp_path: Path) -> None:
    signal = with_class(open_tables([write(tmp_path / "s.csv", 1.0, 2.0)]), "signal", 1)
    background = with_class(open_tables([write(tmp_path / "b.csv", 3.0)]), "signal", 0)
    table = join([signal, background])
    assert table.columns == ("x", "signal")
    (first, second) = table.batches(["signal", "x"])
    assert first.to_pydict() == {"signal": [1, 1], "x": ["1", "2"]}
    assert second.column("signal").to_pylist() == [0]
    assert table.schema(["signal"]).types == [pa.int64()]
    assert column(table, "signal") == [1, 1, 0]
    with pytest.raises(ValueError, match="has a column 'x' already, which is to hold the class"):
        with_class(open_table(tmp_path / "s.csv"), "x", 1)


def test_every_file_of_a_class_knows_it(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{i}.csv", float(i)) for i in range(2)]
    table = with_class(open_tables(paths), "signal", 1)
    assert [part.path for part in table.parts] == paths
    assert [column(part, "signal") for part in table.parts] == [[1], [1]]
