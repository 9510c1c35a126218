"""`isotone transport`: how far two tables of points are apart, with bounds that hold."""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isotone.checks import check_choice
from isotone.cli.console import terminal
from isotone.cli.console.destination import Destination
from isotone.cli.console.options import listed, spelled
from isotone.cli.console.terminal import errors, output
from isotone.cli.table.columns import tell_left_out
from isotone.data.table import Table, index_columns, open_table, read_numbers, split_tree
from isotone.files import refuse_overwriting, write_whole
from isotone.files.locks import sole_use
from isotone.rounding import digits_down, digits_up
from isotone.typing import Floats

if TYPE_CHECKING:
    from isotone.transport.wasserstein import Distance

_METRICS = {"1": 1.0, "2": 2.0, "inf": math.inf}


def transport(
    p: Annotated[str, typer.Argument(metavar="P", help="Points: CSV, Parquet or ROOT.")],
    q: Annotated[str, typer.Argument(metavar="Q", help="Points: CSV, Parquet or ROOT.")],
    columns: Annotated[
        str | None, typer.Option(help="Coordinates a,b,...; default: all but the weights.")
    ] = None,
    weights: Annotated[str | None, typer.Option(help="Column of weights, in both tables.")] = None,
    metric: Annotated[str, typer.Option(help="Norm of the ground space: 1, 2 or inf.")] = "2",
    upper: Annotated[
        bool, typer.Option("--upper", help="Compute a plan, which gives an upper bound.")
    ] = False,
    validation: Annotated[
        float, typer.Option(help="Share of the points held out for early stopping; 0: none.")
    ] = 0.0,
    steps: Annotated[int, typer.Option(min=1, help="Maximum number of training steps.")] = 3000,
    batch_size: Annotated[int, typer.Option(min=1, help="Points of each table per step.")] = 2048,
    random_state: Annotated[int, typer.Option(help="Seed; the same gives the same numbers.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Directory for all results, or an .isotone file.")
    ] = None,
) -> None:
    """Wasserstein distance between two tables of points, with a certified lower bound.

    Coordinates are used as they are: bring columns with different units to one scale first.
    """
    from isotone.transport.wasserstein import Schedule, wasserstein

    check_choice("--metric", metric, tuple(_METRICS))
    destination = None if out is None else Destination.of(out, "critic.isotone")
    _refuse_overwriting(destination, p, q)
    tables = open_table(p), open_table(q)
    names = _coordinates(tables, columns, weights)
    (P, weights_p), (Q, weights_q) = (_read(table, names, weights) for table in tables)
    with nullcontext() if destination is None else sole_use(destination.room):
        found = wasserstein(
            P,
            Q,
            weights_p,
            weights_q,
            metric=_METRICS[metric],
            random_state=random_state,
            schedule=Schedule(steps=steps, batch_size=batch_size, validation=validation),
            upper_bound=upper,
            features=names,
            progress=errors.is_terminal,
        )
        _print(found, (len(P), len(Q)), names, metric)
        if destination is not None:
            _write(found, destination)
            terminal.say(f"wrote {out}")


def _coordinates(
    tables: tuple[Table, Table], columns: str | None, weights: str | None
) -> list[str]:
    """Names of the coordinates, which both tables have."""
    if columns is not None:
        chosen = list(listed(columns))
        if not chosen:
            raise ValueError("`--columns` names no column; give at least one, as in x,y")
        if len(set(chosen)) < len(chosen):
            raise ValueError(f"`--columns {columns}` names a column twice; give each once")
        if weights in chosen:
            raise ValueError(f"`--weights {weights}` is one of `--columns`; it cannot be both")
        return chosen
    index = {name for table in tables for name in index_columns(table)} - {weights}
    tell_left_out(sorted(index), "columns")
    names, others = (
        [c for c in table.columns if c != weights and c not in index] for table in tables
    )
    if set(names) != set(others):
        odd = sorted(set(names) ^ set(others))
        shared = [name for name in names if name in others]
        hint = f": name them with `{spelled('columns', *shared)}`" if shared else ""
        raise ValueError(
            f"{tables[0].path!r} and {tables[1].path!r} differ in the column {odd[0]!r}; both "
            f"must have the same coordinates{hint}"
        )
    return names


def _read(table: Table, names: list[str], weights: str | None) -> tuple[Floats, Floats | None]:
    values = read_numbers(table.path, [*names, *([weights] if weights else [])])
    if len(values) == 0:
        raise ValueError(f"{table.path!r} has no rows; a cloud needs at least one point")
    return values[:, : len(names)], values[:, -1] if weights else None


def _refuse_overwriting(destination: Destination | None, *tables: str) -> None:
    if destination is not None:
        refuse_overwriting(
            [destination.model, *destination.beside("distance.json")],
            [split_tree(table)[0] for table in tables],
        )


def _print(found: Distance, sizes: tuple[int, int], names: list[str], metric: str) -> None:
    facts = {
        "points": f"{sizes[0]:,} and {sizes[1]:,} in {', '.join(names)}; metric {metric}",
        "distance": f"at least {digits_down(found.lower_bound, 6)}, certified",
    }
    if found.upper_bound is not None:
        facts["plan"] = f"at most {digits_up(found.upper_bound, 6)}, the cost of a feasible plan"
    if found.held_out is not None:
        facts["held out"] = f"{found.held_out:.6g} on points that the critic did not see"
    facts["training"] = f"{found.history.step[-1] + 1:,} steps in {found.history.seconds:.1f} s"
    output.print(terminal.facts(**facts))


def _write(found: Distance, to: Destination) -> None:
    """The critic and, unless only that was asked for, all numbers."""
    found.critic.save(to.model)
    if to.directory is None:
        return
    content = {
        "estimate": found.estimate,
        "lower_bound": found.lower_bound,
        "critic_bound": found.critic_bound,
        "upper_bound": found.upper_bound,
        "held_out": found.held_out,
        "metric": found.critic.metric,
        "history": asdict(found.history),
    }
    write_whole(to.directory / "distance.json", json.dumps(content, indent=1) + "\n")
