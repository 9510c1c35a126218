"""Analysis: models trained on the sample, their working point, and the paper's figures.

`study` trains and judges the models; `studies.trigger.questions` asks further.
"""
