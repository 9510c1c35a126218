"""Is it better to normalize in every forward pass, or to project after every step?

Question: how far do toys get in 500 steps with gradients through the norm, or with projection?
Data: the toys of Figs. 1 to 3 and |x|, with their λ.
Claim: none; the paper normalizes directly (Algorithm 1) and says that toys exist where it hurts.
Run time: about 20 seconds; --quick 2 seconds.
"""

from __future__ import annotations

from isotone.nn import Apply
from studies.paper.scan import Scan, measure, show, table
from studies.paper.toys import TOYS
from studies.study import Outcome, main

WAYS: tuple[Apply, ...] = ("direct", "project")


def run(quick: bool) -> Outcome:
    n_seeds, steps = (2, 4) if quick else (5, 500)
    scan = Scan(
        {
            (toy, way): measure(make(), 3, n_seeds, steps, apply=way)
            for toy, make in TOYS.items()
            for way in WAYS
        }
    )
    numbers = {
        "project_over_direct": scan.typical("project") / scan.typical("direct"),
        "direct_beats_project": scan.wins("direct", "project"),
    }
    return Outcome(numbers, show(scan), table(scan))


if __name__ == "__main__":
    main(__file__, run)
