"""An LHCb-like heavy-flavor trigger on simulated physics: the sample and the study.

`simulation` makes the sample, `analysis` trains and measures, `questions` asks further, `pages`
writes docs/trigger.md. That page says what is modelled and what is not. It is LHCb-like, never
LHCb.
"""
