"""Analysis: models trained on the sample, their working point, and one module per question.

`study` trains and judges the models of the paper's figures. `scan` (λ), `seeds`, `smoothness`,
`wrong` (another detector than simulated), `dependence` (ghosts and material), `speed` and `tail`
ask further.
"""
