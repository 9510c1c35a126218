"""DuckDB: a model as a function of SQL, vector by vector over Arrow."""

from __future__ import annotations

import inspect
from typing import Any

from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import Policy
from isotone.integrations.scorer import Output, Scorer


def register_in_duckdb(
    connection: Any,
    frozen: FrozenNetwork,
    name: str = "score",
    *,
    output: Output = "score",
    on_unseen: Policy = "error",
) -> None:
    """Make a model a function of SQL, called with the model's raw columns in their order.

    `frozen.inputs.names` is that order. Numbers are doubles and categories text; null is a missing
    value. Several outputs are a struct. Exports (`isotone export --to sql`) need no Python at all.

    Parameters
    ----------
    connection : of DuckDB
    name : of the function
    output : the "score", or the "probability"
    on_unseen : as for `isotone.Engine`; a row without a score is null

    Examples
    --------
    >>> import duckdb, isotone
    >>> network = isotone.MonotonicNetwork([2, 8, 1], monotonic_cst=[1, -1])
    >>> frozen = isotone.freeze(network, features=["income", "debt"])
    >>> with duckdb.connect() as connection:
    ...     register_in_duckdb(connection, frozen)
    ...     rows = connection.sql("SELECT score(3, 1) > score(2, 1)").fetchall()
    >>> rows
    [(True,)]
    """
    scorer = Scorer(frozen, output, on_unseen)
    types = ["DOUBLE" if numeric else "VARCHAR" for numeric in scorer.numeric]
    connection.create_function(
        name,
        _with_arguments(scorer),
        types,
        _result(scorer),
        type="arrow",
        null_handling="special",
    )


def _with_arguments(scorer: Scorer) -> Any:
    """A function that says how many arguments it has: DuckDB counts them."""

    def score(*columns: Any) -> Any:
        return scorer(columns)

    kind = inspect.Parameter.POSITIONAL_ONLY
    arguments = [inspect.Parameter(f"column_{i}", kind) for i in range(len(scorer.columns))]
    score.__signature__ = inspect.Signature(arguments)  # type: ignore[attr-defined]
    return score


def _result(scorer: Scorer) -> str:
    if len(scorer.fields) == 1:
        return "DOUBLE"
    fields = ('"{}" DOUBLE'.format(name.replace('"', '""')) for name in scorer.fields)
    return f"STRUCT({', '.join(fields)})"
