"""A model as a function of DuckDB and as an expression of polars, against the engine alone.

Question: what does it cost to score where the rows are, over Arrow, instead of in an array?
Data: ten million rows of four columns; the paper's network, 4-20-20-1.
Method: one thread each, contestants taking turns in one process; the best of the rounds.
Run time: about a minute; ``--quick`` seconds.
"""

import argparse
from functools import partial
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import torch

from bench.race import Task, pin, race
from isotone import Engine, MonotonicNetwork, freeze
from isotone.integrations import polars_expression, register_in_duckdb

NAMES = ["a", "b", "c", "d"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows")
    quick = parser.parse_args().quick
    n_rows, core = 100_000 if quick else 10_000_000, pin()
    torch.manual_seed(0)
    frozen = freeze(MonotonicNetwork([4, 20, 20, 1], monotonic_cst=[1, 1, 0, 1]), features=NAMES)
    X = np.random.default_rng(0).normal(size=(n_rows, 4))
    table = pa.table(dict(zip(NAMES, X.T.copy(), strict=True)))
    connection = duckdb.connect(config={"threads": 1})
    register_in_duckdb(connection, frozen)
    connection.register("rows", table)
    frame, score = pl.from_arrow(table), polars_expression(frozen)
    assert isinstance(frame, pl.DataFrame)
    query = f"SELECT sum(score({', '.join(NAMES)})) FROM rows"
    ways: dict[str, Any] = {
        "engine, array": partial(Engine(frozen), X),
        "engine, Arrow table": partial(Engine(frozen), table),
        "polars": lambda: frame.select(score),
        "DuckDB": lambda: connection.sql(query).fetchall(),
    }
    expected = float(Engine(frozen)(X).sum())
    assert np.isclose(frame.select(score.sum()).item(), expected)
    assert np.isclose(connection.sql(query).fetchall()[0][0], expected)
    tasks: list[Task] = list(ways.values())
    times = [min(each) for each in race(tasks, 3, 0.0)]
    print(f"{n_rows:,} rows, core {core}")
    for name, seconds in zip(ways, times, strict=True):
        print(f"{name:20} {n_rows / seconds / 1e6:6.2f} M rows/s, {times[0] / seconds:.2f}")


if __name__ == "__main__":
    main()
