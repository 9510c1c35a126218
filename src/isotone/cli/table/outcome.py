"""What `isotone train` says at its end."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from isotone.certificate.certify import Certificate
from isotone.cli.console import terminal
from isotone.cli.console.terminal import output, printable
from isotone.frozen.network import FrozenNetwork
from isotone.rounding import digits_up

_MOST_SCALINGS = 20  # that are listed


def print_outcome(certificate: Certificate, learned: str, metrics: dict[str, float]) -> None:
    """What was learned, what is guaranteed, and how good it is."""
    lines: dict[str, object] = {
        "learned": learned,
        "certificate": terminal.verdict(True),  # a network that fails is not returned
        "guaranteed": certificate.guarantee,
        **certificate.asides,
    }
    judged = {name: f"{value:.5g}" for name, value in metrics.items()}
    output.print(terminal.facts(**lines, **judged))


def print_scaling(network: FrozenNetwork) -> None:
    """Directions, what the network sees of every feature, and λ in the units of the table.

    Features with a direction come first, categories and missing values last.
    """
    inputs = network.inputs
    table = terminal.columns("feature", "direction", "scaling", "λ, scaled", "λ, raw")
    numbers = set(inputs.names)
    found = sorted(
        range(len(inputs.encoded)),
        key=lambda k: (not network.directions[:, k].any(), inputs.encoded[k] not in numbers),
    )
    for k in found[:_MOST_SCALINGS]:
        own = slice(inputs.firsts[k], inputs.firsts[k] + inputs.counts[k])
        direction, lipschitz, scaled = network.describe(k, digits=4)
        steepest = (network.lipschitz * network.scaling.steepest())[own].max()
        unscaled = "unscaled" if inputs.encoded[k] in numbers else "0 or 1"
        words = unscaled if scaled == "x" else scaled
        cells = inputs.encoded[k], direction, words, lipschitz, digits_up(steepest, 3)
        table.add_row(*map(printable, cells))
    output.print("", terminal.indented(table), sep="\n")
    if len(found) > _MOST_SCALINGS:
        left = len(found) - _MOST_SCALINGS
        output.print(f"  {left} more are not shown; isotone show lists all", style="dim")
    output.print()


def print_next(model: Path, tables: Sequence[str], validation: str) -> None:
    """The command that shows the model, best on rows that it has not learned from."""
    unseen = [validation] if not _is_number(validation) else list(tables)
    words = ["isotone", "report", str(model), *(unseen if len(unseen) == 1 else [])]
    output.print(Text.assemble(("Next: ", "bold"), printable(shlex.join(words))), soft_wrap=True)


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()
