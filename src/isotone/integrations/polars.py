"""polars: a model as an expression, in frames that are in memory, lazy or streamed."""

from __future__ import annotations

from typing import Any

from isotone.extras import lacking
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import Policy
from isotone.integrations.scorer import Output, Scorer


def polars_expression(
    frozen: FrozenNetwork, *, output: Output = "score", on_unseen: Policy = "error"
) -> Any:
    """The score of every row as an expression of polars, named `score` or `probability`.

    It reads the model's raw columns by name. Several outputs are a struct.

    Parameters
    ----------
    output : the "score", or the "probability"
    on_unseen : as for `isotone.Engine`; a row without a score is null

    Examples
    --------
    >>> import polars, isotone
    >>> network = isotone.MonotonicNetwork([2, 8, 1], monotonic_cst=[1, -1])
    >>> frozen = isotone.freeze(network, features=["income", "debt"])
    >>> table = polars.DataFrame({"debt": [1.0, 1.0], "income": [2.0, 3.0]})
    >>> table.with_columns(polars_expression(frozen))["score"].is_sorted()
    True
    """
    try:
        import polars
    except ModuleNotFoundError as error:
        raise ImportError(lacking("`polars_expression`", "polars", None)) from error
    scorer = Scorer(frozen, output, on_unseen)
    result: Any = polars.Float64()
    if len(scorer.fields) > 1:
        result = polars.Struct(dict.fromkeys(scorer.fields, polars.Float64()))

    def score(rows: Any) -> Any:
        return polars.Series(
            scorer([rows.struct.field(name).to_arrow() for name in scorer.columns])
        )

    together = polars.struct([polars.col(name) for name in scorer.columns])
    return together.map_batches(score, return_dtype=result, is_elementwise=True).alias(output)
