"""Throughput of scoring against the size of the batch and the number of threads, as a plot.

Question: from which batch size on is the engine at full speed, and does it scale with threads?
Data: float32 candidates of the trigger study, the paper's network 4-20-20-1 with a full sort.
Method: contestants taking turns in one process, best of the rounds; not pinned, as threads are
compared. Writes results/scaling.svg and .pdf.
Needs: pip install -c constraints.txt '.[bench,studies]'.
Run time: about a minute; ``--quick`` seconds.
"""

import argparse
import os
from functools import partial
from pathlib import Path

import torch
from matplotlib.figure import Figure

from bench.inference import contestants
from bench.inference.contestants import Scorer, Shape, draw
from bench.race import race
from studies.figures import save

PAPER = Shape((4, 20, 20, 1))
BATCHES = [10**k for k in range(7)]
RESULTS = Path(__file__).parents[2] / "results"


def scorers() -> dict[str, Scorer]:
    found: dict[str, Scorer] = {}
    for threads in sorted({1, len(os.sched_getaffinity(0))}):
        plural = "" if threads == 1 else "s"
        for precision in ("float32", "float64"):
            name = f"isotone {precision}, {threads} thread{plural}"
            found[name] = contestants.engine(PAPER, precision, threads=threads)
    return found | {
        "ONNX Runtime, Min/Max": contestants.onnx_runtime(PAPER, "network"),
        "torch": contestants.torch_eager(PAPER),
        "monotonicnetworks": contestants.authors(PAPER),
    }


def measure(n_rounds: int, budget: float) -> dict[str, list[float]]:
    """Rows per second of every contestant, for every batch size."""
    found = scorers()
    rates: dict[str, list[float]] = {name: [] for name in found}
    for n in BATCHES:
        X = draw(n, PAPER.widths[0])
        times = race([partial(scorer, X) for scorer in found.values()], n_rounds, budget)
        for name, each in zip(found, times, strict=True):
            rates[name].append(n / min(each))
    return rates


def plot(rates: dict[str, list[float]]) -> None:
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    panel = figure.subplots()
    for (name, values), marker in zip(rates.items(), "os^vDPX", strict=False):
        panel.loglog(BATCHES, values, marker=marker, markersize=4, label=name)
    panel.set(xlabel="rows in a batch", ylabel="rows per second")
    panel.grid(alpha=0.3)
    panel.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    save(figure, RESULTS / "scaling")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    rates = measure(2 if quick else 7, 0.02 if quick else 0.1)
    for name, values in rates.items():
        print(f"{name:30}", *(f"{value / 1e6:9.4f}" for value in values), "M rows/s")
    plot(rates)


if __name__ == "__main__":
    main()
