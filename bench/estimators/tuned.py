"""The estimators with all defaults against four boosters that Optuna tunes.

Question: how much of the difference of `bench.estimators.whole_tables` is a matter of tuning?
Data: its tables, folds and directions.
Protocol: in each fold, 30 trials of the TPE sampler on 80 % of the training rows, judged and
      stopped early by the other 20 %; the best settings and number of trees are then fitted to
      all training rows. One thread. Errors of `isotone` are read from the results of
      `whole_tables`.
Run time: hours for all; --only and --models do a part, and what --out holds is not run again.
"""

from __future__ import annotations

import argparse
import json
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import lightgbm as lgb
import optuna
from optuna.distributions import FloatDistribution as Float
from optuna.distributions import IntDistribution as Int
from sklearn.model_selection import train_test_split

from bench.estimators.whole_tables import BOOSTERS, Rows, compare, heading, make, report
from studies.tabular.datasets import LOADERS, Dataset, load

N_TRIALS = 30
PATIENCE = 30  # trees without a better score on the held-out rows

RATE = Float(0.01, 0.3, log=True)
L2 = Float(1e-3, 30.0, log=True)
SHARE = Float(0.4, 1.0)  # of columns or rows
LEAVES = Int(4, 128, log=True)
LEAF_ROWS = Int(2, 100, log=True)

SPACES: dict[str, dict[str, Any]] = {
    "LightGBM": {
        "learning_rate": RATE,
        "num_leaves": LEAVES,
        "min_child_samples": LEAF_ROWS,
        "reg_lambda": L2,
        "colsample_bytree": SHARE,
        "subsample": SHARE,
    },
    "XGBoost": {
        "learning_rate": RATE,
        "max_depth": Int(2, 8),
        "min_child_weight": Float(0.5, 50.0, log=True),
        "reg_lambda": L2,
        "colsample_bytree": SHARE,
        "subsample": SHARE,
    },
    "HistGradientBoosting": {  # has no sampling of rows
        "learning_rate": RATE,
        "max_leaf_nodes": LEAVES,
        "min_samples_leaf": LEAF_ROWS,
        "l2_regularization": L2,
        "max_features": SHARE,
    },
    "CatBoost": {  # has no minimum of rows per leaf in its symmetric trees
        "learning_rate": RATE,
        "depth": Int(2, 8),
        "l2_leaf_reg": L2,
        "leaf_estimation_iterations": Int(1, 10),  # its default depends on the number of trees
        "rsm": SHARE,
        "subsample": SHARE,
    },
}
FIXED: dict[str, dict[str, Any]] = {
    "LightGBM": {"subsample_freq": 1},
    "XGBoost": {},
    "HistGradientBoosting": {"early_stopping": False},
    "CatBoost": {"bootstrap_type": "Bernoulli"},
}
TREES = {
    "LightGBM": "n_estimators",
    "XGBoost": "n_estimators",
    "HistGradientBoosting": "max_iter",
    "CatBoost": "iterations",
}


def try_out(name: str, model: Any, data: Dataset, fit: Rows, held: Rows) -> tuple[float, int]:
    """The least loss on the held-out rows, and the number of trees that has it."""
    X, y, X_held, y_held = data.X[fit], data.y[fit], data.X[held], data.y[held]
    if name == "LightGBM":
        stop = lgb.early_stopping(PATIENCE, verbose=False)
        model.fit(X, y, eval_X=X_held, eval_y=y_held, callbacks=[stop])
        (loss,) = model.best_score_["valid_0"].values()
        return float(loss), int(model.best_iteration_)
    if name == "XGBoost":
        model.set_params(early_stopping_rounds=PATIENCE)
        model.fit(X, y, eval_set=[(X_held, y_held)], verbose=False)
        return float(model.best_score), int(model.best_iteration) + 1
    if name == "HistGradientBoosting":
        model.set_params(early_stopping=True, n_iter_no_change=PATIENCE)
        model.fit(X, y, X_val=X_held, y_val=y_held)
        losses = -model.validation_score_[1:]  # the first is that of no tree
        return float(losses.min()), int(losses.argmin()) + 1
    model.fit(X, y, eval_set=(X_held, y_held), early_stopping_rounds=PATIENCE)
    (loss,) = model.best_score_["validation"].values()
    return float(loss), int(model.best_iteration_) + 1


def fit_tuned(name: str, data: Dataset, train: Rows, seed: int, max_trees: int = 1000) -> Any:
    """A booster with the settings that were best on held-out training rows."""
    is_classes = data.task == "classification"
    labels = data.y[train] if is_classes else None
    fit, held = train_test_split(train, test_size=0.2, random_state=seed, stratify=labels)
    cst = data.directions.astype(int).tolist()
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    for _ in range(N_TRIALS):
        trial = study.ask(SPACES[name])
        model = make(name, is_classes, cst, seed)
        model.set_params(**FIXED[name], **trial.params, **{TREES[name]: max_trees})
        loss, n_trees = try_out(name, model, data, fit, held)
        trial.set_user_attr("n_trees", n_trees)
        study.tell(trial, loss)
    n_trees = study.best_trial.user_attrs["n_trees"]
    model = make(name, is_classes, cst, seed)
    model.set_params(**FIXED[name], **study.best_params, **{TREES[name]: n_trees})
    return model.fit(data.X[train], data.y[train])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(LOADERS), help="tables, separated by commas")
    parser.add_argument("--models", nargs="+", choices=BOOSTERS, default=list(BOOSTERS))
    parser.add_argument("--max-trees", type=int, default=1000)
    parser.add_argument("--ours", type=Path, default=Path("results/whole_tables.json"))
    parser.add_argument("--out", type=Path, default=Path("results/tuned.json"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    names = ["isotone", *options.models]
    print(heading(names))
    fit = partial(fit_tuned, max_trees=options.max_trees)
    for name in options.only.split(","):
        data = load(name)
        found = results.setdefault(name, {})
        for booster in [each for each in options.models if each not in found]:
            found |= compare(data, [booster], fit)
            options.out.write_text(json.dumps(results, indent=1))
        ours = json.loads(options.ours.read_text())[name]["isotone"]
        print(report(data, found | {"isotone": ours}, names), flush=True)


if __name__ == "__main__":
    main()
