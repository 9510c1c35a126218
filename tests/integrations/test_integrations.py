"""Where users live, a model gives the bits of the engine, for raw columns of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import isotone
from isotone import FrozenNetwork
from isotone.integrations import polars_expression, register_in_duckdb, save_to_mlflow
from isotone.integrations.scorer import Scorer
from networks import small

RNG = np.random.default_rng(0)
N = 3000  # more than a vector of DuckDB
GRADE = pd.CategoricalDtype(["low", "medium", "high"], ordered=True)
TABLE = pd.DataFrame(
    {
        "income": np.where(RNG.random(N) < 0.2, np.nan, RNG.exponential(30.0, N)),
        "city": RNG.choice(["Oslo", "Rome", None], N),
        "grade": pd.Categorical(RNG.choice(GRADE.categories, N), dtype=GRADE),
        "age": RNG.normal(40.0, 9.0, N),
    }
)
PAID = TABLE["income"].fillna(5.0) + 10.0 * TABLE["grade"].cat.codes + RNG.normal(size=N) > 30.0
KIND = np.where(PAID, RNG.choice(["gold", 'sil"ver'], N), "none")
TEXTS = TABLE.astype({"grade": "str"})  # a database has no ordered categories
OPTIONS = {"missing": "indicator", "lipschitz": 1.0, "max_iter": 2, "random_state": 0}


@pytest.fixture(scope="module")
def two() -> FrozenNetwork:
    model = isotone.MonotonicClassifier({"income": 1, "grade": 1}, **OPTIONS)
    return model.fit(TABLE, PAID).network_


@pytest.fixture(scope="module")
def three() -> FrozenNetwork:
    return isotone.MonotonicClassifier(**OPTIONS).fit(TABLE, KIND).network_


def query(frozen: FrozenNetwork, table: pd.DataFrame, **options: Any) -> pa.Table:
    """Scores of a table by DuckDB, called with columns in the order of the model."""
    with duckdb.connect() as connection:
        register_in_duckdb(connection, frozen, "f", **options)
        connection.register("rows", pa.Table.from_pandas(table))
        names = ", ".join(frozen.inputs.names)
        found = connection.sql(f"SELECT f({names}) AS score FROM rows").arrow()
        return found if isinstance(found, pa.Table) else found.read_all()


def test_duckdb_gives_the_bits_of_the_engine(two: FrozenNetwork) -> None:
    for output, expected in (("score", two.score(TABLE)), ("probability", two.probability(TABLE))):
        found = query(two, TEXTS, output=output)["score"]
        assert found.to_numpy().tolist() == expected.tolist()


def test_duckdb_gives_several_outputs_as_a_struct(three: FrozenNetwork) -> None:
    found = query(three, TEXTS, output="probability")["score"].combine_chunks()
    assert [field.name for field in found.type] == three.names_of("probability")
    columns = np.stack([column.to_numpy() for column in found.flatten()], axis=1)
    assert np.array_equal(columns, three.probability(TABLE))


def test_polars_gives_the_bits_of_the_engine(two: FrozenNetwork, three: FrozenNetwork) -> None:
    table = pl.from_pandas(TEXTS)
    shuffled = table.select("age", "grade", "income", "city")
    score = polars_expression(two)
    assert shuffled.with_columns(score)["score"].to_list() == two.score(TABLE).tolist()
    lazy = table.lazy().select(polars_expression(three, output="probability"))
    found = lazy.collect(engine="streaming")["probability"].struct.unnest()
    assert found.columns == three.names_of("probability")
    assert np.array_equal(found.to_numpy(), three.probability(TABLE))


def test_values_never_seen_get_what_the_policy_says(two: FrozenNetwork) -> None:
    strange = TEXTS.head(3).assign(city=["Oslo", "Atlantis", None])
    with pytest.raises(duckdb.Error, match=r"in a batch of 3 rows: .*Atlantis"):
        query(two, strange)
    assert query(two, strange, on_unseen="skip")["score"].to_pylist()[1] is None
    assert query(two, strange, on_unseen=-7.0)["score"].to_pylist()[1] == -7.0
    skipped = polars_expression(two, on_unseen="skip")
    assert pl.from_pandas(strange).select(skipped)["score"].null_count() == 1


def test_mlflow_serves_the_model_file_as_it_is(two: FrozenNetwork, tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow.pyfunc")
    save_to_mlflow(two, tmp_path / "saved", output="probability", metadata={"owner": "us"})
    served = mlflow.load_model(str(tmp_path / "saved"))
    found = served.predict(TEXTS)
    assert found.columns.tolist() == ["probability"]
    assert found["probability"].tolist() == two.probability(TABLE).tolist()
    assert (
        served.predict(TEXTS, {"output": "score"})["score"].tolist() == two.score(TABLE).tolist()
    )
    (file,) = (tmp_path / "saved").rglob("*.isotone")
    assert isotone.load(file).fingerprint == served.metadata.metadata["fingerprint"]
    assert served.metadata.metadata["owner"] == "us"
    whole = TEXTS.assign(age=TEXTS["age"].round().astype("int64"))
    assert served.predict(whole)["probability"].tolist() == two.probability(whole).tolist()
    strange = TEXTS.head(1).assign(city="Atlantis")
    assert served.predict(strange, {"on_unseen": "-1", "output": "score"})["score"].tolist() == [
        -1
    ]


def test_a_scorer_refuses_what_it_cannot_give(two: FrozenNetwork) -> None:
    with pytest.raises(ValueError, match="probabilities need outputs='logits'"):
        Scorer(small(), "probability")
    with pytest.raises(ValueError, match="output"):
        Scorer(two, "class")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a scorer takes a FrozenNetwork"):
        Scorer("model.isotone")  # type: ignore[arg-type]
