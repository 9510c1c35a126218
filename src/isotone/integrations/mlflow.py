"""MLflow: a model file as a pyfunc model, with its columns as the signature.

`mlflow.pyfunc.load_model` gives a model whose `predict` takes a raw table. The model file is kept
as it is, so that `isotone certify` checks what MLflow serves.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa

import isotone
from isotone.extras import lacking
from isotone.frozen.loading import load
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.columns import Number
from isotone.integrations.scorer import Output, Scorer

_FILE = "model.isotone"


def save_to_mlflow(
    frozen: FrozenNetwork, path: str | Path, *, output: Output = "score", **options: Any
) -> None:
    """Write a model of MLflow into a new folder.

    Parameters
    ----------
    output : what `predict` gives, the "score" or the "probability"; `params={"output": ...}` and
        `params={"on_unseen": ...}` of `predict` change it
    options : others of `mlflow.pyfunc.save_model`, such as `metadata`
    """
    _write(frozen, output, "save_model", {"path": str(path)} | options)


def log_to_mlflow(frozen: FrozenNetwork, *, output: Output = "score", **options: Any) -> Any:
    """Log the model to the run of MLflow that is active; gives what `mlflow.pyfunc` gives.

    Parameters
    ----------
    output : as for `save_to_mlflow`
    options : those of `mlflow.pyfunc.log_model`, such as `name` and `registered_model_name`
    """
    return _write(frozen, output, "log_model", {"name": "model"} | options)


def _write(frozen: FrozenNetwork, output: Output, how: str, options: dict[str, Any]) -> Any:
    Scorer(frozen, output)  # refuses an output that the network does not have
    try:
        import mlflow.pyfunc
    except ModuleNotFoundError as error:
        raise ImportError(lacking(f"`{how}`", "mlflow-skinny", None)) from error
    facts = {"fingerprint": frozen.fingerprint, "isotone": isotone.__version__}
    options = {
        "loader_module": __name__,
        "signature": _signature(frozen, output),
        "pip_requirements": [f"isotone=={isotone.__version__}"],
        **options,
        "metadata": facts | (options.get("metadata") or {}),
    }
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*input example was not provided")  # may be given
        frozen.save(Path(folder) / _FILE)
        return getattr(mlflow.pyfunc, how)(data_path=str(Path(folder) / _FILE), **options)


def _signature(frozen: FrozenNetwork, output: Output) -> Any:
    from mlflow.models.signature import ModelSignature
    from mlflow.types import schema

    types: Any = schema
    # a double of MLflow would refuse whole numbers and booleans
    columns = [
        types.ColSpec(types.AnyType() if isinstance(column, Number) else "string", column.name)
        for column in frozen.inputs.columns
    ]
    results = [types.ColSpec("double", name) for name in Scorer(frozen, output).fields]
    defaults = {"output": output, "on_unseen": "error"}
    parameters = [types.ParamSpec(name, "string", value) for name, value in defaults.items()]
    return ModelSignature(
        types.Schema(columns), types.Schema(results), types.ParamSchema(parameters)
    )


class _Model:
    """What `mlflow.pyfunc.load_model` wraps."""

    def __init__(self, frozen: FrozenNetwork) -> None:
        self.frozen = frozen

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """Scores of a raw table as a data frame, one column per output."""
        import pandas

        given = {"output": "score", "on_unseen": "error"} | (params or {})
        policy = given["on_unseen"]
        scorer = Scorer(self.frozen, given["output"], _policy(policy))
        table = pa.Table.from_pandas(model_input[list(scorer.columns)], preserve_index=False)
        scores = scorer(table.columns)
        columns = scores.flatten() if len(scorer.fields) > 1 else [scores]
        values = {
            name: column.to_numpy(zero_copy_only=False)
            for name, column in zip(scorer.fields, columns, strict=True)
        }
        return pandas.DataFrame(values, index=model_input.index)


def _policy(text: str) -> Any:
    """A policy for values never seen, of which MLflow hands on text: a word or a number."""
    try:
        return float(text)
    except ValueError:
        return text


def _load_pyfunc(path: str) -> _Model:
    """Called by MLflow with the path of the model file."""
    return _Model(load(path))
