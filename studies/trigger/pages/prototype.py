"""The prototype: what another implementation of the same model gave, to be told beside ours.

It trained briefly (12 to 15 epochs, batch 512, 300 trees); its errors are not known.
"""

from __future__ import annotations

from studies.trigger.study import FREE, OURS, TREES

#: efficiencies of two inputs at 0.5-1, 1-1.5, 2-3, 3-4, 4-6, 6-8, 8-11, 11-15 and 15-25 ps
LIFETIMES = {
    ("beauty", FREE): (0.67, 0.83, 0.90, 0.90, 0.87, 0.82, 0.76, 0.69, 0.60),
    ("beauty", TREES): (0.66, 0.80, 0.87, 0.89, 0.88, 0.90, 0.90, 0.90, 0.89),
    ("beauty", OURS): (0.66, 0.80, 0.88, 0.90, 0.89, 0.90, 0.91, 0.91, 0.89),
    ("charm", FREE): (0.28, 0.59, 0.75, 0.70, 0.55, 0.40, 0.31, 0.28, 0.21),
    ("charm", OURS): (0.27, 0.49, 0.60, 0.61, 0.60, 0.60, 0.58, 0.59, 0.61),
}
#: bins of `studies.trigger.efficiency.EDGES` that it told
BINS = (0, 1, 3, 4, 5, 6, 7, 8, 9)

#: checks of a sample: what, what is demanded, what the prototype had
CHECKS = (
    (
        "prompt IP resolution at 1 GeV [µm], flat in η, p_T and without the primary vertex",
        "20 to 24, falls with p_T",
        "22",
    ),
    (
        "mean proper time over lifetime, B⁰ and D⁰",
        "1 within 2 % (or 3 errors)",
        "0.999 ± 0.005, 0.997 ± 0.008",
    ),
    ("median vertex χ² of charm", "0.45 to 0.6", "0.52"),
    (
        "candidates of collisions: prompt, material, ghost, strange, one heavy track, true heavy "
        "[%]",
        "each > 2",
        "53, 4, 10, 8, 16, 9",
    ),
    ("ln min χ²_IP > 9: background, beauty, charm [%]", "falling", "2.1, 0.9, 0.03"),
    ("the same, > 10", "falling", "0.5, 0.07, 0.00"),
    ("Σp_T > 20 GeV: background, beauty [%]", "–, see below", "0.13, 0.07"),
    ("the same, > 30 GeV", "background > beauty, and its share falls more slowly", "–"),
    (
        "median ln min χ²_IP, Σp_T [GeV]: material; beauty",
        "far out, soft",
        "8.8, 1.4; 5, 3.3",
    ),
    ("99 % quantile of Σp_T: ghosts, beauty [GeV]", "ghosts beyond", "21, 11"),
    ("collisions with a candidate [%]; candidates per collision", "5 to 20", "9.6; 0.19"),
    (
        "preselection over truth cut: beauty; charm; Ξc⁰",
        "–",
        "0.57–0.80; 0.32–0.62; 0.12",
    ),
)
