"""Train, certify and score a small trigger-like model on the table beside this file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv
import torch
from rich.console import Console
from sklearn.metrics import roc_auc_score

import isotone
from isotone.losses import CrossEntropy

TABLE = Path(os.path.relpath(__file__)).with_name("candidates.csv")
RESULTS = Path("results/demo")
FEATURES = ["fd_chi2", "sum_pt", "vertex_chi2", "min_ip_chi2"]
DIRECTIONS = [1, 1, 0, 1]  # more displaced or faster never looks less interesting
EPOCHS = 200

console = Console(highlight=False)


def main() -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    table = pyarrow.csv.read_csv(TABLE).to_pandas()
    X, y = table[FEATURES].to_numpy(), table["is_signal"].to_numpy()
    held_out = np.arange(len(X)) % 4 == 0

    console.rule("train: 4-20-20-1, full sort, λ = 2, increasing in three features")
    scaling = isotone.Scaling.fit(
        X[~held_out], [isotone.Log(), "log", isotone.Log(offset=1.0), "log"]
    )
    network = train(scaling.transform(X[~held_out]), y[~held_out])
    frozen = isotone.freeze(
        network,
        scaling=scaling,
        features=FEATURES,
        classes=["background", "signal"],
        provenance={"data": str(TABLE), "epochs": EPOCHS, "seed": 0},
    )
    model = RESULTS / "model.isotone"
    frozen.save(model)
    area = roc_auc_score(y[held_out], frozen.score(X[held_out]))
    console.print(f"area under the ROC curve on held-out rows: {area:.4f}")

    run("certify", model)
    run(
        "score",
        model,
        TABLE,
        "--out",
        RESULTS / "scores.csv",
        "--keep",
        "is_signal",
    )
    robustness(isotone.certify(frozen), X[held_out])
    console.rule("results")
    console.print(f"model   {model}\nscores  {RESULTS / 'scores.csv'}")


def train(x: np.ndarray, y: np.ndarray) -> isotone.MonotonicNetwork:
    """Algorithm 1 with Adam and cross-entropy."""
    torch.manual_seed(0)
    network = isotone.MonotonicNetwork(
        [4, 20, 20, 1], monotonic_cst=DIRECTIONS, lipschitz=2.0, outputs="logits"
    )
    recipe = isotone.Recipe(epochs=EPOCHS, batch_size=512, learning_rate=0.02)
    isotone.train(network, x, y, CrossEntropy(), recipe, progress=True)
    return network


def run(*arguments: object) -> None:
    """Run an `isotone` command as a user would."""
    words = [str(argument) for argument in arguments]
    console.rule(f"isotone {' '.join(words)}")
    command = Path(sys.executable).with_name("isotone")
    subprocess.run([command, *words], check=True, env=os.environ | {"COLUMNS": str(console.width)})


def robustness(certificate: isotone.Certificate, X: np.ndarray) -> None:
    """What a calibration error can do at most, and what it does."""
    console.rule("robustness: all features shifted by up to 1 % of their median")
    shifts = 0.01 * np.median(X, axis=0)
    bound = certificate.flip_bound(X, shifts)
    frozen, rng = certificate.frozen, np.random.default_rng(0)
    moved = X + rng.uniform(-shifts, shifts, X.shape)
    flips = np.mean((frozen.score(moved) >= 0) != (frozen.score(X) >= 0))
    console.print(
        f"decisions that can change: at most {bound:.2%}; changed in one trial: {flips:.2%}"
    )


if __name__ == "__main__":
    main()
