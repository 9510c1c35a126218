"""Questions beyond the paper's figures, one module each.

`scan` (λ, with the wrong calibrations of `calibration`), `seeds`, `smoothness`, `wrong` (another
detector than simulated, from `detectors`), `dependence` (ghosts and material), `speed`, `tail`.
"""
