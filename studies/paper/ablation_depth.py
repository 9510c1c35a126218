"""Does a deep enough network fit anything?

Question: how does the error on hard toys fall with depth, at width 20?
Data: |x| and the flower of Fig. 3, with their λ; full sort, and pairs.
Claim: no function was found that a deep enough network could not approximate well enough.
Run time: about 30 seconds; --quick 2 seconds.
"""

from __future__ import annotations

from studies.paper.scan import Scan, measure, show, table
from studies.paper.toys import TOYS
from studies.study import Outcome, main

DEPTHS = (2, 3, 4, 6, 8, 12)
SORTS = {"full sort": None, "pairs": 2}


def run(quick: bool) -> Outcome:
    n_seeds, steps = (2, 4) if quick else (10, 2000)
    scan = Scan(
        {
            (f"{toy}, {sort}", str(depth)): measure(
                TOYS[toy](), depth, n_seeds, steps, group_size=group_size
            )
            for toy in ("|x|", "flower")
            for sort, group_size in SORTS.items()
            for depth in DEPTHS
        }
    )
    flower = "flower, full sort"
    best = min(DEPTHS, key=lambda depth: scan.median(flower, str(depth)))
    numbers = {
        "shallow_over_best": scan.median(flower, "2") / scan.median(flower, str(best)),
        "best_depth": float(best),
        "best_error": scan.median(flower, str(best)),
        "deepest_error": scan.median(flower, str(DEPTHS[-1])),
    }
    return Outcome(numbers, show(scan), table(scan, "toy, sort; by depth"))


if __name__ == "__main__":
    main(__file__, run)
