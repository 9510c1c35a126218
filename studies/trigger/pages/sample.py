"""The sample on the page: its size, its checks, and what hangs on ghosts and material."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from studies.trigger.analysis.study import COMMITTED, FREE, OURS
from studies.trigger.pages.markdown import join, table
from studies.trigger.questions import dependence
from studies.trigger.simulation.checks import check
from studies.trigger.simulation.generation.channels import channels

Numbers = dict[str, Any]

#: what `checks.check` looks at, in its order, and what is demanded
CHECKS = (
    (
        "prompt IP resolution at 1 GeV [µm], flat in η, p_T and without the primary vertex",
        "20 to 24, falls with p_T",
    ),
    ("mean proper time over lifetime, B⁰ and D⁰", "1 within 2 % (or 3 errors)"),
    ("median vertex χ² of charm", "0.45 to 0.6"),
    (
        "candidates of collisions: prompt, material, ghost, strange, one heavy track, true heavy "
        "[%]",
        "each > 2",
    ),
    ("ln min χ²_IP > 9: background, beauty, charm [%]", "falling"),
    ("the same, > 10", "falling"),
    ("Σp_T > 20 GeV: background, beauty [%]", "–, see below"),
    ("the same, > 30 GeV", "background > beauty, and its share falls more slowly"),
    ("median ln min χ²_IP, Σp_T [GeV]: material; beauty", "far out, soft"),
    ("99 % quantile of Σp_T: ghosts, beauty [GeV]", "ghosts beyond"),
    ("collisions with a candidate [%]; candidates per collision", "5 to 20"),
    ("preselection over truth cut: beauty; charm; Ξc⁰", "–"),
)


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
    head = ["check", "demand", "small sample", "full sample"]
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
        join((100 * value for value in mixture), ".0f"),
        join((100 * value for value in nine), ".2f"),
        join((100 * value for value in ten), ".2f"),
        *(
            f"{b:.3f} ± {b_error:.3f}, {s:.3f} ± {s_error:.3f}"
            for b, b_error, s, s_error in (percent[:4], percent[4:])
        ),
        f"{far[0]:.1f}, {soft[0]:.1f}; {far[1]:.1f}, {soft[1]:.1f}",
        join(tail, ".1f"),
        f"{100 * share:.1f}; {per_collision:.2f}",
        f"{beauty[0]:.2f}–{beauty[2]:.2f}; {charm[1]:.2f}–{charm[2]:.2f}; {charm[0]:.2f}",
    ]


def settings(numbers: Numbers) -> str:
    """The dependence on ghosts and material."""
    head = ["ghosts, module", f"{FREE}, 3–4 → 8–11 ps", OURS]
    head += ["unconstrained, 15–25 ps over plateau", "ours", "Δ beauty, charm"]
    rows = "\n".join(dependence.row(one).replace("-", "−") for one in numbers["dependence"])
    return f"{table(head, [])}\n{rows}"
