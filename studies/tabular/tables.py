"""Tables: what the comparison found, as `results.json` and as Markdown.

`results.json` beside this file is written by a full comparison and is the only source of the
tables in `docs/tabular.md`; a test holds the two together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from studies.tabular.cells import CONTESTANTS, HERE, ROOT, Cell
from studies.tabular.datasets import LOADERS
from studies.tabular.protocols import Score
from studies.tabular.reference import N_SEEDS, RUNS

OURS = ("isotone, small", "isotone", "isotone, taught")
RESULTS = HERE / "results.json"
PAGE = ROOT / "docs" / "tabular.md"
Summary = dict[str, Any]
Results = dict[str, dict[str, dict[str, Summary]]]  # protocol, data set, contestant

TITLES = {
    "heart": "Heart disease",
    "auto_mpg": "Auto MPG",
    "boston": "Boston housing",
    "german": "German credit",
    "compas": "COMPAS",
    "california": "California housing",
    "loan": "LendingClub",
    "bike": "Bike sharing",
    "adult": "Adult",
    "blog": "BlogFeedback",
}
METRICS = {
    "heart": "accuracy, %",
    "auto_mpg": "MSE, mpg²",
    "boston": "RMSE, 1000 $",
    "german": "accuracy, %",
    "compas": "accuracy, %",
    "california": "RMSE, 100 000 $",
    "loan": "AUC, %",
    "bike": "RMSE, bikes",
    "adult": "accuracy, %",
    "blog": "RMSE",
}
# Best to worst figures in the literature on monotone networks, all by the reference protocol.
PUBLISHED = {
    "heart": (94.4, 89.6),
    "auto_mpg": (5.8, 7.6),
    "compas": (69.5, 69.3),
    "blog": (0.149, 0.160),
}
_BLOCK = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def is_share(dataset: str) -> bool:
    return METRICS[dataset].endswith("%")


def summarize(scores: Mapping[Cell, Score]) -> Results:
    """Mean, standard error and the rest, by protocol, data set and contestant."""
    groups: dict[tuple[str, str, str], dict[int, Score]] = {}
    for cell, score in scores.items():
        place = cell.protocol, cell.dataset, cell.contestant
        groups.setdefault(place, {})[cell.split] = score
    results: Results = {}
    for (protocol, dataset, contestant), found in sorted(groups.items()):
        table = results.setdefault(protocol, {}).setdefault(dataset, {})
        table[contestant] = _summary(found, 100.0 if is_share(dataset) else 1.0)
    return results


def _summary(found: dict[int, Score], unit: float) -> Summary:
    scores = list(found.values())
    values = np.array([score.value for score in scores]) * unit
    slopes = [score.slope for score in scores if score.slope is not None]
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return {
        "mean": round(float(values.mean()), 5),
        "error": round(spread / len(values) ** 0.5, 5),
        "deviation": round(spread, 5),
        "n": len(values),
        "values": {str(k): round(float(v), 5) for k, v in zip(found, values, strict=True)},
        "n_parameters": int(np.median([score.n_parameters for score in scores])),
        "violations": round(float(np.mean([score.violations for score in scores])), 5),
        "slope": round(max(slopes), 3) if slopes else None,
    }


def load_results() -> Results:
    results: Results = json.loads(RESULTS.read_text())
    return results


def save_results(results: Results) -> None:
    text = json.dumps(results, indent=1, ensure_ascii=False, sort_keys=True)
    RESULTS.write_text(text + "\n")


def better(dataset: str, a: float, b: float) -> float:
    """By how much a is better than b."""
    return a - b if is_share(dataset) else b - a


def number(value: float, like: float) -> str:
    """With as many digits as `like`, its uncertainty, makes sensible."""
    digits = int(np.clip(1 - np.floor(np.log10(max(like, 1e-9))), 1, 4))
    return f"{value:.{digits}f}"


def overview(results: Results) -> str:
    """One row per data set: published, reference, clean, the best monotone peer, the verdict."""
    head = (
        "| data | metric | published | reference: isotone, small | clean: isotone, small "
        "| clean: isotone | clean: isotone, taught | clean: best monotone peer "
        "| small, against all monotone peers | isotone, against all monotone peers "
        "| isotone, taught, against all monotone peers |\n" + "| --- " * 11 + "|\n"
    )
    rows = [_overview_row(results, dataset) for dataset in LOADERS if dataset in results["clean"]]
    return head + "".join(rows)


def _overview_row(results: Results, dataset: str) -> str:
    clean = results["clean"][dataset]
    published = "–"
    if dataset in PUBLISHED:
        published = " to ".join(str(value) for value in PUBLISHED[dataset])
        published += _rank(dataset, results)
    reference = results.get("reference", {}).get(dataset, {}).get("isotone, small")
    peer = best_peer(dataset, clean)
    cells = [
        TITLES[dataset],
        METRICS[dataset],
        published,
        f"{_with(reference, 'deviation')}, {reference['n_parameters']} p." if reference else "–",
        *(_with(clean[name]) for name in OURS),
        f"{_with(clean[peer])}, {peer}" if peer else "–",
        *(verdict(dataset, clean, name) for name in OURS),
    ]
    return "| " + " | ".join(cells) + " |\n"


def _rank(dataset: str, results: Results) -> str:
    """Where our reference figure stands among the published ones."""
    found = results.get("reference", {}).get(dataset, {}).get(OURS[0])
    if found is None:
        return ""
    best, worst = PUBLISHED[dataset]
    if better(dataset, found["mean"], best) >= 0:
        return " (reached)"
    inside = better(dataset, found["mean"], worst) >= 0
    return " (within)" if inside else " (not reached)"


def monotone_peers(clean: Mapping[str, Summary]) -> list[str]:
    """The monotone models that are not ours."""
    return [n for n in clean if CONTESTANTS[n].monotone and CONTESTANTS[n].needs != "isotone"]


def best_peer(dataset: str, clean: Mapping[str, Summary]) -> str:
    """The monotone peer with the best mean."""
    peers = monotone_peers(clean)
    return max(peers, key=lambda name: better(dataset, clean[name]["mean"], 0.0), default="")


def verdict(dataset: str, clean: Mapping[str, Summary], name: str) -> str:
    """Whether a model of ours is ahead of all monotone peers, level, or behind some."""
    gaps = {peer: compare(dataset, clean[name], clean[peer]) for peer in monotone_peers(clean)}
    if not gaps:
        return "–"
    behind = [f"{peer} ({-gap:.1f})" for peer, gap in gaps.items() if gap < -1]
    if behind:
        return "behind " + ", ".join(behind)
    return "ahead" if min(gaps.values()) > 0 else "level"


def compare(dataset: str, ours: Summary, peer: Summary) -> float:
    """By how many standard errors of the difference ours is better, on splits that both have."""
    common = [k for k in ours["values"] if k in peer["values"]]
    if len(common) < 2:
        return 0.0  # nothing is known
    a, b = (np.array([summary["values"][k] for k in common]) for summary in (ours, peer))
    gap = better(dataset, float(a.mean()), float(b.mean()))
    error = float(np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / len(common)))
    return gap / max(error, 1e-12)


def _with(summary: Summary, key: str = "error") -> str:
    mean, error = summary["mean"], summary[key]
    if summary["n"] == 1:
        return f"{mean:.4g}"
    return f"{number(mean, error)} ± {number(error, error)}"


def reference(results: Results) -> str:
    """One row per data set with what was chosen on test rows: published, and run here."""
    head = "| data | metric | published | " + " | ".join(RUNS) + " |\n"
    rows = [_reference_row(results, dataset) for dataset in LOADERS]
    return head + "| --- " * (3 + len(RUNS)) + "|\n" + "".join(filter(None, rows))


def _reference_row(results: Results, dataset: str) -> str:
    found = results.get("reference", {}).get(dataset)
    if found is None:
        return ""
    published = " to ".join(map(str, PUBLISHED[dataset])) if dataset in PUBLISHED else "–"
    cells = [TITLES[dataset], METRICS[dataset], published]
    for name in RUNS:
        summary = found.get(name)
        cells.append(_of_reference(summary) if summary else "–")
    return "| " + " | ".join(cells) + " |\n"


def _of_reference(summary: Summary) -> str:
    seeds = "" if summary["n"] == N_SEEDS else f", {summary['n']} of {N_SEEDS} seeds"
    return f"{_with(summary, 'deviation')}, {summary['n_parameters']} p.{seeds}"


def detail(results: Results) -> str:
    """A table for every data set with all contestants of the clean protocol."""
    return "\n".join(
        f"### {TITLES[dataset]}\n\n{_detail(results, dataset)}"
        for dataset in LOADERS
        if dataset in results["clean"]
    )


def _detail(results: Results, dataset: str) -> str:
    clean = results["clean"][dataset]
    head = (
        f"| {METRICS[dataset]} | clean | splits | parameters | violations found "
        "| certified slope |\n| --- | --- | --- | --- | --- | --- |\n"
    )
    rows = []
    for name in CONTESTANTS:
        if name in clean:
            summary = clean[name]
            slope = f"≤ {summary['slope']:.2f}" if summary["slope"] is not None else "–"
            found = f"{100 * summary['violations']:.1f} %" if summary["violations"] else "0"
            cells = name, _with(summary), summary["n"], summary["n_parameters"], found, slope
            rows.append("| " + " | ".join(map(str, cells)) + " |\n")
    return head + "".join(rows)


def render(text: str, results: Results) -> str:
    """A page whose blocks say what the results say."""
    tables = {"overview": overview, "reference": reference, "detail": detail}
    return _BLOCK.sub(
        lambda block: f"{block[1]}\n{tables[block[2]](results).strip()}\n\n{block[3]}", text
    )


def write_page(results: Results, page: Path = PAGE) -> None:
    page.write_text(render(page.read_text(), results))
