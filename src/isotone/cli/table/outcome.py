"""What `isotone train` says at its end."""

from __future__ import annotations

from isotone.certificate.certify import Certificate
from isotone.cli.console import terminal
from isotone.cli.console.terminal import output, printable
from isotone.frozen.network import FrozenNetwork
from isotone.rounding import digits_up

_MOST_SCALINGS = 20  # that are listed


def print_outcome(certificate: Certificate, learned: str, metrics: dict[str, float]) -> None:
    """What was learned, what is guaranteed, and how good it is."""
    lines = {
        "learned": learned,
        "certificate": "HOLDS",  # a network that fails is not returned
        "guaranteed": certificate.guarantee,
        **certificate.asides,
    }
    judged = {name: f"{value:.5g}" for name, value in metrics.items()}
    output.print(terminal.facts(**lines, **judged))


def print_scaling(network: FrozenNetwork) -> None:
    """What the network sees of every number, and what its λ are in the units of the table."""
    inputs, table = network.inputs, terminal.columns("feature", "scaling", "λ, scaled", "λ, raw")
    found = [k for k, name in enumerate(inputs.encoded) if name in inputs.names]
    for k in found[:_MOST_SCALINGS]:
        own = slice(inputs.firsts[k], inputs.firsts[k] + inputs.counts[k])
        _, lipschitz, scaled = network.describe(k, digits=4)
        steepest = (network.lipschitz * network.scaling.steepest())[own].max()
        words = "unscaled" if scaled == "x" else scaled
        cells = inputs.encoded[k], words, lipschitz, digits_up(steepest, 3)
        table.add_row(*map(printable, cells))
    if found:
        output.print("", terminal.indented(table), sep="\n")
    if len(found) > _MOST_SCALINGS:
        left = len(found) - _MOST_SCALINGS
        output.print(f"  {left} more are not shown; isotone show lists all", style="dim")
    output.print()
