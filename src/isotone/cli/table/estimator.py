"""The estimator that `isotone train` fits, from the texts of its options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from isotone.checks import check_choice
from isotone.cli.console.options import lipschitz_of, one_number, pieces_of, size_of, sizes_of
from isotone.cli.table.columns import Columns
from isotone.cli.table.target import TargetColumn
from isotone.trigger.evaluators import parameters_for
from isotone.typing import ClassificationLoss, RegressionLoss

if TYPE_CHECKING:
    from isotone.estimators.estimator import MonotonicEstimator

_CLASSIFICATION, _REGRESSION = get_args(ClassificationLoss), get_args(RegressionLoss)


def loss_of(text: str | None) -> tuple[str, float | None]:
    """Name of a loss, and its parameter; an empty name if the target is to decide."""
    name, colon, parameter = (text or "").partition(":")
    if name:
        check_choice("--loss", name, [*_CLASSIFICATION, *_REGRESSION])
    if colon and name != "quantile":
        raise ValueError(f"`--loss {text}` has a parameter, but only quantile takes one")
    return name, one_number(parameter, "loss quantile:") if colon else None


def estimator_of(
    target: TargetColumn, columns: Columns, loss: str, level: float | None, class_weight: str
) -> MonotonicEstimator:
    """An estimator for this target, with the directions of the columns.

    Raises `ValueError` for options that do not fit the target.
    """
    from isotone.estimators.classifier import MonotonicClassifier
    from isotone.estimators.regressor import MonotonicRegressor

    options: dict[str, Any] = {
        "monotonic_cst": target.monotonic_cst(columns.directions, columns.features),
        "scaling": columns.scaling,
    }
    if target.classes is None:
        if class_weight != "none":
            raise ValueError(
                f"`--class-weight {class_weight}` is for classes but {target.name!r} is learned "
                "as a number; leave it out, or add `--loss cross_entropy`"
            )
        options["loss"] = loss or "squared_error"
        options |= {} if level is None else {"quantile": level}
        return MonotonicRegressor(**options)
    if loss in _REGRESSION or (loss not in ("", "cross_entropy") and len(target.classes) > 2):
        raise ValueError(
            f"`--loss {loss}` is for {'numbers' if loss in _REGRESSION else 'two classes'} but "
            f"{target.name!r} holds the classes {', '.join(target.classes[:5])}; choose "
            "--loss cross_entropy"
        )
    options["class_weight"] = None if class_weight == "none" else class_weight
    options["loss"] = loss or "cross_entropy"
    return MonotonicClassifier(positive=target.second, **options)


def settings_of(
    evaluator: str | None,
    columns: Columns,
    missing: str,
    lipschitz: str,
    knots: str,
    hidden_layer_sizes: str,
    group_size: str,
    n_members: int | None,
) -> dict[str, Any]:
    """Parameters of the estimator that decide the network, from texts."""
    settings: dict[str, Any] = {
        "lipschitz": lipschitz_of(lipschitz, columns.features),
        "knots": pieces_of(knots),
        "hidden_layer_sizes": sizes_of(hidden_layer_sizes),
        "group_size": "auto" if group_size == "auto" else size_of(group_size),
        "missing": missing,
        "n_members": 4 if n_members is None else n_members,
    }
    if evaluator is None:
        return settings
    open_ = {"knots": knots, "group_size": group_size, "n_members": n_members or "auto"}
    return _fitting(evaluator, settings, open_, columns)


def _fitting(
    evaluator: str, settings: dict[str, Any], asked: dict[str, Any], columns: Columns
) -> dict[str, Any]:
    """Settings of a network for an evaluator, from those that somebody asked for."""
    given = {name: value for name, value in settings.items() if asked.get(name) != "auto"}
    named = [*columns.categorical, *columns.orders]
    given |= {"categorical_features": named} if named else {}
    return parameters_for(evaluator, scaling=columns.scaling, **given)
