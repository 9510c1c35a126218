"""The page: tables and pictures of docs/trigger.md, from the numbers of a full study.

    python -m studies.trigger.page results/trigger

What stands between `<!-- begin trigger: NAME -->` and `<!-- end -->` is written here, so that the
page and what was measured cannot drift apart. What is around it, people wrote.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from studies.pages import DOCS
from studies.trigger import dependence
from studies.trigger.calibration import ERRORS
from studies.trigger.channels import channels
from studies.trigger.checks import check
from studies.trigger.detectors import DETECTORS, NOMINAL
from studies.trigger.efficiency import EDGES
from studies.trigger.parameters import SIZES
from studies.trigger.prototype import BINS, CHECKS, LIFETIMES
from studies.trigger.study import COMMITTED, FREE, FREE_TREES, OURS, TREES

Numbers = dict[str, Any]
MODELS = (FREE, FREE_TREES, TREES, OURS)
FLAVORS = ("beauty", "charm")
STEP = "largest step of the boundary in 0.01 [GeV]"
_BLOCK = re.compile(r"(<!-- begin trigger: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_PICTURE = re.compile(r"\(figures/trigger-(\w+)\.png\)")


def write(numbers: Numbers, results: Path, docs: Path = DOCS) -> None:
    """Renew docs/trigger.md and its pictures."""
    if numbers["sample"]["size"]["collisions"] < SIZES["full"].collisions:
        raise ValueError(
            f"{str(results)!r} is of a sample of {numbers['sample']['size']['collisions']} "
            "collisions; the page tells of a full one: run make trigger"
        )
    page = docs / "trigger.md"
    text = _BLOCK.sub(lambda block: _renew(block, numbers), page.read_text())
    page.write_text(text)
    (docs / "figures").mkdir(exist_ok=True)
    for name in _PICTURE.findall(text):  # all colors, since fewer would put steps into smooth maps
        shutil.copyfile(results / f"{name}.png", docs / "figures" / f"trigger-{name}.png")


def _renew(block: re.Match[str], numbers: Numbers) -> str:
    begin, name, end = block.groups()
    return f"{begin}\n{BLOCKS[name](numbers)}\n\n{end}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _join(values: Iterable[float], form: str, separator: str = ", ") -> str:
    return separator.join(format(value, form).replace("-", "−") for value in values)


def _range(values: Sequence[float]) -> str:
    """The smallest and the largest of some changes; zero has no sign."""
    ends = {round(value, 3) + 0.0 for value in (min(values), max(values))}
    return _join(sorted(ends), "+.3f", " to ").replace("+0.000", "0.000")


def about_sample(numbers: Numbers) -> str:
    size, rows = numbers["sample"]["size"], numbers["rows"]
    return (
        f"Full sample: {size['collisions']:,} collisions, {size['passes']} passes, "
        f"{rows['collisions']:,} candidates of collisions; {len(channels())} × {size['decays']:,} "
        f"decays, {rows['signal']:,} candidates of signal."
    )


def checks(numbers: Numbers) -> str:
    small = _checked([one.values for one in check(COMMITTED)])
    full = _checked([one["values"] for one in numbers["checks"]])
    head = ["check", "demand", "prototype", "small sample", "full sample"]
    rows = zip(CHECKS, small, full, strict=True)
    return table(head, [[*words, one, two] for words, one, two in rows])


def _checked(values: Sequence[Sequence[float]]) -> list[str]:
    """What `checks.check` found, in the words of the page."""
    (_, _, width, *_), b0, d0, (vertex,), mixture, nine, ten, hard, far, soft, tail = values[:11]
    (share, per_collision), beauty, charm = values[11:]
    percent = [100 * value for value in hard]
    return [
        f"{width:.1f}",
        ", ".join(f"{mean:.3f} ± {error:.3f}" for mean, error in (b0, d0)),
        f"{vertex:.2f}",
        _join((100 * value for value in mixture), ".0f"),
        _join((100 * value for value in nine), ".2f"),
        _join((100 * value for value in ten), ".2f"),
        *(
            f"{b:.3f} ± {b_error:.3f}, {s:.3f} ± {s_error:.3f}"
            for b, b_error, s, s_error in (percent[:4], percent[4:])
        ),
        f"{far[0]:.1f}, {soft[0]:.1f}; {far[1]:.1f}, {soft[1]:.1f}",
        _join(tail, ".1f"),
        f"{100 * share:.1f}; {per_collision:.2f}",
        f"{beauty[0]:.2f}–{beauty[2]:.2f}; {charm[1]:.2f}–{charm[2]:.2f}; {charm[0]:.2f}",
    ]


def settings(numbers: Numbers) -> str:
    """The dependence on ghosts and material."""
    head = ["ghosts, module", f"{FREE}, 3–4 → 8–11 ps", OURS]
    head += ["unconstrained, 15–25 ps over plateau", "ours", "Δ beauty, charm"]
    rows = "\n".join(dependence.row(one).replace("-", "−") for one in numbers["dependence"])
    return f"{table(head, [])}\n{rows}"


def rates(numbers: Numbers) -> str:
    points = [numbers[f"{n} inputs"][name] for n in (2, 4) for name in MODELS]
    rate, error = ([p[key] / 1e3 for p in points] for key in ("rate", "rate_error"))
    trees = numbers["trees"]
    return (
        f"Output rates of the eight models: {min(rate):.0f} to {max(rate):.0f} kHz, "
        f"± {min(error):.0f} to {max(error):.0f} from drawing collisions anew, and largely common "
        f"to all. Early stopping left {min(trees)} to {max(trees)} trees of at most "
        f"{numbers['effort']['trees']}."
    )


def lifetimes(numbers: Numbers) -> str:
    """Fig. 5 of two inputs, beside the prototype."""
    head = ["τ [ps]", *(f"{EDGES[i]:g}–{EDGES[i + 1]:g}" for i in BINS)]
    rows = []
    for (flavor, name), other in LIFETIMES.items():
        found = numbers["2 inputs"][name]
        ours = [f"{found[flavor][i]:.2f}" for i in BINS]
        last = f"{ours[-1]} ± {found[f'{flavor}_error'][-1]:.2f}"
        rows.append([f"{flavor}, {name}", *ours[:-1], last])
        rows.append(["prototype", *(f"{value:.2f}" for value in other)])
    return table(head, rows)


def late(numbers: Numbers) -> str:
    """Late over plateau and changes of efficiency, for all seeds."""
    head = ["", "two inputs", "Δ beauty, charm", "four inputs", "Δ beauty, charm"]
    rows = []
    for name in MODELS:
        cells = [name]
        for n in (2, 4):
            found = [one[f"{n} inputs"][name] for one in numbers["brief"]]
            ratio, beauty, charm = zip(*found, strict=True)
            change = "–" if name == FREE else f"{_range(beauty)}, {_range(charm)}"
            cells += [_join(ratio, ".2f"), change]
        rows.append(cells)
    return table(head, rows)


def by_channel(numbers: Numbers) -> str:
    """Efficiencies of every channel, four inputs."""
    found = {name: numbers["4 inputs"][name] for name in (FREE, TREES, OURS)}
    names = {channel.code: channel.name for channel in channels()}
    rows = []
    for i, code in enumerate(found[OURS]["codes"]):
        values = [f"{one['channels'][i]:.3f}" for one in found.values()]
        values[-1] += f" ± {found[OURS]['channels_error'][i]:.3f}"
        change = found[OURS]["channels"][i] - found[FREE]["channels"][i]
        rows.append([str(code), names[code], *values, _join([change], "+.3f")])
    return table(["code", "decay", *found, "ours − unconstrained"], rows)


def claims(numbers: Numbers) -> str:
    """What the paper says, and what we get."""
    rows = [*_claims_of_figures(numbers), _claim_of_seeds(numbers), _claim_of_speed(numbers)]
    rows.append(
        (
            "robust by its Lipschitz constant",
            "certified and measured: the scan of λ below",
            "quantified",
        )
    )
    return table(["paper, section 4", "here, full sample", ""], rows)


def _claims_of_figures(numbers: Numbers) -> list[tuple[str, str, str]]:
    two, four, smooth = (numbers[k] for k in ("2 inputs", "4 inputs", "smoothness"))
    corner, steps = smooth["corner"], [smooth[name][STEP] for name in (TREES, OURS)]
    late = {n: [one[n]["late_to_plateau"] for one in (two, four)] for n in (FREE, OURS)}
    _, beauty, charm = numbers["brief"][0]["4 inputs"][OURS]
    return [
        (
            "Fig. 4: the unconstrained network rejects the most displaced vertices",
            f"its boundary rises from {corner['least']:.1f} GeV of Σp_T at ln min χ²_IP = "
            f"{corner['at']:.1f} to {corner['there']:.1f} GeV at {corner['end']:.1f}",
            "reproduced",
        ),
        (
            "Fig. 4: the boundary of trees is jagged, that of the network smooth",
            f"largest step in 0.01 of ln min χ²_IP: {steps[0]:.2f} GeV for trees, "
            f"{steps[1]:.2f} GeV for ours",
            "reproduced",
        ),
        (
            "Fig. 5: monotone models stay efficient at long lifetimes, the other does not",
            f"beauty at 15–25 ps over plateau {late[FREE][0]:.2f} (two inputs), "
            f"{late[FREE][1]:.2f} (four); ours {late[OURS][0]:.2f}, {late[OURS][1]:.2f}",
            "reproduced",
        ),
        (
            "Fig. 6: monotonicity and robustness cost little efficiency",
            f"medians {_join([beauty], '+.3f')} for beauty, {_join([charm], '+.3f')} for charm; "
            "two ghost and material parameters were chosen with this in view",
            "no independent confirmation",
        ),
    ]


def _claim_of_seeds(numbers: Numbers) -> tuple[str, str, str]:
    def both(key: str, digits: int) -> str:
        return " and ".join(f"{100 * numbers['seeds'][f][key]:.{digits}f}" for f in FLAVORS)

    found = (
        f"spread over {numbers['seeds']['plan']['n_seeds']} seeds {both('observed', 2)} % for "
        f"beauty and charm, of which {both('seeds', 2)} % are the seeds'; the sample's own error "
        f"is {both('sample', 1)} %"
    )
    return "seeds differ by O(0.1 %)", found, "reproduced"


def _claim_of_speed(numbers: Numbers) -> tuple[str, str, str]:
    fast = {name: one["per_second"] for name, one in numbers["speed"].items() if name != "n_rows"}
    trees, engine = sorted(v for k, v in fast.items() if "LightGBM" in k), max(fast.values())
    found = (
        f"other trees, on one CPU core: {engine / trees[-1]:.0f} times as many candidates per "
        f"second as the trees that early stopping leaves, {engine / trees[0]:.0f} times as many "
        "as 1000"
    )
    return "inference 4 times faster than the trees it replaced, on GPUs", found, "not comparable"


def scan(numbers: Numbers) -> str:
    """Means over seeds for every λ, and the models without a certificate."""
    members, rows = numbers["scan"]["members"], []
    for value in sorted({one["lipschitz"] for one in members}):
        some = [one for one in members if one["lipschitz"] == value]
        mean = {k: float(np.mean([one[k] for one in some])) for k in some[0] if k in _SCANNED}
        flips = [
            _join(
                (100 * float(np.mean([one[kind][error] for one in some])) for kind in _KINDS),
                ".2f",
            )
            for error in ERRORS
        ]
        cells = f"{mean['beauty']:.3f}, {mean['charm']:.3f}"
        late = f"{mean['late_beauty']:.2f}, {mean['late_charm']:.2f}"
        rows.append([f"{value:g}{' (default)' if value == 2 else ''}", cells, late, *flips])
    for name, measured in numbers["scan"]["others"].items():
        rows.append(
            [
                name,
                *_unscanned(numbers["4 inputs"][name]),
                *(f"{100 * measured[e]:.2f}, –" for e in ERRORS),
            ]
        )
    head = ["λ", "beauty, charm efficiency", "15–25 ps over plateau: beauty, charm"]
    return table([*head, *(f"{error}: measured, certified [%]" for error in ERRORS)], rows)


_SCANNED = ("beauty", "charm", "late_beauty", "late_charm")
_KINDS = ("measured", "certified")


def _unscanned(found: Numbers) -> list[str]:
    """Mean efficiencies and flatness of a model that is not in the scan."""
    value, beauty = np.array(found["channels"]), np.array(found["codes"]) < 20_000_000
    means = f"{value[beauty].mean():.3f}, {value[~beauty].mean():.3f}"
    return [means, f"{found['late_to_plateau']:.2f}, {found['late_charm']:.2f}"]


def seeds(numbers: Numbers) -> str:
    rows = []
    for part in ("seeds", "seeds, whole training"):
        one = numbers[part]
        plan = one["plan"]
        trained = f"{plan['n_seeds']} seeds, {plan['epochs']} epochs of {one['n_rows']:,} rows"
        for flavor in FLAVORS:
            keys = ("mean", "observed", "noise", "seeds", "sample", "threshold")
            mean, *others = (100 * one[flavor][key] for key in keys)
            rows.append([f"{flavor}, {trained}", f"{mean:.1f}", *(f"{v:.2f}" for v in others)])
    return table(
        ["", "mean", "spread", "noise of the rows", "spread of seeds", "sample", "threshold"], rows
    )


def smoothness(numbers: Numbers) -> str:
    rows = [
        [name, *(f"{v:.3f}" for k, v in found.items() if k != STEP), f"{found[STEP]:.2f} GeV"]
        for name, found in numbers["smoothness"].items()
        if name != "corner"
    ]
    return table(["", "Σp_T, 20 MeV", "ln min χ²_IP, 0.02", "boundary"], rows)


def wrong(numbers: Numbers) -> str:
    worse = [name for name in DETECTORS if name != NOMINAL]
    rows = []
    for model in MODELS:
        found = numbers["wrong simulation"][model]
        rates = [f"{found[w]['rate']:.2f} ± {found[w]['rate_error']:.2f}" for w in worse]
        first = found[worse[0]]
        changes = [f"{_join([first[f]], '+.3f')} ± {first[f'{f}_error']:.3f}" for f in FLAVORS]
        rows.append([model, *rates, *changes])
    head = [f"rate, {worse[0]}", *worse[1:], *(f"{f}, {worse[0]}" for f in FLAVORS)]
    return table(["", *head], rows)


def speed(numbers: Numbers) -> str:
    rows = [
        [name, f"{one['per_second'] / 1e6:.3g} million", f"{1e6 * one['latency']:.2g}"]
        for name, one in numbers["speed"].items()
        if name != "n_rows"
    ]
    return table(["", "candidates per second", "one candidate [µs]"], rows)


#: by the name that stands on the page
BLOCKS: dict[str, Callable[[Numbers], str]] = {
    "sample": about_sample,
    "checks": checks,
    "settings": settings,
    "rates": rates,
    "lifetimes": lifetimes,
    "late": late,
    "channels": by_channel,
    "claims": claims,
    "scan": scan,
    "seeds": seeds,
    "smoothness": smoothness,
    "wrong": wrong,
    "speed": speed,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="studies.trigger.page", description="Renew the page.")
    parser.add_argument("results", type=Path, help="where numbers.json and the figures are")
    results = parser.parse_args().results
    write(json.loads((results / "numbers.json").read_text()), results)


if __name__ == "__main__":
    main()
