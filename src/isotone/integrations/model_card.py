"""Model card: what a model is and what is proved of it, as the README of a model hub.

Every fact comes from the model's own numbers; the certificate is recomputed. What only a person
can say, the intended use and its limits, is left open, marked as such.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from isotone.certificate.certify import Certificate, certify
from isotone.frozen.network import FrozenNetwork
from isotone.selftest import KEY as SELFTEST

_PERSON = "*For a person to write.*"


def describe_model(frozen: FrozenNetwork, title: str = "An isotone model") -> str:
    """A model card in Markdown, with the front matter that Hugging Face reads.

    Examples
    --------
    >>> import isotone
    >>> network = isotone.MonotonicNetwork([2, 8, 1], monotonic_cst=[1, -1])
    >>> print(describe_model(isotone.freeze(network, features=["income", "debt"]))[:24])
    ---
    library_name: isoton
    """
    return "\n".join(_parts(frozen, certify(frozen), _escaped(title)))


def _parts(frozen: FrozenNetwork, certificate: Certificate, title: str) -> Iterator[str]:
    task = "classification" if frozen.outputs == "logits" else "regression"
    tags = f"[monotonic, robust, certified, tabular-{task}]"
    yield f"---\nlibrary_name: isotone\npipeline_tag: tabular-{task}\ntags: {tags}\n---\n"
    yield f"# {title}\n"
    yield f"## What it is\n\n{_facts(frozen)}\n"
    yield f"## Inputs\n\n{_inputs(frozen)}\n"
    yield f"## What is proved\n\n{_proved(frozen, certificate)}\n"
    yield f"## How to use it\n\n{_usage(frozen)}\n"
    yield f"## Intended use\n\n{_PERSON}\n"
    yield f"## Limits and risks\n\n{_limits()}\n\n{_PERSON}\n"
    if frozen.provenance:
        yield f"## Stated by its maker, not verified\n\n{_stated(frozen)}\n"


def _facts(frozen: FrozenNetwork) -> str:
    outputs = (
        f"{frozen.n_outputs} {frozen.outputs if frozen.n_outputs > 1 else frozen.outputs[:-1]}"
    )
    classes = f" of the classes {', '.join(frozen.classes)}" if frozen.classes else ""
    about = (
        [["directions and slopes", f"of the {frozen.about(0)}"]] if not frozen.of_classes else []
    )
    return _table(
        ["", ""],
        [
            ["shape", f"{frozen.shape}, {frozen.n_parameters:,} parameters"],
            ["outputs", outputs + classes],
            *about,
            ["arithmetic", f"{frozen.precision}, bit for bit the same on every machine"]
            if frozen.precision == "float64"
            else ["arithmetic", frozen.precision],
            ["fingerprint", frozen.fingerprint],
        ],
    )


def _inputs(frozen: FrozenNetwork) -> str:
    inputs, rows = frozen.inputs, []
    for k, feature in enumerate(inputs.encoded):
        column = inputs.owner(k)
        source = column.describe() if feature == column.features[0] else column.name
        direction, _, scaled = frozen.describe(k)
        rows.append([feature, source, direction, scaled])
    return _table(["feature", "from", "declared direction", "scaled input"], rows)


def _proved(frozen: FrozenNetwork, certificate: Certificate) -> str:
    verdict = "HOLDS" if certificate.holds else "FAILS"
    said = [f"The certificate **{verdict}**: {_escaped(certificate.guarantee)}."]
    said += [f"{t.capitalize()}: {_escaped(about)}." for t, about in certificate.asides.items()]
    names, several = frozen.output_names, frozen.n_outputs > 1
    slopes = [
        [f"{names[s.output]}: {s.feature}" if several else s.feature, str(s.raw)]
        for s in certificate.slopes
    ]
    table = _table(["feature", "slope of the score per raw unit"], slopes)
    check = "`isotone certify` recomputes this from the file; nothing here has to be believed."
    return f"{' '.join(said)}\n\n{table}\n\n{check}"


def _usage(frozen: FrozenNetwork) -> str:
    names = ", ".join(map(repr, frozen.inputs.names)).replace("`", "'")  # stays a code block
    what = "probability" if frozen.outputs == "logits" else "score"
    return (
        "```python\nimport isotone\n\n"
        'model = isotone.load("model.isotone")  # needs no torch, runs no code\n'
        f"model.{what}(table)  # a data frame with the columns {names}\n```"
    )


def _limits() -> str:
    return (
        "Proved are directions, slopes and reproducibility, not accuracy, calibration or "
        "fairness. Nothing is promised about columns that change together in opposite "
        "directions, unless it is listed above."
    )


def _stated(frozen: FrozenNetwork) -> str:
    stated = {key: value for key, value in frozen.provenance.items() if key != SELFTEST}
    return _table(["", ""], [[key, str(value)[:500]] for key, value in stated.items()])


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), *([_escaped(cell) for cell in row] for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(text: str) -> str:
    """Text of a stranger's file: one line, without marks that Markdown or HTML would act on."""
    return re.sub(r"([\\<>|*_\[\]#])", r"\\\1", " ".join(text.split())).replace("`", "'")
