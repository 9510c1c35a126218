"""`isotone train`: from a table to a certified model file."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

import isotone
from isotone.atomic import replacing
from isotone.certificate import Certificate
from isotone.cli import terminal
from isotone.cli.columns import Columns, choose_columns, counts_of, listed, one_number
from isotone.cli.terminal import output, printable
from isotone.elementary import Floats
from isotone.frozen import FrozenNetwork
from isotone.table import open_table, read_numbers

if TYPE_CHECKING:
    from isotone.certified import CertifiedEstimator
    from isotone.training import History

_CLASSIFICATION = {
    "cross-entropy": "log_loss",
    "hinge": "hinge",
    "dynamic-hinge": "dynamic_hinge",
}
_REGRESSION = {
    "squared-error": "squared_error",
    "absolute-error": "absolute_error",
    "quantile": "quantile",
}


def train(
    table: Annotated[str, typer.Argument(help="CSV, Parquet or ROOT (file.root:tree).")],
    target: Annotated[str, typer.Option(help="Column to learn: 0 and 1, or numbers.")],
    out: Annotated[Path, typer.Option(help="Directory for the model and what goes with it.")],
    features: Annotated[str | None, typer.Option(help="Columns a,b,...; default: all.")] = None,
    increasing: Annotated[str | None, typer.Option(help="More of these never lowers it.")] = None,
    decreasing: Annotated[str | None, typer.Option(help="More of these never raises it.")] = None,
    lipschitz: Annotated[str, typer.Option(help="λ: 2, or a=2,b=0.5, or auto.")] = "auto",
    log: Annotated[str | None, typer.Option(help="Take the logarithm of these.")] = None,
    hidden: Annotated[str, typer.Option(help="Widths of the hidden layers.")] = "32,32",
    group_size: Annotated[
        str, typer.Option(help="Units sorted together: 2, full, auto.")
    ] = "auto",
    loss: Annotated[str | None, typer.Option(help="Default: by the target.")] = None,
    epochs: Annotated[int, typer.Option(help="Passes over the rows.")] = 100,
    members: Annotated[int, typer.Option(help="Networks to average into one.")] = 4,
    seed: Annotated[int, typer.Option(help="Same seed, same model.")] = 0,
    weights: Annotated[str | None, typer.Option(help="Column of weights of the rows.")] = None,
    validation: Annotated[str, typer.Option(help="A fraction of the rows, or a table.")] = "0.2",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a killed run.")] = False,
) -> None:
    """Train a model on a table, certify it, and say how good it is on rows it has not seen.

    Losses: cross-entropy, hinge, dynamic-hinge for a target of 0 and 1; squared-error,
    absolute-error, quantile for numbers. Writes model.isotone, certificate.json, history.json and
    metrics.json.
    """
    source = open_table(table)
    columns = choose_columns(source, target, features, increasing, decreasing, log, weights)
    training, held_out = _rows(table, validation, columns, weights)
    estimator = _estimator(columns, training[1], loss)
    unseen = set(held_out[1].tolist()) - set(training[1].tolist())
    if hasattr(estimator, "class_weight") and unseen:
        raise ValueError(
            f"the validation rows have a {target!r} of {min(unseen):g}, which no training row has"
        )
    estimator.set_params(
        lipschitz=_lipschitz(lipschitz, columns),
        hidden_layer_sizes=counts_of(hidden, "hidden"),
        group_size=_group_size(group_size),
        max_iter=epochs,
        n_members=members,
        random_state=seed,
        verbose=True,
    )
    X, y, weight = training
    checkpoints = out / ".isotone-checkpoints"
    if not resume:
        remove_checkpoints(checkpoints)
    estimator.keep_checkpoints(checkpoints).fit(X, y, sample_weight=weight)
    provenance = {"table": table, "target": target, "rows": len(X), "seed": seed}
    certificate = isotone.certify(
        replace(
            estimator.network_,
            features=columns.features,
            provenance=dict(estimator.network_.provenance) | provenance,
        )
    )
    metrics = _metrics(certificate.frozen, *held_out)
    _write(certificate, estimator.history_, metrics, out)
    remove_checkpoints(checkpoints)
    _report(certificate, metrics, out)
    raise typer.Exit(0 if certificate.holds else 1)


Rows = tuple[Floats, Floats, Floats | None]


def _rows(table: str, validation: str, columns: Columns, weights: str | None) -> tuple[Rows, Rows]:
    """Rows to train on, and rows to judge by: a part of the table, or another one."""
    from isotone.rows import split

    rows = _read(table, columns, weights)
    if validation == table:
        raise ValueError("`--validation` is the table itself; give other rows, or a fraction")
    try:
        fraction = float(validation)
    except ValueError:
        return rows, _read(validation, columns, weights)
    kept, left = split(len(rows[0]), fraction)
    return _part(rows, kept), _part(rows, left)


def _read(table: str, columns: Columns, weights: str | None) -> Rows:
    names = [*columns.features, columns.target, *([weights] if weights else [])]
    values = read_numbers(table, names)
    if len(values) == 0:
        raise ValueError(f"{table!r} has no rows; training needs some")
    n = len(columns.features)
    return values[:, :n], values[:, n], values[:, n + 1] if weights else None


def _part(rows: Rows, mask: Any) -> Rows:
    X, y, weight = rows
    return X[mask], y[mask], None if weight is None else weight[mask]


def _estimator(columns: Columns, y: Floats, loss: str | None) -> CertifiedEstimator:
    from isotone.estimators import MonotonicClassifier, MonotonicRegressor

    binary = np.array_equal(np.unique(y), [0, 1])
    name, colon, parameter = (loss or ("cross-entropy" if binary else "squared-error")).partition(
        ":"
    )
    if name not in (*_CLASSIFICATION, *_REGRESSION):
        choices = ", ".join([*_CLASSIFICATION, *_REGRESSION])
        raise ValueError(f"`--loss {loss}` is unknown; choose from {choices}")
    if colon and name != "quantile":
        raise ValueError(f"`--loss {loss}` has a parameter, but only quantile:0.9 takes one here")
    if name in _CLASSIFICATION and not binary:
        raise ValueError(
            f"`--loss {name}` needs a target of 0 and 1 but {columns.target!r} holds "
            f"{', '.join(f'{value:g}' for value in np.unique(y)[:4])}, ...; choose squared-error, "
            "or make such a column"
        )
    options: dict[str, Any] = {
        "monotonic_cst": list(columns.monotonic_cst),
        "scaling": ["log" if kind == "log" else "auto" for kind in columns.kinds],
    }
    if name in _CLASSIFICATION:
        return MonotonicClassifier(**options | {"loss": _CLASSIFICATION[name]})
    if colon:
        options["quantile"] = one_number(parameter, "loss quantile:")
    return MonotonicRegressor(**options | {"loss": _REGRESSION[name]})


def _lipschitz(text: str, columns: Columns) -> Any:
    if text == "auto":
        return "auto"
    pairs = [part.partition("=") for part in listed(text)]
    try:
        if len(pairs) == 1 and not pairs[0][1]:
            return float(text)
        named = {name.strip(): float(value) for name, _, value in pairs}
    except ValueError as error:
        raise ValueError(f"`--lipschitz {text}` must be 2, or a=2,b=0.5, or auto") from error
    unknown = [name for name in named if name not in columns.features]
    if unknown or len(named) < len(pairs):
        name = unknown[0] if unknown else "a feature twice"
        raise ValueError(f"`--lipschitz {text}` names {name}; give every feature once")
    missing = [name for name in columns.features if name not in named]
    if missing:
        raise ValueError(f"`--lipschitz {text}` lacks {missing[0]!r}; give λ for every feature")
    return [named[name] for name in columns.features]


def remove_checkpoints(directory: Path) -> None:
    """Remove what earlier runs left there, and nothing else."""
    for name in ("scan", "members"):
        (directory / name).unlink(missing_ok=True)
    if directory.is_dir() and not any(directory.iterdir()):
        directory.rmdir()


def _group_size(text: str) -> Any:
    if text in ("full", "auto"):
        return None if text == "full" else "auto"
    return int(one_number(text, "group-size"))


def _metrics(
    frozen: FrozenNetwork, X: Floats, y: Floats, weight: Floats | None
) -> dict[str, float]:
    """How good the model is on rows that it has not seen."""
    from sklearn import metrics

    score = frozen.score(X)
    weights = {"sample_weight": weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about metrics that these rows do not define: left out
        if frozen.outputs == "values":
            found = {
                "R2": metrics.r2_score(y, score, **weights),
                "RMSE": metrics.root_mean_squared_error(y, score, **weights),
            }
        else:
            found = {
                "AUC": metrics.roc_auc_score(y, score, **weights),
                "accuracy": metrics.accuracy_score(y, score >= 0, **weights),
                "log loss": metrics.log_loss(y, frozen.probability(X), labels=[0, 1], **weights),
            }
    defined = {name: float(value) for name, value in found.items() if math.isfinite(value)}
    return {"validation rows": float(len(y))} | defined


def _write(
    certificate: Certificate, history: History, metrics: dict[str, float], out: Path
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    replace(certificate.frozen, certificate=certificate.to_dict()).save(out / "model.isotone")
    texts = {
        "certificate.json": certificate.to_json(),
        "history.json": json.dumps(history.to_dict(), indent=1),
        "metrics.json": json.dumps(metrics, indent=1),
    }
    for name, text in texts.items():
        with replacing(out / name) as temporary:
            temporary.write_text(text)


def _report(certificate: Certificate, metrics: dict[str, float], out: Path) -> None:
    slopes = ", ".join(f"{value:.4g}" for value in np.unique(certificate.lipschitz))
    lines = {
        "certificate": "HOLDS" if certificate.holds else "FAILS",
        "guaranteed": certificate.guarantee,
        "λ, scaled": slopes,
    }
    judged = {name: f"{value:.5g}" for name, value in metrics.items()}
    output.print(terminal.facts(**lines, **judged))
    output.print(printable(f"written: {out / 'model.isotone'}"), soft_wrap=True)
