"""Several lines of `isotone trigger`: rates, overlaps and bandwidth of a file of lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

import isotone
from isotone.cli.console import terminal
from isotone.cli.console.terminal import output, printable
from isotone.files import write_whole
from isotone.frozen.network import FrozenNetwork
from isotone.rounding import digits_up
from isotone.trigger import record
from isotone.trigger.candidates import Candidates
from isotone.trigger.linefile import Line
from isotone.trigger.lines import Estimate, Kept, Menu, kept
from isotone.trigger.working_point import Exposure, at_threshold, choose

Reader = Callable[[FrozenNetwork], Candidates]


@dataclass(frozen=True, eq=False)
class Judged:
    """Lines with their models, thresholds, background and signal."""

    lines: tuple[Line, ...]
    fingerprints: tuple[str, ...]
    thresholds: tuple[float, ...]
    menu: Menu
    signal: Kept


def judge_lines(
    lines: tuple[Line, ...], read: Reader, exposure: Exposure, block: str | None
) -> Judged:
    """Score all candidates with every model, and combine what passes."""
    thresholds, prints, passed, signals = [], [], [], []
    for line in lines:
        frozen = isotone.load(line.model)
        candidates = read(frozen)
        background = candidates.background.best([block] if block else [])
        signal = candidates.signal.best([])
        threshold = _threshold(line, background, exposure)
        thresholds.append(threshold)
        prints.append(frozen.fingerprint)
        passed.append(background.score >= threshold)
        signals.append(signal.score >= threshold)
    prescales, sizes = [line.prescale for line in lines], [line.event_size for line in lines]
    blocks = background.labels[block] if block else None
    menu = Menu(np.column_stack(passed), prescales, sizes, exposure, blocks, background.weight)
    found = kept(np.column_stack(signals), prescales, signal.weight)
    return Judged(lines, tuple(prints), tuple(thresholds), menu, found)


def _threshold(line: Line, background: Candidates, exposure: Exposure) -> float:
    scored = background[np.isfinite(background.score)]
    if line.threshold is not None:
        return at_threshold(
            scored.score, exposure, float(line.threshold), weight=scored.weight
        ).threshold
    assert line.max_rate is not None
    limit = line.max_rate / line.prescale
    return choose(scored.score, exposure, limit, weight=scored.weight).threshold


def print_lines(found: Judged) -> None:
    menu = found.menu
    output.print(_line_table(found))
    if len(found.lines) > 1:
        output.print()
        output.print(_overlap_table(found))
    output.print()
    facts = {"rate of all": f"{_khz(menu, menu.total)} kHz"}
    if _is_limited(menu):
        facts["limits"] = "< is with 95 % confidence, where no event passes"
    if any(line.event_size for line in found.lines):
        facts["bandwidth"] = _bandwidth(menu)
    facts["efficiency"] = f"{_share(found.signal, -1)} for any line"
    output.print(terminal.facts(**facts))


def _bandwidth(menu: Menu) -> str:
    limit, width = menu.bandwidth_limit, menu.bandwidth
    value = width.value if limit is None else limit
    unit, factor = ("GB/s", 1e9) if value >= 1e9 else ("MB/s", 1e6)
    if limit is not None:
        return f"< {digits_up(value / factor, 2)} {unit}"
    return f"{value / factor:.4g} ± {menu.error(width) / factor:.2g} {unit}"


def _is_limited(menu: Menu) -> bool:
    """Whether any rate that is printed is an upper limit."""
    shown = [menu.overlap(i, j) for j in menu.lines for i in range(j)]
    shown += [rate for i in menu.lines for rate in (menu.rate([i]), menu.exclusive(i))]
    return any(menu.limit(rate) is not None for rate in shown)


def write_lines(
    found: Judged, path: Path, tables: Sequence[str], settings: dict[str, Any]
) -> None:
    """The JSON file of the results."""
    write_whole(path, json.dumps(_to_dict(found, tables, settings), indent=1) + "\n")
    terminal.say(f"wrote {path}")


def _line_table(found: Judged) -> Table:
    menu, heads = found.menu, ("threshold", "prescale", "rate, kHz", "exclusive", "efficiency")
    table = terminal.columns("line", *heads)
    for i, line in enumerate(found.lines):
        table.add_row(
            printable(line.name),
            f"{found.thresholds[i]:.6g}",
            f"{line.prescale:g}",
            _khz(menu, menu.rate([i])),
            _khz(menu, menu.exclusive(i)),
            _share(found.signal, i),
        )
    return table


def _overlap_table(found: Judged) -> Table:
    menu, names = found.menu, [line.name for line in found.lines]
    table = terminal.columns("overlap, kHz", *(str(printable(name)) for name in names[1:]))
    for i in range(len(names) - 1):
        cells = ["" if j <= i else _khz(menu, menu.overlap(i, j)) for j in range(1, len(names))]
        table.add_row(printable(names[i]), *cells)
    return table


def _share(found: Kept, i: int) -> str:
    value, error = found.value[i], found.error[i]
    return f"{value:.4f} ± {error:.4f}" if np.isfinite(value) else "–"


def _khz(menu: Menu, rate: Estimate) -> str:
    limit = menu.limit(rate)
    if limit is not None:
        return f"< {digits_up(limit / 1e3, 2)}"
    value, error = rate.value / 1e3, menu.error(rate) / 1e3
    return f"{value:.4g} ± {error:.2g}"


def _to_dict(found: Judged, tables: Sequence[str], settings: dict[str, Any]) -> dict[str, Any]:
    menu = found.menu

    def with_limit(estimate: Estimate, limit: float | None) -> dict[str, float]:
        found = {"value": estimate.value, "error": menu.error(estimate)}
        return found if limit is None else found | {"limit": limit}

    def told(estimate: Estimate) -> dict[str, float]:
        return with_limit(estimate, menu.limit(estimate))

    lines = [
        {
            "name": line.name,
            "fingerprint": found.fingerprints[i],
            "threshold": found.thresholds[i],
            "prescale": line.prescale,
            "event_size": line.event_size,
            "rate": told(menu.rate([i])),
            "exclusive_rate": told(menu.exclusive(i)),
            **_efficiency(found.signal, i),
        }
        for i, line in enumerate(found.lines)
    ]
    pairs = [(i, j) for j in menu.lines for i in range(j)]
    return {
        "format": record.FORMAT,
        "isotone": isotone.__version__,
        "rule": record.RULE,
        "settings": settings,
        "tables": [record.describe_table(path) for path in tables],
        "lines": lines,
        "overlaps": [
            {"lines": [found.lines[i].name, found.lines[j].name], **told(menu.overlap(i, j))}
            for i, j in pairs
        ],
        "total_rate": told(menu.total),
        "bandwidth": with_limit(menu.bandwidth, menu.bandwidth_limit),
        **_efficiency(found.signal, -1),
    }


def _efficiency(found: Kept, i: int) -> dict[str, float | None]:
    """Null where signal has no positive weight."""
    pair = {"efficiency": float(found.value[i]), "efficiency_error": float(found.error[i])}
    return {name: value if np.isfinite(value) else None for name, value in pair.items()}
