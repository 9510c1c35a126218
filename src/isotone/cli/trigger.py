"""`isotone trigger`: the threshold that an output rate allows, and what signal then passes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

import isotone
from isotone.cli import terminal
from isotone.cli.options import ON_UNSEEN, listed, numbers_of, policy_of
from isotone.cli.terminal import output, printable
from isotone.data.table import split_tree
from isotone.files import refuse_overwriting, replacing
from isotone.trigger.candidates import Candidates, read_candidates
from isotone.trigger.efficiency import Efficiency, by_bin, by_group, quantile_edges
from isotone.trigger.working_point import Exposure, WorkingPoint, choose
from isotone.typing import Floats

_N_BINS = 10
_MAX_CURVES = 6  # columns of a table that is read on a terminal


def trigger(
    model: Annotated[Path, typer.Argument(help="An .isotone file.")],
    tables: Annotated[
        list[str], typer.Argument(help="CSV, Parquet or ROOT (file.root:tree); one or several.")
    ],
    target: Annotated[str, typer.Option(help="Column: 0 is background, 1 is signal.")],
    event: Annotated[str, typer.Option(help="Columns that identify an event: event, or a,b.")],
    n_events: Annotated[
        int, typer.Option(help="Background events examined, with or without a candidate.")
    ],
    max_rate: Annotated[float, typer.Option(help="Largest output rate, in Hz.")],
    input_rate: Annotated[float, typer.Option(help="Rate of crossings, in Hz.")] = 30e6,
    pileup: Annotated[
        float | None, typer.Option(help="If events are collisions: mean number per crossing.")
    ] = None,
    block: Annotated[
        str | None, typer.Option(help="Column: events that share it are not independent.")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help="Columns a,b,...: efficiency for each value; repeatable."),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Column of a true quantity: efficiency in bins of it.")
    ] = None,
    edges: Annotated[
        str | None, typer.Option(help="Edges a,b,... of the bins; default: 10 with equal counts.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Column: a curve of --against for each value.")
    ] = None,
    on_unseen: Annotated[str, ON_UNSEEN] = "error",
    out: Annotated[Path | None, typer.Option(help="JSON file for the results.")] = None,
) -> None:
    """Choose a threshold by output rate, and report the signal efficiency there.

    Rows are candidates, several for an event. An event passes if a candidate's score is at least
    the threshold: the loosest for which background events pass at no more than --max-rate. Use
    rows that the model was not trained on. Efficiencies are of signal events with a candidate.
    The candidates of an event may be in several tables. A candidate without a score, see
    --on-unseen, never passes.

    For example, 60000 simulated collisions, at 5.24 in a crossing:

    isotone trigger model.isotone candidates.root --target is_signal --event event --n-events 60000
    --pileup 5.24 --max-rate 660e3 --group channel --against proper_time
    """
    _check_words(event, model, tables, out)
    groups = tuple(name for text in group or () for name in listed(text))
    asked = Asked(groups, against, split, _edges(edges, against, split), block)
    with _naming_options():
        exposure = Exposure(n_events, input_rate, pileup)
        exposure.allowed_fraction(max_rate)
    candidates = read_candidates(
        isotone.load(model),
        *tables,
        target=target,
        event=listed(event),
        keep_labels=asked.columns(block),
        keep_values=[against] if against else [],
        on_unseen=policy_of(on_unseen),
    )
    for number, kind in enumerate(("background", "signal")):
        if not (candidates.is_signal == number).any():
            raise ValueError(
                f"column {target!r} of {', '.join(tables)} has no {kind} ({number}); both are "
                "needed: choose another column, or add a table"
            )
    with _naming_options():
        result = _judge(candidates, exposure, max_rate, asked)
    _print(result, max_rate, exposure, against)
    if out:
        with replacing(out) as temporary:
            temporary.write_text(json.dumps(_to_dict(result), indent=1) + "\n")
        terminal.say(f"wrote {out}")


@dataclass(frozen=True, eq=False)
class Asked:
    """Which efficiencies are wanted."""

    groups: tuple[str, ...]
    against: str | None
    split: str | None
    edges: Floats | None
    block: str | None

    def columns(self, also: str | None) -> list[str]:
        """Those of groups and curves, and another if there is one, each once."""
        names = (*self.groups, self.split, also)
        return list(dict.fromkeys(name for name in names if name))


@dataclass(frozen=True, eq=False)
class Result:
    """A working point, and the efficiencies there.

    Parameters
    ----------
    n_tied : background events that share the score just below the threshold, which would be too
        many; 0 if none are
    groups : by column, "" for all signal
    curves : by value of the column that divides them, "all" without one
    """

    point: WorkingPoint
    n_tied: int
    groups: dict[str, Efficiency]
    curves: dict[str, Efficiency]
    edges: Floats | None


@contextmanager
def _naming_options() -> Iterator[None]:
    """Errors about parameters of the library in terms of the options that gave them."""
    try:
        yield
    except ValueError as error:
        text = re.sub(r"`(n_events|max_rate|input_rate|pileup)=", r"`--\1 ", str(error))
        raise ValueError(re.sub(r"`--\w+", lambda m: m[0].replace("_", "-"), text)) from error


def _check_words(event: str, model: Path, tables: list[str], out: Path | None) -> None:
    if not listed(event):
        raise ValueError(f"`--event {event}` names no column; give at least one, as in event")
    refuse_overwriting([out] if out else [], [model, *(split_tree(table)[0] for table in tables)])


def _edges(text: str | None, against: str | None, split: str | None) -> Floats | None:
    for option, value in (("edges", text), ("split", split)):
        if value and not against:
            raise ValueError(f"`--{option} {value}` is about bins; add `--against COLUMN`")
    return np.array(numbers_of(text, "edges")) if text else None


def _judge(candidates: Candidates, exposure: Exposure, max_rate: float, asked: Asked) -> Result:
    background = candidates.background.best([asked.block] if asked.block else [])
    background = background[np.isfinite(background.score)]
    blocks = background.labels[asked.block] if asked.block else None
    point = choose(background.score, exposure, max_rate, blocks)
    n_tied = 0
    if point.n_passed < exposure.n_allowed(max_rate):
        refused = background.score[background.score < point.threshold]
        n_tied = int((refused == refused.max()).sum()) if len(refused) else 0
    signal = candidates.signal.best(asked.columns(asked.against))
    passed = signal.score >= point.threshold
    groups = {"": by_group(passed, np.full(len(signal), "all signal"))}
    groups |= {name: _in_order(by_group(passed, signal.labels[name])) for name in asked.groups}
    if asked.against is None:
        return Result(point, n_tied, groups, {}, None)
    values = signal.values[asked.against]
    edges = quantile_edges(values, _N_BINS) if asked.edges is None else asked.edges
    curves = {
        name: by_bin(passed[rows], values[rows], edges)
        for name, rows in _parts(signal, asked.split).items()
    }
    return Result(point, n_tied, groups, curves, edges)


def _in_order(found: Efficiency) -> Efficiency:
    """Sorted as numbers, if all groups are: 2 before 10."""
    try:
        order = np.argsort(found.at.astype(float), kind="stable")
    except ValueError:
        return found
    return Efficiency(found.at[order], found.n[order], found.n_passed[order])


def _parts(signal: Candidates, split: str | None) -> dict[str, Any]:
    """Rows of the events of every curve."""
    if split is None:
        return {"all signal": np.ones(len(signal), dtype=bool)}
    column = signal.labels[split]
    names = np.unique(column)
    if len(names) > _MAX_CURVES:
        raise ValueError(
            f"`--split {split}`: the column has {len(names)} values; at most {_MAX_CURVES} curves "
            f"fit a table: choose another, or use `--group {split}`"
        )
    return {name: column == name for name in names}


def _print(result: Result, max_rate: float, exposure: Exposure, against: str | None) -> None:
    point = result.point
    facts = {
        "threshold": f"{point.threshold!r}; a candidate passes if its score is at least that",
        "rate": f"{_khz(point.rate, 4)} ± {_khz(point.rate_error, 2)} kHz, at most "
        f"{_khz(max_rate, 4)} allowed: {point.n_passed:,} of {exposure.n_events:,} background "
        "events pass",
    }
    if result.n_tied:
        facts["ties"] = (
            f"{result.n_tied:,} background events share the score just below; with them the rate "
            "would exceed what is allowed"
        )
    output.print(terminal.facts(**facts))
    for name, found in result.groups.items():
        output.print()
        output.print(_group_table(name, found))
    if against and result.edges is not None:
        output.print()
        output.print(_curve_table(against, result.edges, result.curves))


def _khz(rate: float, digits: int) -> str:
    """A rate in kHz with so many digits that mean something, and no power of ten."""
    return np.format_float_positional(rate / 1e3, digits, unique=False, fractional=False, trim="-")


def _group_table(name: str, found: Efficiency) -> Table:
    table = terminal.columns(name, "events", "efficiency")
    for label, n, text in zip(found.at, found.n, _texts(found), strict=True):
        table.add_row(printable(label), f"{n:,}", text)
    return table


def _curve_table(name: str, edges: Floats, curves: dict[str, Efficiency]) -> Table:
    table = terminal.columns(name, *curves)
    texts = [_texts(curve) for curve in curves.values()]
    for i, cells in enumerate(zip(*texts, strict=True)):
        table.add_row(f"{edges[i]:.4g} to {edges[i + 1]:.4g}", *cells)
    return table


def _texts(found: Efficiency) -> list[str]:
    return [
        f"{value:.3f} ± {error:.3f}" if n else "–"
        for value, error, n in zip(found.value, found.error, found.n, strict=True)
    ]


def _to_dict(result: Result) -> dict[str, Any]:
    return {
        **asdict(result.point),
        "groups": {name or "all": _numbers(found) for name, found in result.groups.items()},
        "edges": None if result.edges is None else result.edges.tolist(),
        "curves": {name: _numbers(found) for name, found in result.curves.items()},
    }


def _numbers(found: Efficiency) -> dict[str, Any]:
    """Lists; null where there are no events."""
    values = [value if n else None for value, n in zip(found.value, found.n, strict=True)]
    return {
        "at": found.at.tolist(),
        "efficiency": values,
        "error": found.error.tolist(),
        "events": found.n.tolist(),
        "passed": found.n_passed.tolist(),
    }
