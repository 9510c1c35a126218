"""Which of the three normalizations trains best?

Question: how far do toys get in 500 steps with Eq. 8, the second and the first variant of Eq. 7?
Data: the toys of Figs. 1 to 3 and |x|; λ = 8 and 4, as the variants of Eq. 7 are one for λ = 1.
Claim: column by column is best; of the whole-matrix norms the second trains slightly better.
Run time: about 35 seconds; --quick 2 seconds.
"""

from __future__ import annotations

from isotone.nn import Norm
from studies.paper.scan import Scan, measure, show, table
from studies.paper.toys import TOYS, steep
from studies.study import Outcome, main

NORMS: dict[str, Norm] = {
    "columns": "columns",
    "matrix, 2nd": "matrix",
    "matrix, 1st": "rescaled-matrix",
}


def run(quick: bool) -> Outcome:
    n_seeds, steps = (2, 4) if quick else (5, 500)
    scan = Scan(
        {
            (toy, label): measure(steep(make()), 3, n_seeds, steps, norm=norm)
            for toy, make in TOYS.items()
            for label, norm in NORMS.items()
        }
    )
    columns, second, first = NORMS
    numbers = {
        "second_over_columns": scan.typical(second) / scan.typical(columns),
        "columns_beat_second": scan.wins(columns, second),
        "first_over_second": scan.typical(first) / scan.typical(second),
        "second_beats_first": scan.wins(second, first),
    }
    return Outcome(numbers, show(scan), table(scan))


if __name__ == "__main__":
    main(__file__, run)
