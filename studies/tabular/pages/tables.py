"""Tables: what the comparison found, as `results.json` and as Markdown.

`studies/tabular/results.json` is written by a full comparison and is the only source of the
tables in `docs/tabular.md` and `docs/tabular-method.md`; a test holds them together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from isotone.typing import Floats
from studies.fingerprint import ROOT
from studies.tabular.datasets import LOADERS
from studies.tabular.protocols import beginnings
from studies.tabular.protocols.cells import CONTESTANTS, Cell
from studies.tabular.protocols.clean import Score
from studies.tabular.protocols.reference import N_SEEDS, OWN, RUNS

OURS = ("isotone", "isotone, teacher")
RESULTS = ROOT / "studies" / "tabular" / "results.json"
PAGES = tuple(ROOT / "docs" / name for name in ("tabular.md", "tabular-method.md"))
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
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return {
        "mean": round(float(values.mean()), 5),
        "error": round(spread / len(values) ** 0.5, 5),
        "deviation": round(spread, 5),
        "n": len(values),
        "values": {str(k): round(float(v), 5) for k, v in zip(found, values, strict=True)},
        "n_parameters": int(np.median([score.n_parameters for score in scores])),
        "violations": round(float(np.mean([score.violations for score in scores])), 5),
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
    """One row per data set: our models, the best monotone peer, the verdicts."""
    head = [
        "data",
        "metric",
        *OURS,
        "best monotone peer",
        *(f"verdict, {name}" for name in OURS),
    ]
    rows = [_overview_row(results, dataset) for dataset in LOADERS if dataset in results["clean"]]
    return _markdown([head, ["---"] * len(head), *rows])


def _overview_row(results: Results, dataset: str) -> list[str]:
    clean = results["clean"][dataset]
    peer = best_peer(dataset, clean)
    return [
        TITLES[dataset],
        METRICS[dataset],
        *(_with(clean[name]) if name in clean else "–" for name in OURS),
        f"{_with(clean[peer])}, {peer}" if peer else "–",
        *(verdict(dataset, clean, name) for name in OURS),
    ]


def rank(dataset: str, results: Results) -> str:
    """Where our reference figure stands among the published ones."""
    found = results.get("reference", {}).get(dataset, {}).get(OWN)
    if found is None:
        return ""
    best, worst = PUBLISHED[dataset]
    if better(dataset, found["mean"], best) >= 0:
        return "reached"
    inside = better(dataset, found["mean"], worst) >= 0
    return "within" if inside else "not reached"


def monotone_peers(clean: Mapping[str, Summary]) -> list[str]:
    """The monotone models that are not ours."""
    return [n for n in clean if CONTESTANTS[n].monotone and CONTESTANTS[n].needs != "isotone"]


def best_peer(dataset: str, clean: Mapping[str, Summary]) -> str:
    """The monotone peer with the best mean."""
    peers = monotone_peers(clean)
    return max(peers, key=lambda name: better(dataset, clean[name]["mean"], 0.0), default="")


def verdict(dataset: str, clean: Mapping[str, Summary], name: str) -> str:
    """Whether a model of ours is ahead of all monotone peers, level, or behind some.

    Up to one standard error of the difference is level.
    """
    if name not in clean or not monotone_peers(clean):
        return "–"
    gaps = [compare(dataset, clean[name], clean[peer]) for peer in monotone_peers(clean)]
    if behind := _behind(dataset, clean, name):
        return "behind " + ", ".join(behind)
    return "ahead" if min(gaps) > 1 else "level"


def _behind(
    dataset: str, clean: Mapping[str, Summary], name: str, paired: bool = False
) -> list[str]:
    """The monotone peers that are better by more than one standard error, and by how many."""
    gaps = {
        peer: compare(dataset, clean[name], clean[peer], paired) for peer in monotone_peers(clean)
    }
    return [f"{peer} ({-gap:.1f})" for peer, gap in gaps.items() if gap < -1]


def compare(dataset: str, ours: Summary, peer: Summary, paired: bool = False) -> float:
    """By how many standard errors of the difference ours is better, on splits that both have.

    The two are taken as independent, or `paired`: the error is that of the differences by split.
    """
    common = [k for k in ours["values"] if k in peer["values"]]
    if len(common) < 2:
        return 0.0  # nothing is known
    a, b = (np.array([summary["values"][k] for k in common]) for summary in (ours, peer))
    gap = better(dataset, float(a.mean()), float(b.mean()))
    variance = (a - b).var(ddof=1) if paired else a.var(ddof=1) + b.var(ddof=1)
    error = float(np.sqrt(variance / len(common)))
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
    published = "–"
    if dataset in PUBLISHED:
        published = " to ".join(map(str, PUBLISHED[dataset]))
        published += f" ({place})" if (place := rank(dataset, results)) else ""
    cells = [TITLES[dataset], METRICS[dataset], published]
    for name in RUNS:
        summary = found.get(name)
        cells.append(_of_reference(summary) if summary else "–")
    return "| " + " | ".join(cells) + " |\n"


def _of_reference(summary: Summary) -> str:
    seeds = "" if summary["n"] == N_SEEDS else f", {summary['n']} of {N_SEEDS} seeds"
    return f"{_with(summary, 'deviation')}, {summary['n_parameters']} p.{seeds}"


def scores(results: Results) -> str:
    """All contestants of the clean protocol."""
    return _by_dataset("score", results, _present(results), _with)


def sizes(results: Results) -> str:
    """Numbers that were learned."""
    names = _present(results)
    return _by_dataset("parameters", results, names, lambda found: str(found["n_parameters"]))


def violations(results: Results) -> str:
    """Of contestants that are not monotone."""
    free = [name for name in _present(results) if not CONTESTANTS[name].monotone]
    return _by_dataset("violations", results, free, _violations)


def _present(results: Results) -> list[str]:
    """The contestants of the clean protocol that were run."""
    return [name for name in CONTESTANTS if any(name in t for t in results["clean"].values())]


def _violations(summary: Summary) -> str:
    return f"{100 * summary['violations']:.1f} %"


def _by_dataset(
    title: str, results: Results, names: Sequence[str], show: Callable[[Summary], str]
) -> str:
    """A table with a row per data set and a column per contestant."""
    rows = [[title, *names], ["---"] * (1 + len(names))]
    for dataset, table in _clean(results).items():
        cells = [show(table[name]) if name in table else "–" for name in names]
        rows.append([TITLES[dataset], *cells])
    return _markdown(rows)


def _clean(results: Results) -> dict[str, dict[str, Summary]]:
    """The clean protocol, data sets in the order of the tables."""
    return {name: results["clean"][name] for name in LOADERS if name in results["clean"]}


def starts(results: Results) -> str:
    """How far the figure of one seed is noise: ten beginnings on each part of Auto MPG."""
    found = results.get("beginnings", {}).get(beginnings.DATASET, {})
    parts = {
        name: beginnings.summary(found[name]["values"])
        for name in beginnings.VARIANTS
        if name in found and found[name]["n"] == beginnings.n_splits(quick=False)
    }
    head = ["", *(f"part {k}" for k in range(N_SEEDS)), "mean", f"minus {beginnings.AUTHORS}"]
    rows = [head, ["---"] * len(head)]
    for name, (means, spreads) in parts.items():
        cells = [f"{mean:.2f} ({spread:.2f})" for mean, spread in zip(means, spreads, strict=True)]
        alone = name == beginnings.AUTHORS or beginnings.AUTHORS not in parts
        gap = "–" if alone else _gap(parts[name], parts[beginnings.AUTHORS])
        rows.append([name, *cells, f"{means.mean():.2f}", gap])
    return _markdown(rows)


def _gap(mine: tuple[Floats, Floats], theirs: tuple[Floats, Floats]) -> str:
    """The difference of the means over parts, with its standard error."""
    errors = np.hypot(mine[1], theirs[1]) / beginnings.N**0.5
    return f"{(mine[0] - theirs[0]).mean():+.2f} ± {np.linalg.norm(errors) / len(errors):.2f}"


def _markdown(rows: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def goal(results: Results) -> str:
    """What "ahead of or level with every monotone peer on every data set" comes to."""
    clean = _clean(results)
    return "".join(_goal_of(name, clean) for name in OURS)


def _goal_of(name: str, clean: Mapping[str, Mapping[str, Summary]]) -> str:
    """Where a model of ours is ahead and level; then behind if splits are paired."""
    words = {dataset: verdict(dataset, table, name) for dataset, table in clean.items()}
    by = {word: [TITLES[d] for d in clean if words[d] == word] for word in ("ahead", "level")}
    n = sum(map(len, by.values()))
    told = "; ".join(f"{word} on {', '.join(names)}" for word, names in by.items() if names)
    line = f'- **"{name}": {n} of {len(words)}.** {told[:1].upper()}{told[1:]}.'
    pairs = {
        TITLES[dataset]: ", ".join(_behind(dataset, table, name, paired=True))
        for dataset, table in clean.items()
        if name in table and not words[dataset].startswith("behind")
    }
    told = "; ".join(f"{title}: {peers}" for title, peers in pairs.items() if peers)
    return f"{line} Level, but behind if splits are paired: {told}.\n" if told else f"{line}\n"


TABLES = {
    "overview": overview,
    "goal": goal,
    "scores": scores,
    "sizes": sizes,
    "violations": violations,
    "reference": reference,
    "beginnings": starts,
}


def render(text: str, results: Results) -> str:
    """A page whose blocks say what the results say."""
    return _BLOCK.sub(
        lambda block: f"{block[1]}\n{TABLES[block[2]](results).strip()}\n\n{block[3]}", text
    )


def write_pages(results: Results) -> None:
    for page in PAGES:
        page.write_text(render(page.read_text(), results))
