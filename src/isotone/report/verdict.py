"""The verdict: what is guaranteed and what is not, as HTML that needs no script."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from isotone.certificate.certify import Certificate
from isotone.certificate.slopes import Interval, Slope
from isotone.certificate.verdicts import Verdict
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.notebook import file_name, visible
from isotone.report.outcomes import Outcomes
from isotone.rounding import digits_down, digits_up

_WORDS = {1: "only rises", -1: "only falls", 0: "free"}
_ARROWS = {1: "↗", -1: "↘", 0: "↕"}
_MOST_NAMES = 8  # in a sentence
_MOST_MARKS, _MOST_LETTERS = 6, 28  # beside the badge
_SCROLL = '<div class="scroll{}" tabindex="0" role="region" aria-label="Table of features">'
_MANY = 15  # rows of a table that is taller than its window
_CROWD = 40  # directions that are too many for one page of paper


def escape(text: str) -> str:
    """Text from a file as HTML that shows it, whatever it holds."""
    return html.escape(visible(text))


def lead(certificate: Certificate, outcomes: Outcomes) -> str:
    """One sentence about what the model does, as HTML."""
    frozen = certificate.frozen
    n = len(frozen.inputs.columns)
    features = f"from {n} feature{'s' if n > 1 else ''}"
    if outcomes.kind == "classes":
        names = [f"<b>{escape(outcomes.name(k))}</b>" for k in range(len(outcomes.classes))]
        return f"Tells {_listed(names)} apart {features}; the largest probability decides."
    if outcomes.kind == "values":
        target = f"<b>{escape(outcomes.target)}</b>, " if outcomes.target else ""
        what = "a number" if len(outcomes.outputs) == 1 else f"{len(outcomes.outputs)} numbers"
        return f"Predicts {target}{what}, {features}."
    assert outcomes.threshold is not None
    chance = ""
    if outcomes.has_probability:
        p = frozen.to_probability(np.array([outcomes.threshold]))[0]
        chance = f", that is a probability of {100 * p:.4g}&nbsp;%"
    name = f"<b>{escape(outcomes.name(1))}</b>"
    return (
        f"Decides for {name} or against it {features}: for it if the score is at least "
        f"{_power(f'{outcomes.threshold:.5g}')}{chance}."
    )


def badge(certificate: Certificate, outcomes: Outcomes) -> str:
    """The verdict in a word, and what was declared of every feature, as HTML."""
    mark, kind = ("✓", "good") if certificate.holds else ("✗", "bad")
    judged: dict[tuple[str, int], list[Verdict]] = {}
    for each in certificate.verdicts:
        judged.setdefault((each.feature, each.direction), []).append(each)
    names = [slope.feature for slope in certificate.slopes if slope.output == 0]
    keys = [(name, sign) for name in names for sign in (1, -1)]
    told = [_mark_of(judged[key], outcomes) for key in keys if key in judged]
    more = f"<li>and {len(told) - _MOST_MARKS} more</li>" if len(told) > _MOST_MARKS else ""
    return (
        f'<p class="badge {kind}"><strong>{mark} {_head(certificate)}</strong></p>'
        f'<ul class="directions" aria-label="Declared directions">'
        f"{''.join(told[:_MOST_MARKS])}{more}</ul>"
    )


def _mark_of(judged: list[Verdict], outcomes: Outcomes) -> str:
    """A feature with its arrow, and the outputs that it is declared for unless that is all."""
    named = [outcomes.name(k) for k in range(len(outcomes.classes))]
    names = named if outcomes.kind == "classes" else outcomes.outputs
    some = [_short(names[v.output]) for v in judged] if len(judged) < len(names) else []
    arrow = _ARROWS[judged[0].direction] + (f" ({', '.join(some)})" if some else "")
    if not all(map(keeps, judged)):
        return f'<li class="bad">✗ {_short(judged[0].feature)} {arrow} not proved</li>'
    return f"<li>{_short(judged[0].feature)} {arrow}</li>"


def _short(name: str) -> str:
    return escape(name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…")


def _head(certificate: Certificate) -> str:
    if not certificate.holds:
        return "A declared constraint does NOT hold"
    if not certificate.verdicts:
        return "Every slope limit holds"
    return "Every declared constraint holds"


def to_html(certificate: Certificate, outcomes: Outcomes) -> str:
    """The section about proofs, assumptions and the fingerprint."""
    kind = "good" if certificate.holds else "bad"
    words = "".join(f"<li>{line}</li>" for line in _sentences(certificate, outcomes))
    tables = "".join(_table(certificate, outcomes, k) for k in range(len(certificate.constants)))
    limits = "".join(f"<li>{line}</li>" for line in _limits(certificate))
    return (
        f'<p class="{kind}"><strong>{_head(certificate)}.</strong></p>\n'
        f"<ul>{words}</ul>\n{tables}\n"
        f"<h3>What is not guaranteed</h3>\n<ul>{limits}</ul>\n{_identity(certificate)}"
    )


def _sentences(certificate: Certificate, outcomes: Outcomes) -> Iterator[str]:
    for k in range(len(certificate.constants)):
        for sign in (1, -1):
            found = [v for v in certificate.verdicts if (v.output, v.direction) == (k, sign)]
            yield from _direction(_subject(outcomes, k), sign, found)
    if not certificate.verdicts and not certificate.joint:
        yield "No direction is declared: every feature may push the score up or down."
    guarantee = certificate.guarantee.replace("logits", "the scores of classes")
    yield f"{'As computed by the machine' if certificate.holds else 'Guaranteed'}: {guarantee}."
    for verdict in certificate.joint:
        yield f"When columns move together: {escape(str(verdict))}."
    if certificate.about_missing:
        yield f"Missing values {escape(certificate.about_missing)}."
    if about := escape(certificate.about_interactions):
        yield f"{about[:1].upper()}{about[1:]}."
    yield (
        "Apart from rounding, no feature can move it faster than the table below allows, so a "
        "small error in a feature makes only a small change."
        if certificate.lipschitz_holds
        else "The declared bound on slopes does not hold; the table below shows the bounds found."
    )


def _direction(subject: str, sign: int, found: list[Verdict]) -> Iterator[str]:
    """What verdicts of one direction say: those that hold, and those that do not."""
    word, other = ("rises", "falls") if sign > 0 else ("falls", "rises")
    kept = [v.feature for v in found if keeps(v)]
    lost = [v.feature for v in found if not keeps(v)]
    exact = "In exact arithmetic: " if any(v.computed is None for v in found) else ""
    if kept:
        yield (
            f"{exact}{subject} never {other} when {_either(kept)} rises and everything else stays "
            f"the same: it {word} or does not change."
        )
    if lost:
        yield (
            f'<strong class="bad">Not proved:</strong> {subject} should never {other[:-1]} when '
            f"{_either(lost)} rises, but it may."
        )


def keeps(found: Verdict) -> bool:
    """Whether a declared direction is proved, for computed numbers at least up to rounding."""
    return found.real and found.computed is not False


def _subject(outcomes: Outcomes, k: int) -> str:
    if outcomes.kind == "classes":
        return f"The probability of <b>{escape(outcomes.name(k))}</b>"
    if outcomes.kind == "two classes":
        also = f", and with it the probability of <b>{escape(outcomes.name(1))}</b>,"
        return f"The score{also if outcomes.has_probability else ''}"
    if len(outcomes.outputs) > 1:
        return f"The output <b>{escape(outcomes.outputs[k])}</b>"
    target = f" of <b>{escape(outcomes.target)}</b>" if outcomes.target else ""
    return f"The prediction{target}"


def _either(names: list[str]) -> str:
    bold = [f"<b>{escape(name)}</b>" for name in names]
    return bold[0] if len(bold) == 1 else f"one of {_listed(bold)}"


def _listed(names: list[str]) -> str:
    """Names one after the other, not too many."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} others" if more > 0 else "")


