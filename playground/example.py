"""The example that the playground opens without a file of yours: `python -m playground.example`.

A small model of made-up applicants, and 400 others to score, some of whom have values missing.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import isotone

FOLDER = Path(__file__).parent / "example"
MODEL, TABLE = FOLDER / "loans.isotone", FOLDER / "loans.csv"


def applicants(n: int, seed: int) -> pd.DataFrame:
    """Who repays: the richer, the less indebted, the longer employed, and chance."""
    rng = np.random.default_rng(seed)
    income, years = rng.lognormal(10.4, 0.5, n).round(-1), rng.integers(0, 31, n).astype(float)
    debt = (income * rng.beta(1.2, 3.0, n)).round(-1)
    home = rng.choice(["owns", "rents", "other"], n, p=[0.4, 0.5, 0.1])
    logit = 2.4 + 1.2 * np.log(income / 3e4) - 6.0 * debt / income + 0.05 * years
    repaid = rng.random(n) < 1.0 / (1.0 + np.exp(-logit - (home == "owns")))
    years[rng.random(n) < 0.08] = np.nan
    table = {"income": income, "debt": debt, "years_employed": years, "home": home}
    return pd.DataFrame(table | {"repaid": np.where(repaid, "yes", "no")})


def main() -> None:
    rows = applicants(4000, seed=0)
    model = isotone.MonotonicClassifier(
        {"income": 1, "debt": -1, "years_employed": 1},
        positive="yes",
        hidden_layer_sizes=(16, 16),
        n_members=1,
        knots=None,
        missing="indicator",
        max_iter=60,
        random_state=0,
    )
    model.fit(rows.drop(columns="repaid"), rows["repaid"])
    FOLDER.mkdir(exist_ok=True)
    model.save(MODEL)
    applicants(400, seed=1).to_csv(TABLE, index=False)


if __name__ == "__main__":
    main()
