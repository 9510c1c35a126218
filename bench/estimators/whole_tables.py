"""The estimators with all defaults against four boosters with the same directions, whole tables.

Question: does a user of LightGBM lose accuracy or time by switching?
Data: the ten public tables of `studies.tabular`, at full size; categories as indicators.
Protocol: 5 folds; every model with its defaults and one thread; log-loss or RMSE on test rows.
      The free network is scikit-learn's, of the same widths and as many members, stopped early.
      No rule of the estimators was made with these tables; see docs/estimators.md.
Run time: about an hour on one quiet core, most of it CatBoost; --only NAMES does a part.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb
from catboost import CatBoostClassifier, CatBoostRegressor
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isotone import MonotonicClassifier, MonotonicRegressor
from studies.tabular.datasets import LOADERS, Dataset, load

OURS = ("isotone", "isotone, teacher")
BOOSTERS = ("LightGBM", "XGBoost", "HistGradientBoosting", "CatBoost")
FREE = "free network"  # without directions, and of any slope
NAMES = (*OURS, *BOOSTERS, "LightGBM, 1000", FREE)

Rows = NDArray[np.intp]
Found = dict[str, dict[str, list[float]]]  # by model: "error" and "seconds" of every fold


def make_free(is_classes: bool, seed: int) -> Any:
    """The average of four ordinary networks of the widths that isotone's members have."""
    options = {"hidden_layer_sizes": (32, 32), "early_stopping": True}
    kind = MLPClassifier if is_classes else MLPRegressor
    models = [
        make_pipeline(StandardScaler(), kind(random_state=seed + k, **options)) for k in range(4)
    ]
    members = [(f"member {k}", model) for k, model in enumerate(models)]
    if is_classes:
        return VotingClassifier(members, voting="soft")
    return TransformedTargetRegressor(VotingRegressor(members), transformer=StandardScaler())


def make(name: str, is_classes: bool, cst: list[int], seed: int) -> Any:
    """A model with its defaults, one thread and these directions."""
    if name == FREE:
        return make_free(is_classes, seed)
    ours: dict[str, Any] = {"monotonic_cst": cst, "n_jobs": 1}
    trees = HistGradientBoostingClassifier if is_classes else HistGradientBoostingRegressor
    light: dict[str, Any] = {"monotone_constraints": cst, "n_jobs": 1, "verbose": -1}
    quiet = {"thread_count": 1, "verbose": 0, "allow_writing_files": False}
    kinds: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "isotone": (MonotonicClassifier, MonotonicRegressor, ours),
        "isotone, teacher": (
            MonotonicClassifier,
            MonotonicRegressor,
            ours | {"teacher": trees(monotonic_cst=cst, random_state=seed)},
        ),
        "LightGBM": (lgb.LGBMClassifier, lgb.LGBMRegressor, light),
        "XGBoost": (
            xgb.XGBClassifier,
            xgb.XGBRegressor,
            {"monotone_constraints": tuple(cst), "n_jobs": 1},
        ),
        "HistGradientBoosting": (
            HistGradientBoostingClassifier,
            HistGradientBoostingRegressor,
            {"monotonic_cst": cst},
        ),
        "CatBoost": (
            CatBoostClassifier,
            CatBoostRegressor,
            {"monotone_constraints": cst} | quiet,
        ),
        "LightGBM, 1000": (
            lgb.LGBMClassifier,
            lgb.LGBMRegressor,
            light | {"n_estimators": 1000},
        ),
    }
    classifier, regressor, options = kinds[name]
    return (classifier if is_classes else regressor)(random_state=seed, **options)


def fit_default(name: str, data: Dataset, train: Rows, seed: int) -> Any:
    cst = data.directions.astype(int).tolist()
    model = make(name, data.task == "classification", cst, seed)
    return model.fit(data.X[train], data.y[train])


def compare(
    data: Dataset,
    names: list[str],
    fit: Callable[[str, Dataset, Rows, int], Any] = fit_default,
) -> Found:
    """Errors and CPU seconds of every model in every fold; models take turns."""
    found: Found = {n: {"error": [], "seconds": []} for n in names}
    kind = StratifiedKFold if data.task == "classification" else KFold
    folds = kind(5, shuffle=True, random_state=0)
    for seed, (train, test) in enumerate(folds.split(data.X, data.y)):
        for name in names:
            start = time.process_time()
            model = fit(name, data, train, seed)
            found[name]["seconds"].append(time.process_time() - start)
            found[name]["error"].append(error_of(model, data, test))
    return found


def error_of(model: Any, data: Dataset, test: Rows) -> float:
    if data.task == "classification":
        return float(log_loss(data.y[test], model.predict_proba(data.X[test])))
    return float(np.sqrt(np.mean((model.predict(data.X[test]) - data.y[test]) ** 2)))


def report(data: Dataset, found: Found, names: list[str]) -> str:
    """A row of the table: errors, the difference to the best booster, and seconds."""
    errors = {name: np.array(found[name]["error"]) for name in names}
    peers = [name for name in BOOSTERS if name in names]
    best = min(peers, key=lambda name: float(errors[name].mean()))
    gaps = [(errors[n] - errors[best]) / errors[best].mean() * 100 for n in OURS if n in names]
    cells = [
        f"{data.name}, {len(data.X)} × {data.X.shape[1]}",
        "log-loss" if data.task == "classification" else "RMSE",
        *(f"{errors[name].mean():.4g}" for name in names),
        *(f"{gap.mean():+.1f} ± {gap.std(ddof=1) / np.sqrt(len(gap)):.1f} %" for gap in gaps),
        best,
        *(f"{np.mean(found[name]['seconds']):.1f}" for name in names),
    ]
    return "| " + " | ".join(cells) + " |"


def heading(names: list[str]) -> str:
    ours = [f"{name} to the best" for name in OURS if name in names]
    heads = ["table", "error", *names, *ours, "which", *(f"{name}, CPU s" for name in names)]
    return "| " + " | ".join(heads) + " |\n" + "| --- " * len(heads) + "|"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(LOADERS), help="tables, separated by commas")
    parser.add_argument("--models", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--out", type=Path, default=Path("results/whole_tables.json"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = options.models
    if not set(names) & set(BOOSTERS):
        parser.error(f"--models {' '.join(names)} has no booster to compare with; add LightGBM")
    print(heading(names))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in options.only.split(","):
        data = load(name)
        results[name] = compare(data, names)
        print(report(data, results[name], names), flush=True)
        options.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
