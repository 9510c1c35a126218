"""Which initialization trains best?

Question: how far do toys get in 500 steps, by initialization and depth?
Data: the toys of Figs. 1 to 3 and |x|, with their λ; depths 3, 6 and 12; full sort, and pairs.
Claim: common schemes are not optimal; simple modifications improve convergence.
Run time: about 40 seconds; --quick 3 seconds.
"""

from __future__ import annotations

from itertools import product
from typing import get_args

import numpy as np

from isotone.nn import Init
from studies.paper.scan import Scan, measure, show, table
from studies.paper.toys import TOYS
from studies.study import Outcome, main

DEPTHS = (3, 6, 12)
SORTS = {"full sort": None, "pairs": 2}
INITS: tuple[Init, ...] = get_args(Init)
STUCK = 0.28  # a network that is stuck gives the mean of |x|, with an error of 0.290


def run(quick: bool) -> Outcome:
    n_seeds, steps = (1, 2) if quick else (10, 500)
    cells = list(product(SORTS, TOYS, DEPTHS))
    scan = Scan(
        {
            (f"{sort}, {toy}, {depth}", init): measure(
                TOYS[toy](), depth, n_seeds, steps, group_size=SORTS[sort], init=init
            )
            for sort, toy, depth in cells
            for init in INITS
        }
    )
    deep = Scan({key: e for key, e in scan.errors.items() if key[0].endswith("12")})
    numbers = {
        "torch_over_orthogonal": scan.typical("torch") / scan.typical("orthogonal"),
        "torch_over_bound": scan.typical("torch") / scan.typical("bound"),
        "torch_over_independent": scan.typical("torch") / scan.typical("independent"),
        "torch_over_permutation": scan.typical("torch") / scan.typical("permutation"),
        "torch_over_orthogonal_deep": deep.typical("torch") / deep.typical("orthogonal"),
        **{f"stuck_{init}": stuck(scan, init) for init in INITS},
    }
    shown = Scan({key: e for key, e in deep.errors.items() if key[0].startswith("full")})
    return Outcome(numbers, show(shown), table(scan, "sort, toy, depth"))


def stuck(scan: Scan, init: Init) -> float:
    """How many runs on |x| end at its mean."""
    errors = [scan.errors[toy, init] for toy in scan.toys if "|x|" in toy]
    return float(np.sum(np.concatenate(errors) > STUCK))


if __name__ == "__main__":
    main(__file__, run)
