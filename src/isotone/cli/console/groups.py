"""Groups: the panels in which the help of a command shows its options, by what they are about."""

from __future__ import annotations

from collections.abc import Mapping

_DATA, _KNOWN, _NETWORK, _TRAINING = "Data", "What you know", "Network", "Training"
_KNOWLEDGE = ("increasing", "decreasing", "joint_cst", "interaction_cst")
_LARGE = "Large tables"

GROUPS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "train": {
        _KNOWN: _KNOWLEDGE,
        _DATA: (
            *("signal", "background", "positive", "features", "categorical", "ordered"),
            *("min_frequency", "missing", "weights", "signed_weights", "validation", "group_by"),
        ),
        _NETWORK: (
            *("lipschitz", "lipschitz_max", "knots", "log", "scaling", "hidden_layer_sizes"),
            *("group_size", "evaluator"),
        ),
        _TRAINING: ("loss", "class_weight", "max_iter", "n_members", "random_state", "resume"),
        _LARGE: ("workers", "scheduler"),
    },
    "sweep": {
        _KNOWN: _KNOWLEDGE,
        _DATA: ("features", "log", "scaling", "validation"),
        "Grid": ("seeds", "lipschitz", "hidden_layer_sizes", "loss", "group_size"),
        _TRAINING: ("max_iter", "batch_size", "shard_size", "workers", "scheduler"),
    },
    "score": {_LARGE: ("workers", "scheduler")},
    "report": {
        "The table": ("target", "weights", "on_unseen", "embed_rows"),
        "Decisions": ("threshold", "shift"),
        "Another model": ("against", "compare"),
        "Reasons": ("points", "texts"),
    },
    "export": {
        "Threshold": ("threshold", "point"),
        "C++, CUDA, Verilog": ("name", "depth"),
        "ONNX": ("precision", "sort", "sums", "categories"),
        "SQL": ("dialect", "table", "keep"),
        "Allen and HLT2": ("rescale", "reach", "shift", "bare"),
    },
    "trigger": {
        "Events": (
            *("event", "n_events", "target", "signal", "background", "weights", "on_unseen"),
            "examined",
        ),
        "Rate": ("max_rate", "threshold", "rates", "input_rate", "pileup", "block", "rate_by"),
        "Efficiency": ("group", "against", "edges", "split", "tis"),
    },
    "monitor": {
        "Threshold": ("threshold", "point"),
        "Alarms": ("psi", "decisions", "missing"),
    },
    "transport": {
        _DATA: ("columns", "weights", "metric"),
        _TRAINING: ("validation", "steps", "batch_size", "random_state"),
    },
}


def panel_of(command: str | None, option: str) -> str | None:
    """The panel of an option, None for those that come first."""
    panels = GROUPS.get(command or "", {})
    return next((panel for panel, names in panels.items() if option in names), None)
