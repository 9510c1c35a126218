"""`isotone trigger`: the threshold that an output rate allows, and what signal then passes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

import isotone
from isotone.cli.console import terminal
from isotone.cli.console.lines import judge_lines, print_lines, write_lines
from isotone.cli.console.options import ON_UNSEEN, listed, numbers_of, policy_of
from isotone.cli.console.terminal import output, printable
from isotone.cli.table.given import BackgroundPaths, Given, SignalPaths, TablePaths
from isotone.files import refuse_overwriting, write_whole
from isotone.frozen.network import FrozenNetwork
from isotone.plot import physics as pictures
from isotone.plot.canvas import new_panels, save
from isotone.rounding import digits_up
from isotone.trigger import record
from isotone.trigger.candidates import Candidates, read_candidates
from isotone.trigger.curve import RateCurve
from isotone.trigger.efficiency import Efficiency
from isotone.trigger.judgement import Asked, Judgement, judge
from isotone.trigger.linefile import read_lines
from isotone.trigger.shares import RateShares, read_examined
from isotone.trigger.tistos import Overlap
from isotone.trigger.working_point import Exposure, WorkingPoint
from isotone.typing import Floats

_ASSUMPTION = (
    "Efficiency by overlap: N(TIS and TOS) / N(TIS). It is that of all signal if, within each "
    "row, firing without the signal says nothing about the signal; bias is the difference that "
    "this sample shows."
)
_PARAMETERS = r"`(n_events|max_rate|threshold|input_rate|pileup|split|group|tis)="
_NO_SETTINGS = ("out", "tables")  # told elsewhere


def trigger(
    model: Annotated[
        Path, typer.Argument(help="An .isotone file, or a .toml or .json file of several lines.")
    ],
    event: Annotated[str, typer.Option(help="Columns that identify an event: event, or a,b.")],
    n_events: Annotated[
        int, typer.Option(help="Background events examined, with or without a candidate.")
    ],
    tables: TablePaths = None,
    target: Annotated[
        str | None, typer.Option(help="Column: 0 is background, 1 is signal.")
    ] = None,
    signal: SignalPaths = None,
    background: BackgroundPaths = None,
    max_rate: Annotated[
        float | None, typer.Option(help="Largest output rate, in Hz; it sets the threshold.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="A threshold of the score, instead of --max-rate.")
    ] = None,
    rates: Annotated[
        str | None,
        typer.Option(help="Rates a,b,... in Hz of the curve; default: around the working point."),
    ] = None,
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
    rate_by: Annotated[
        list[str] | None,
        typer.Option(help="Columns run,n_pv,...: the output rate for each value."),
    ] = None,
    examined: Annotated[
        str | None,
        typer.Option(help="Table of --rate-by columns and n_events: events that were examined."),
    ] = None,
    tis: Annotated[
        str | None,
        typer.Option(help="Column: 1 for signal events that fired without the signal (TIS)."),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="Column of weights of events; some may be negative.")
    ] = None,
    on_unseen: Annotated[str, ON_UNSEEN] = "error",
    out: Annotated[Path | None, typer.Option(help="JSON file for the results.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Picture of the curves: .png, .pdf or .svg.")
    ] = None,
) -> None:
    """Choose a threshold by output rate, and report the signal efficiency there.

    Rows are candidates, several for an event. An event passes if a candidate's score is at least
    the threshold: the loosest for which background events pass at no more than --max-rate, or the
    one given as --threshold. Use rows that the model was not trained on. Efficiencies are of
    signal events with a candidate. The candidates of an event may be in several tables, those of
    signal and of background apart: --signal s.root:T --background 'b*.root:T'. A
    candidate without a score, see --on-unseen, never passes.

    With --weights rates and efficiencies are sums of the weights of events, and their errors those
    of such sums, also where some weights are negative, as sWeights are. --n-events then counts the
    weight that was examined.

    The file of --out has the threshold, the rule and the fingerprint of the model; isotone export
    and isotone bundle take it as --point.

    For example, 60000 simulated collisions, at 5.24 in a crossing:

    isotone trigger model.isotone candidates.root --target is_signal --event event --n-events 60000
    --pileup 5.24 --max-rate 660e3 --group channel --against proper_time
    """
    settings = {name: value for name, value in locals().items() if name not in _NO_SETTINGS}
    settings |= {"model": str(model), "plot": None if plot is None else str(plot)}
    given = Given.of(tables, signal, background, target)
    _check_words(event, model, given, [path for path in (out, plot) if path])
    groups, parts = listed(group), listed(rate_by)
    bins = _edges(edges, against, split)
    wanted = numbers_of(rates, "rates") if rates else None
    known = _examined(examined, parts)
    asked = Asked(
        *(max_rate, threshold, wanted, groups, against, split, bins, block), parts, known, tis
    )
    with _naming_options():
        exposure = Exposure(n_events, input_rate, pileup)

    def read(frozen: FrozenNetwork) -> Candidates:
        candidates = read_candidates(
            frozen,
            *given.tables,
            signal=given.signal,
            background=given.background,
            target=target,
            event=listed(event),
            keep_labels=asked.labels,
            keep_values=asked.values,
            on_unseen=policy_of(on_unseen),
            weights=weights,
        )
        _check_kinds(candidates, given)
        return candidates

    if model.suffix.lower() in (".toml", ".json"):
        _refuse_with_lines(settings)
        lines = judge_lines(read_lines(model), read, exposure, block)
        print_lines(lines)
        return write_lines(lines, out, given.paths, settings) if out else None
    files = _Files(out, plot, given.paths, settings)
    return _judge_one(isotone.load(model), read, asked, exposure, files)


@dataclass(frozen=True)
class _Files:
    """What is written, and what the record says of options and tables."""

    out: Path | None
    plot: Path | None
    tables: Sequence[str]
    settings: dict[str, Any]


def _judge_one(
    frozen: FrozenNetwork,
    read: Callable[[FrozenNetwork], Candidates],
    asked: Asked,
    exposure: Exposure,
    files: _Files,
) -> None:
    with _naming_options():
        _check_limit(exposure, asked.max_rate, asked.threshold)
        found = judge(read(frozen), exposure, asked)
    _print(found, asked, exposure)
    if files.plot:
        _draw(found, asked, files.plot)
    if files.out:
        content = record.to_dict(found, frozen, files.tables, files.settings)
        write_whole(files.out, json.dumps(content, indent=1) + "\n")
        terminal.say(f"wrote {files.out}")


_OF_ONE = (
    *("max_rate", "threshold", "rates", "group", "against", "edges", "split", "rate_by"),
    *("examined", "tis", "plot"),
)


def _refuse_with_lines(settings: Mapping[str, Any]) -> None:
    for name in _OF_ONE:
        if settings.get(name) is not None:
            option = name.replace("_", "-")
            raise ValueError(
                f"`--{option}` is about one model, and the file of lines has several; leave it "
                "out, or give an .isotone file"
            )


def _examined(path: str | None, columns: tuple[str, ...]) -> dict[str, dict[str, int]]:
    if path is not None and not columns:
        raise ValueError(f"`--examined {path}` is about rates by column; add `--rate-by COLUMN`")
    return read_examined(path, columns) if path else {}


@contextmanager
def _naming_options() -> Iterator[None]:
    """Errors about parameters of the library in terms of the options that gave them."""
    try:
        yield
    except ValueError as error:
        text = re.sub(_PARAMETERS, r"`--\1 ", str(error))
        raise ValueError(re.sub(r"`--\w+", lambda m: m[0].replace("_", "-"), text)) from error


def _check_words(event: str, model: Path, given: Given, written: list[Path]) -> None:
    if not listed(event):
        raise ValueError(f"`--event {event}` names no column; give at least one, as in event")
    refuse_overwriting(written, [model, *given.local_files])


def _check_limit(exposure: Exposure, max_rate: float | None, threshold: float | None) -> None:
    if (max_rate is None) == (threshold is None):
        given = "neither was given" if max_rate is None else "both were given"
        raise ValueError(
            f"`--max-rate` or `--threshold` sets the working point, and {given}; give one of them"
        )
    if max_rate is not None:
        exposure.allowed_fraction(max_rate)


def _check_kinds(candidates: Candidates, given: Given) -> None:
    for number, kind in enumerate(("background", "signal")):
        if not (candidates.is_signal == number).any():
            raise ValueError(
                f"column {given.target!r} of {', '.join(given.paths)} has no {kind} ({number}); "
                "both are needed: choose another column, or add a table"
            )


def _edges(text: str | None, against: str | None, split: str | None) -> Floats | None:
    for option, value in (("edges", text), ("split", split)):
        if value and not against:
            raise ValueError(f"`--{option} {value}` is about bins; add `--against COLUMN`")
    return np.array(numbers_of(text, "edges")) if text else None


def _print(found: Judgement, asked: Asked, exposure: Exposure) -> None:
    point = found.point
    limit = "" if asked.max_rate is None else f", at most {_khz(asked.max_rate, 4)} allowed"
    facts = {
        "threshold": f"{point.threshold!r}; a candidate passes if its score is at least that",
        "rate": f"{_rate(point)} kHz{_confidence(point)}{limit}: "
        f"{point.n_passed:,} of {exposure.n_events:,} background events pass",
    }
    if point.rate_limit is None and _has_limits(found):
        facts["limits"] = "< is with 95 % confidence, where no event passes"
    if found.n_tied:
        facts["ties"] = (
            f"{found.n_tied:,} background events share the score just below; with them the rate "
            "would exceed what is allowed"
        )
    output.print(terminal.facts(**facts))
    tables = [_group_table(name, each) for name, each in found.groups.items()]
    if asked.against and found.edges is not None:
        tables.append(_curve_table(asked.against, found.edges, found.curves))
    if found.curve.points:
        tables.append(_rate_table(found.curve))
    tables += [_share_table(name, each, asked) for name, each in found.shares.items()]
    tables += [_overlap_table(name, each, found.edges) for name, each in found.overlaps.items()]
    for table in tables:
        output.print()
        output.print(table)
    if found.overlaps:
        output.print()
        output.print(_ASSUMPTION, style="dim")


def _draw(found: Judgement, asked: Asked, path: Path) -> None:
    """Efficiency against the rate, and in bins if there are some."""
    panels = new_panels(1 + (found.edges is not None))
    pictures.rates(found.curve, at=found.point.rate, ax=panels[0])
    if found.edges is not None:
        label, values = asked.against or "", found.values
        shown = values if len(values) > 1 else next(iter(values.values()))
        pictures.efficiency(found.curves, found.edges, values=shown, label=label, ax=panels[1])
    save(panels[0], path)
    terminal.say(f"wrote {path}")


def _rate(point: WorkingPoint) -> str:
    return _with_error(point.rate, point.rate_error, point.rate_limit)


def _with_error(rate: float, error: float, limit: float | None) -> str:
    """A rate with its error; where nothing passes an upper limit, since 0 ± 0 says nothing."""
    if limit is None or not np.isfinite(limit):
        return f"{_khz(rate, 4)} ± {_khz(error, 2)}"
    return f"< {_khz(float(digits_up(limit, 2)), 2)}"


def _has_limits(found: Judgement) -> bool:
    """Whether a table below the working point has an upper limit of a rate."""
    of_curve = any(point.rate_limit is not None for point in found.curve.points)
    return of_curve or any(np.isfinite(each.limit).any() for each in found.shares.values())


def _confidence(point: WorkingPoint) -> str:
    return "" if point.rate_limit is None else " (with 95 % confidence)"


def _khz(rate: float, digits: int) -> str:
    """A rate in kHz with its significant digits, and no power of ten."""
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


def _rate_table(curve: RateCurve) -> Table:
    table = terminal.columns("rate, kHz", "threshold", "efficiency")
    for point, text in zip(curve.points, _texts(curve.efficiency), strict=True):
        table.add_row(_rate(point), f"{point.threshold:.6g}", text)
    return table


def _share_table(name: str, found: RateShares, asked: Asked) -> Table:
    events = "examined" if name in asked.examined else "with candidate"
    table = terminal.columns(name, events, "pass", "rate, kHz")
    rates = zip(found.rate, found.error, found.limit, strict=True)
    for label, n, k, rate in zip(found.at, found.n, found.n_passed, rates, strict=True):
        table.add_row(printable(label), f"{n:,}", f"{k:,}", _with_error(*rate))
    return table


def _overlap_table(name: str, found: Overlap, edges: Floats | None) -> Table:
    """Efficiencies by overlap, and how far those of all signal events are from them."""
    table = terminal.columns(name, "TIS", "TIS and TOS", "efficiency by overlap", "bias")
    n, k = found.tis.n, found.tis.n_passed
    is_binned = edges is not None and found.tis.at.dtype.kind == "f"
    for i, text in enumerate(_texts(found.tis)):
        known = np.isfinite(found.bias[i])
        bias = f"{found.bias[i]:+.3f} ± {found.bias_error[i]:.3f}" if known else "–"
        label = str(found.tis.at[i])
        if is_binned and edges is not None:
            label = f"{edges[i]:.4g} to {edges[i + 1]:.4g}"
        table.add_row(printable(label), f"{n[i]:,}", f"{k[i]:,}", text, bias)
    return table


def _texts(found: Efficiency) -> list[str]:
    return [
        f"{value:.3f} ± {error:.3f}" if np.isfinite(value) else "–"
        for value, error in zip(found.value, found.error, strict=True)
    ]
