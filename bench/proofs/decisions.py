"""Do LHCb's evaluators decide as the model does? A million candidates for every file.

Question: do decisions with an exported file equal score >= threshold, and are they where they
differ as close to the threshold as the claim says?
Data: networks for Allen and HLT2 trained on two overlapping classes; a million other candidates.
Claim: every decision that differs is about a score within `undecided` of the threshold; a
response never moves against its direction by more than 2E.
Run time: a few minutes; `--candidates 1e5` takes less.

The evaluator is compiled from the C++ in the package with every compiler that is found, without
and with contraction of multiply-adds.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import isotone
from isotone import MonotonicClassifier, export, trigger

EVALUATOR = Path(isotone.__file__).parent / "export" / "lhcb" / "evaluator.cpp"
SIGNS = [1, 1, 0, 1]
FUSED = ["-mfma"] if platform.machine() in ("x86_64", "AMD64") else []
BUILDS = {"off": ["-ffp-contract=off"], "fast": ["-ffp-contract=fast", *FUSED]}
FILES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "Allen 4-20-20-1": ("allen", {"lipschitz": 2.0}, {}),
    "Allen, cut 0.5": ("allen", {"lipschitz": 2.0}, {"shift": True}),
    "Allen, rescaled": ("allen", {"lipschitz": 1.0, "scaling": "standard"}, {}),
    "Allen, 5 x 10": ("allen", {"lipschitz": 2.0, "hidden_layer_sizes": (10,) * 5}, {}),
    "HLT2 4-64-64-1": ("hlt2", {"lipschitz": 2.0, "hidden_layer_sizes": (64, 64)}, {}),
}


def draw(n_rows: int, seed: int) -> tuple[Any, Any]:
    """Candidates like those of a two-track line, in float32, and which are signal."""
    rng = np.random.default_rng(seed)
    is_signal = rng.random(n_rows) < 0.5
    shift = np.where(is_signal, 1.5, 0.0)
    columns = [
        rng.normal(3.0 + shift, 1.5),  # log FD χ²
        rng.gamma(2.0, 1.0 + shift),  # Σ pT in GeV
        np.maximum(rng.gamma(1.0, 3.0 - shift), 1e-10),  # χ² of the vertex
        rng.normal(1.0 + shift, 1.5),  # log of the smallest χ² of the impact parameters
    ]
    return np.column_stack(columns).astype(np.float32), is_signal.astype(int)


def build(folder: Path) -> dict[str, Path]:
    """The evaluator by every compiler that there is, without and with contraction."""
    programs = {}
    for compiler in ("g++", "clang++"):
        if shutil.which(compiler) is None:
            print(f"{compiler} is not installed")
            continue
        for name, options in BUILDS.items():
            program = folder / f"{compiler}-{name}"
            words = [compiler, "-std=c++17", "-O2", *options, EVALUATOR, "-o", program]
            subprocess.run(list(map(str, words)), check=True)
            programs[f"{compiler}, {name}"] = program
    return programs


def run(program: Path, file: Path, X: Any) -> tuple[Any, Any]:
    """Responses and decisions."""
    data = np.ascontiguousarray(X, np.float32).tobytes()
    done = subprocess.run([program, file], input=data, capture_output=True, check=True)
    response, _, passes = np.frombuffer(done.stdout, np.float32).reshape(-1, 3).T
    return response, passes == 1


def fall(program: Path, file: Path, X: Any, response: Any) -> float:
    """By how much a response falls when a rising feature rises by one unit in the last place."""
    worst = 0.0
    for i in np.flatnonzero(SIGNS):
        raised = X.copy()
        raised[:, i] = np.nextafter(raised[:, i], np.float32(np.inf))
        worst = max(worst, float((response - run(program, file, raised)[0]).max()))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description="Decisions of LHCb's evaluators.")
    parser.add_argument("--candidates", type=float, default=1e6)
    n_rows = int(parser.parse_args().candidates)
    X, _ = draw(n_rows, seed=1)
    table = Table("file", "evaluator", "differ", "at most", "claimed", "fall", "2E")
    with tempfile.TemporaryDirectory() as name:
        programs = build(Path(name))
        for title, (to, chosen, options) in FILES.items():
            for row in judge(Path(name) / "file.json", programs, X, to, chosen, options):
                table.add_row(title, *row)
    Console().print(f"{n_rows:,} candidates; differ: decisions that are not the model's", table)


def judge(
    path: Path,
    programs: dict[str, Path],
    X: Any,
    to: str,
    chosen: dict[str, Any],
    options: dict[str, Any],
) -> list[list[str]]:
    """Train, export, and compare every program with the model; raises where a claim is wrong."""
    rows, y = draw(50_000, seed=0)
    settings = trigger.parameters_for(to, **chosen)
    model = MonotonicClassifier(SIGNS, max_iter=10, random_state=0, **settings).fit(rows, y)
    score = model.network_.score(X.astype(np.float64))
    threshold = float(np.quantile(score, 0.95))
    claim = export.write(
        model.network_, to, path, check=False, threshold=threshold, reach=64.0, **options
    )
    undecided, lines = json.loads(path.read_text())["isotone"]["undecided"], []
    for name, program in programs.items():
        response, passes = run(program, path, X)
        differ = passes != (score >= threshold)
        farthest = float(np.abs(score - threshold)[differ].max(initial=0.0))
        fell = fall(program, path, X, response)
        if farthest > undecided or claim.drop is None or fell > claim.drop:
            raise RuntimeError(f"{name} breaks the claim: {farthest}, {undecided}, {fell}")
        numbers = [farthest, undecided, fell, claim.drop]
        lines.append([name, f"{differ.sum():,}", *(f"{number:.2g}" for number in numbers)])
    return lines


if __name__ == "__main__":
    main()
