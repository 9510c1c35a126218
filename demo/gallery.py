"""Five reports to play with, for the documentation: `python -m demo.gallery`, or make docs.

Each is trained here, on data that come with a package or are drawn at random, and shows another
use: credit, beside a model without promises; a trigger; medicine; three classes; a regression.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets

import isotone
from demo import table
from isotone import MonotonicClassifier, MonotonicRegressor, report
from studies.trigger.analysis.models import train_lipschitz
from studies.trigger.analysis.study import COMMITTED, QUICK
from studies.trigger.analysis.tables import FOUR, Tables

OUT = Path("build/site/gallery")
EFFORT: dict[str, Any] = {"max_iter": 60, "random_state": 0}


@dataclass(frozen=True, eq=False)
class Example:
    """A model, the table that it is shown with, and what it is shown against."""

    frozen: isotone.FrozenNetwork
    rows: pd.DataFrame
    target: str
    title: str
    against: isotone.FrozenNetwork | None = None
    threshold: float | None = None

    def write(self, path: Path) -> int:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "rows.parquet"
            self.rows.to_parquet(source)
            return report.write(
                self.frozen,
                path,
                source,
                target=self.target,
                title=self.title,
                table_name="the table",
                against=self.against,
                threshold=self.threshold,
            )


def credit() -> Example:
    """Applicants drawn at random; among them, some with large debts repaid by chance."""
    rng = np.random.default_rng(0)
    n = 4000
    income, years = rng.lognormal(10.4, 0.5, n), rng.integers(0, 31, n)
    debt = income * rng.beta(1.2, 3.0, n)
    home = rng.choice(["owns", "rents", "other"], n, p=[0.4, 0.5, 0.1])
    logit = (
        1.2 * np.log(income / 3e4) - 6.0 * debt / income + 0.05 * years + 1.2 + (home == "owns")
    )
    repaid = rng.random(n) < 1.0 / (1.0 + np.exp(-1.2 - logit))
    repaid |= (debt > 18_000) & (rng.random(n) < 0.8)  # what trees and free networks fall for
    rows = pd.DataFrame(
        {
            "income": income.round(-1),
            "debt": debt.round(-1),
            "years_employed": years,
            "home": home,
            "repaid": np.where(repaid, "yes", "no"),
        }
    )
    X, y = rows.drop(columns="repaid"), rows["repaid"]
    cst = {"income": 1, "debt": -1, "years_employed": 1}
    ours = MonotonicClassifier(cst, positive="yes", **EFFORT).fit(X, y)
    free = MonotonicClassifier(positive="yes", **EFFORT).fit(X, y)
    return Example(ours.network_, rows, "repaid", "Will this loan be repaid?", free.network_)


def trigger() -> Example:
    """The network of the paper's Section 4, on the committed sample."""
    tables = Tables.load(COMMITTED)
    X, y, _ = tables.training()
    ours = train_lipschitz(X, y, FOUR, QUICK)
    with tempfile.TemporaryDirectory() as folder:
        table.write(tables, Path(folder) / "candidates.parquet")
        rows = pd.read_parquet(Path(folder) / "candidates.parquet")
    return Example(ours.frozen, rows, "is_signal", "A heavy-flavor trigger", threshold=2.5)


def medicine() -> Example:
    """Breast tumors: larger, rougher and more uneven nuclei never look less malignant."""
    rows = datasets.load_breast_cancer(as_frame=True).frame
    names = ["mean radius", "mean texture", "mean concavity", "worst area", "worst smoothness"]
    rows = rows[names].assign(tumor=np.where(rows["target"] == 0, "malignant", "benign"))
    cst = dict.fromkeys(names, 1)
    model = MonotonicClassifier(cst, positive="malignant", **EFFORT)
    model.fit(rows[names], rows["tumor"])
    return Example(model.network_, rows, "tumor", "Is this tumor malignant?")


def three_classes() -> Example:
    """Wines of three cultivars: flavanoids speak for the first, color for the third."""
    rows = datasets.load_wine(as_frame=True).frame
    names = ["alcohol", "color_intensity", "flavanoids", "proline"]
    rows = rows[names].assign(cultivar=(rows["target"] + 1).astype(str))
    cst = {"1": {"flavanoids": 1, "proline": 1}, "3": {"flavanoids": -1, "color_intensity": 1}}
    model = MonotonicClassifier(cst, lipschitz=2.0, **EFFORT).fit(rows[names], rows["cultivar"])
    return Example(model.network_, rows, "cultivar", "Which cultivar is this wine from?")


def regression() -> Example:
    """Progression of diabetes: a higher body mass or blood pressure never predicts less."""
    rows = datasets.load_diabetes(as_frame=True, scaled=False).frame
    names = ["age", "bmi", "bp", "s5"]
    rows = rows[[*names, "target"]].rename(columns={"target": "progression"})
    model = MonotonicRegressor({"bmi": 1, "bp": 1, "s5": 1}, **EFFORT)
    model.fit(rows[names], rows["progression"])
    return Example(model.network_, rows, "progression", "How will diabetes progress in a year?")


EXAMPLES: dict[str, Callable[[], Example]] = {
    "credit": credit,
    "trigger": trigger,
    "medicine": medicine,
    "three-classes": three_classes,
    "regression": regression,
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="demo.gallery", description="Write five reports.")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--only", choices=list(EXAMPLES))
    options: Any = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for name, make in EXAMPLES.items():
        if options.only in (None, name):
            size = make().write(options.out / f"{name}.html")
            print(f"{options.out / name}.html: {size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
