"""How large should the groups be that are sorted?

Question: how far do toys get in 1000 steps with groups of 2, 4, 10, or all 20 units?
Data: the toys of Figs. 1 to 3 and |x|, with their λ.
Claim: none; the paper sorts all units of its trigger network.
Run time: about 10 seconds; --quick 2 seconds.
"""

from __future__ import annotations

from studies.paper.scan import Scan, measure, show, table
from studies.paper.toys import TOYS
from studies.study import Outcome, main

SIZES = {"2": 2, "4": 4, "10": 10, "all": None}


def run(quick: bool) -> Outcome:
    n_seeds, steps = (2, 4) if quick else (10, 1000)
    scan = Scan(
        {
            (toy, label): measure(make(), 3, n_seeds, steps, group_size=size)
            for toy, make in TOYS.items()
            for label, size in SIZES.items()
        }
    )
    numbers = {f"{label}_over_all": scan.typical(label) / scan.typical("all") for label in SIZES}
    del numbers["all_over_all"]
    numbers["all_beat_2"] = scan.wins("all", "2")
    numbers["flower_2_over_all"] = scan.median("flower", "2") / scan.median("flower", "all")
    return Outcome(numbers, show(scan), table(scan))


if __name__ == "__main__":
    main(__file__, run)
