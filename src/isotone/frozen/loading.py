"""Loading: a `FrozenNetwork` from its file, of this format version or the one before.

JSON files of LHCb's trigger are read as well: see `isotone.frozen.lhcb`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isotone import limits
from isotone.arithmetic import ieee_arithmetic
from isotone.checks import check_count
from isotone.files.untrusted import begins_as_json, open_regular, parse_json
from isotone.frozen import lhcb, modelfile
from isotone.frozen.modelfile import Arrays
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import Dense, Members, Pointwise, Sort, Step, Steps, residual_block
from isotone.inputs.chain import Inputs
from isotone.inputs.scaling import Scaling, numbers


@ieee_arithmetic()
def load(
    path: str | Path,
    *,
    features: Sequence[str] | None = None,
    monotonic_cst: ArrayLike | None = None,
    clip: float | None = None,
) -> FrozenNetwork:
    """Read a `.isotone` file. It is checked, but its claims are not: see `isotone.certify`.

    A JSON file of LHCb's trigger, for Allen or HLT2, is read too (`isotone.frozen.lhcb`). Only
    for such a file can there be something to add.

    Parameters
    ----------
    features : names; by default those that isotone wrote into the file, or else x0, x1, ...
    monotonic_cst : -1, 0 or +1 per feature, for a file of HLT2 that does not say
    clip : for a file that neither rescales nor clamps its inputs, where they are clamped here; by
        default what isotone wrote into the file, or else 1024
    """
    given: dict[str, Any] = {"features": features, "monotonic_cst": monotonic_cst, "clip": clip}
    file, size = open_regular(path)
    with file:
        if begins_as_json(file.peek()):
            with describing(f"{str(path)!r} is not a network for Allen or HLT2"):
                limits.SIGMA_NET.check(size)
                return lhcb.build(parse_json(file.read(size)), **given)
        for name in (name for name, value in given.items() if value is not None):
            raise ValueError(
                f"`{name}` is for JSON files of LHCb's trigger but {str(path)!r} is another file, "
                "which has it: leave it out"
            )
        content, arrays = modelfile.read(path, file, size)
    with describing(f"model file {str(path)!r} does not describe a network"):
        return _build(_current(dict(content)), arrays)


@contextmanager
def describing(complaint: str, advice: str = "") -> Iterator[None]:
    """Whatever content makes Python raise is a `ValueError` with a complaint, why, and advice."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError, ValueError) as error:
        reason = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{complaint}: {reason}{advice}") from error


def _current(content: dict[str, Any]) -> dict[str, Any]:
    """Content of the current format; version 1 kept the inputs, if at all, in the provenance."""
    if "inputs" in content:
        return content
    provenance = dict(content["provenance"])
    stored = provenance.pop("encoding", None)
    plain = Inputs.numbers(content["features"]).to_dict()
    inputs = plain if stored is None else {"columns": _encoded(stored), "copies": []}
    return content | {"inputs": inputs, "provenance": provenance | {"format": 1}}


def _encoded(stored: dict[str, Any]) -> list[dict[str, Any]]:
    """The columns of an encoding of format version 1."""
    fills, categories = stored["fills"], stored["categories"]
    return [
        {"kind": "category", "name": name, "categories": categories[name]}
        if name in categories
        else {"kind": "number", "name": name, "fill": fills.get(name)}
        for name in stored["columns"]
    ]


def _build(content: dict[str, Any], arrays: Arrays) -> FrozenNetwork:
    steps = assemble(content["steps"], lambda _, name: arrays.pop(name))
    residual = arrays.pop("residual")
    if arrays:
        raise ValueError(f"no step uses the array {min(arrays)!r}")
    return build(content, steps, residual)


def build(content: dict[str, Any], steps: Steps, residual: Any) -> FrozenNetwork:
    """The network that plain JSON content describes, with these numbers."""
    classes = content["classes"]
    changes = {
        "inputs": Inputs.from_dict(content["inputs"]),
        "features": _names(content["features"]),
        "scaling": Scaling.from_dict(content["scaling"]),
        "steps": steps,
        "residual": residual,
        "lipschitz": numbers(content["lipschitz"]),
        "monotonic_cst": np.array([numbers(row) for row in _listed(content["monotonic_cst"])]),
        "classes": None if classes is None else _names(classes),
        "joint_cst": _listed(content.get("joint_cst", [])),
        "clip": _number(content["clip"]),
        "grid": None if content["grid"] is None else _number(content["grid"]),
    }
    return FrozenNetwork(**(content | changes))


def _number(value: Any) -> float:
    (found,) = numbers([value]).tolist()
    return float(found)


def _names(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"names must be a list of text; got {values!r:.100}")
    return tuple(values)


def _listed(values: Any) -> list[Any]:
    """A list from a file: an object without entries would do for an empty one."""
    if not isinstance(values, list):
        raise ValueError(f"a list was expected; got {values!r:.100}")
    return values


# Finds an array of a described dense step, by the name that model files give it.
Find = Callable[[dict[str, Any], str], Any]


def assemble(described: list[dict[str, Any]], find: Find, prefix: str = "") -> Steps:
    """The steps that `describe` wrote; `find` gives the numbers of the dense ones.

    They are nested no deeper than JSON may be; what a network may have is checked there.
    """
    limits.STEPS.check(len(_listed(described)))
    return tuple(_step(entry, find, f"{prefix}{i}.") for i, entry in enumerate(described))


def _step(entry: dict[str, Any], find: Find, prefix: str) -> Step:
    match entry["kind"]:
        case "dense":
            return Dense(*(find(entry, prefix + name) for name in ("weight", "bias")))
        case "sort":
            return Sort(check_count("group_size", entry["group_size"]))
        case "pointwise":
            # format version 1 called it the slope
            slope = entry["slope"] if "slope" in entry else entry["negative_slope"]
            return Pointwise(entry["name"], _number(slope))
        case "members":
            limits.STEPS.check(len(_listed(entry["members"])))
            members = (
                assemble(inner, find, f"{prefix}{k}.") for k, inner in enumerate(entry["members"])
            )
            return Members(tuple(numbers(entry["weights"]).tolist()), tuple(members))
        case "blend":  # of format version 1
            branch = assemble(entry["steps"], find, prefix)
            keep, add = numbers([entry["keep"], entry["add"]]).tolist()
            return residual_block(keep, add, branch)
        case other:
            raise ValueError(f"a step of kind {other!r} is unknown")


def check_network(job: str, value: Any) -> None:
    """Raise `TypeError` unless `value` is a frozen network.

    Parameters
    ----------
    job : who does what with it, for the message, such as "`certify` examines"
    """
    if isinstance(value, FrozenNetwork):
        return
    advice = "call isotone.freeze(network) first, or isotone.load(path)"
    if hasattr(value, "fit"):
        advice = "give the `network_` of a fitted estimator"
    raise TypeError(f"{job} a FrozenNetwork; got {type(value).__name__}: {advice}")