def _table(certificate: Certificate, outcomes: Outcomes, k: int) -> str:
    verdicts = {v.feature: v for v in certificate.verdicts if v.output == k}
    slopes = [slope for slope in certificate.slopes if slope.output == k]
    slopes.sort(key=lambda slope: slope.feature not in verdicts)  # what was promised comes first
    rows = "".join(_row(slope, verdicts.get(slope.feature)) for slope in slopes)
    what, score = {
        "classes": ("probability", "score of this class"),
        "two classes": (_of_second(outcomes), "score"),
        "values": ("prediction", "prediction"),
    }[outcomes.kind]
    head = (
        f"<tr><th>feature</th><th>declared: {what}, when the feature rises</th>"
        f"<th>change of the {score} for one more unit of the feature</th>"
        "<th>proved for exact arithmetic</th><th>proved for computed numbers</th></tr>"
    )
    body = f"<thead>{head}</thead><tbody>{rows}</tbody>"
    many = len(slopes) > _MANY
    kind = " tall many" * many + " crowd" * (len(verdicts) > _CROWD)
    table = f'{_SCROLL.format(kind)}<table class="verdicts">{body}</table></div>'
    if many:
        table += f'<p class="hint more">All {len(slopes)} features are in this table: scroll.</p>'
    if len(certificate.constants) == 1:
        return table
    name = outcomes.name(k) if outcomes.classes else outcomes.outputs[k]
    opened = " open" if k == 0 else ""
    return f"<details{opened}><summary>{escape(name)}</summary>{table}</details>"


