"""A model where users live: a function of DuckDB, an expression of polars, a model of MLflow.

All of them score raw columns with the engine, and give its bits. What they need is imported when
they are called. A model card, as model hubs show it, is text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.names import by_name, resolver

if TYPE_CHECKING:
    from isotone.integrations.duckdb import register_in_duckdb as register_in_duckdb
    from isotone.integrations.mlflow import log_to_mlflow as log_to_mlflow
    from isotone.integrations.mlflow import save_to_mlflow as save_to_mlflow
    from isotone.integrations.model_card import describe_model as describe_model
    from isotone.integrations.polars import polars_expression as polars_expression

_HOME = by_name(
    {
        "duckdb": ("register_in_duckdb",),
        "mlflow": ("log_to_mlflow", "save_to_mlflow"),
        "model_card": ("describe_model",),
        "polars": ("polars_expression",),
    }
)

__all__ = list(_HOME)

__getattr__ = resolver(__name__, _HOME)