def _row(slope: Slope, found: Verdict | None) -> str:
    sign = 0 if found is None else found.direction
    computed = "–" if found is None else _computed(found)
    real = "–" if found is None else _mark(found.real)
    return (
        f"<tr{' class=free' * (found is None)}><th scope='row'>{escape(slope.feature)}</th>"
        f"<td>{_ARROWS[sign]} {_WORDS[sign]}</td><td class='number'>{_within(slope.raw)}</td>"
        f"<td>{real}</td><td>{computed}</td></tr>"
    )


def _of_second(outcomes: Outcomes) -> str:
    """What a direction of two classes is about."""
    if not outcomes.has_probability:
        return "score"
    return f"probability of <b>{escape(outcomes.name(1))}</b>"


def _mark(good: bool) -> str:
    return "✓ yes" if good else '<strong class="bad">✗ NO</strong>'


def _computed(found: Verdict) -> str:
    return "up to rounding" if found.computed is None else _mark(found.computed)


def _within(interval: Interval) -> str:
    """A few digits, rounded outward."""
    return f"{_power(digits_down(interval.low, 3))} to {_power(digits_up(interval.high, 3))}"


def _power(text: str) -> str:
    """1.2e-08 as people write it."""
    mantissa, mark, exponent = text.replace("-", "−").partition("e")
    sign = "−" if exponent.startswith("−") else ""
    return mantissa + (f"·10<sup>{sign}{int(exponent.lstrip('−+'))}</sup>" if mark else "")


def _limits(certificate: Certificate) -> Iterator[str]:
    yield "That the model is accurate, fair or useful, on these or on other rows."
    yield (
        "What happens when several features change at once, in opposite directions: a "
        "declared direction is about one feature that changes while all others stay the same"
        f"{', or about columns that move together as stated above' if certificate.joint else ''}."
    )
    if any(sign == 0 for row in certificate.frozen.monotonic_cst for sign in row):
        yield "The direction of features marked free; only their slope is bounded."
    yield from _far_away(certificate)
    if certificate.grid is not None:
        yield (
            "That computed scores change smoothly: features are rounded, so scores change in "
            "tiny steps. The bounds in the table are those of the exact function, where features "
            "are not clamped."
        )
    error = max(certificate.rounding_errors)
    if math.isfinite(error):
        yield (
            f"That the computed score is the exact one; it is off by at most "
            f"{_power(digits_up(error))}, which every statement here allows for."
        )


def _far_away(certificate: Certificate) -> Iterator[str]:
    """Where features no longer count."""
    counts, clip = certificate.frozen.inputs.counts, f"{certificate.clip:g}"
    if np.any(counts == 1):
        without = " without inner knots" if np.any(counts > 1) else ""
        units = "unit" if clip == "1" else "units"
        yield (
            f"That a feature{without} still counts beyond {clip} scaled {units} from its center: "
            f"such a value is taken as if it were at {clip}, and the score stays the same there."
        )
    if np.any(counts > 1):
        yield (
            "That a feature with knots still counts beyond the outermost of them: the score is "
            "constant there."
        )


def _identity(certificate: Certificate) -> str:
    frozen = certificate.frozen
    lines = {
        "fingerprint": f"<code>{certificate.fingerprint}</code> (SHA-256 of every number of the "
        "model; <code>isotone certify</code> prints it)",
        "shape": f"{frozen.shape.replace('-', '–')}, {frozen.n_parameters:,} parameters",
        "arithmetic": _arithmetic(frozen),
        "made from": escape(_origin(frozen)),
    }
    rows = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in lines.items() if text)
    return f'<dl class="identity">{rows}</dl>'


def _arithmetic(frozen: FrozenNetwork) -> str:
    grid = (
        "not rounded"
        if frozen.grid is None
        else f"rounded to multiples of 2<sup>{math.log2(frozen.grid):.0f}</sup>".replace("-", "−")
    )
    knots = ", copies between knots to ±1," if np.any(frozen.inputs.counts > 1) else ""
    return f"{frozen.precision}; scaled features are clamped to ±{frozen.clip:g}{knots} and {grid}"


def _origin(frozen: FrozenNetwork) -> str:
    """What the model file says about its making, without what the page shows elsewhere."""
    known = frozen.provenance
    found = [_without_folders(value) for value in known.values()]
    texts = [v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in found]
    pairs = zip(known, texts, strict=True)
    return "; ".join(f"{name} {text}" for name, text in pairs if len(text) <= 200)


def _without_folders(value: Any) -> Any:
    """The value with the last part of every path in it: folders tell about someone's machine."""
    if isinstance(value, Mapping):
        return {name: _without_folders(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_without_folders(entry) for entry in value]
    is_path = isinstance(value, str) and re.match(r"([A-Za-z]:|~\w*|\.\.?|\w+:/)?[/\\]", value)
    return file_name(value) if is_path else value
