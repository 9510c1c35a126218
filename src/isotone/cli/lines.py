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
from isotone.cli import terminal
from isotone.cli.terminal import output, printable
from isotone.files import replacing
from isotone.frozen.network import FrozenNetwork
from isotone.trigger import record
from isotone.trigger.candidates import Candidates
from isotone.trigger.linefile import Line
from isotone.trigger.lines import Estimate, Kept, Menu, kept
from isotone.trigger.working_point import Exposure, choose

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
    thresholds, prints, passed, signal, blocks = [], [], [], [], None
    for line in lines:
        frozen = isotone.load(line.model)
        candidates = read(frozen)
        background = candidates.background.best([block] if block else [])
        blocks = background.labels[block] if block else None
        threshold = line.threshold
        if threshold is None:
            assert line.max_rate is not None
            best = background.score[np.isfinite(background.score)]
            threshold = choose(best, exposure, line.max_rate / line.prescale).threshold
        thresholds.append(float(threshold))
        prints.append(frozen.fingerprint)
        passed.append(background.score >= threshold)
        signal.append(candidates.signal.best([]).score >= threshold)
    prescales, sizes = [line.prescale for line in lines], [line.event_size for line in lines]
    menu = Menu(np.column_stack(passed), prescales, sizes, exposure, blocks)
    found = kept(np.column_stack(signal), prescales)
    return Judged(lines, tuple(prints), tuple(thresholds), menu, found)


def print_lines(found: Judged) -> None:
    menu = found.menu
    output.print(_line_table(found))
    if len(found.lines) > 1:
        output.print()
        output.print(_overlap_table(found))
    output.print()
    facts = {"rate of all": f"{_khz(menu, menu.total)} kHz"}
    if any(line.event_size for line in found.lines):
        width = menu.bandwidth
        unit, factor = ("GB/s", 1e9) if width.value >= 1e9 else ("MB/s", 1e6)
        error = menu.error(width) / factor
        facts["bandwidth"] = f"{width.value / factor:.4g} ± {error:.2g} {unit}"
    value, error = found.signal.value[-1], found.signal.error[-1]
    facts["efficiency"] = f"{value:.4f} ± {error:.4f} for any line"
    output.print(terminal.facts(**facts))


def write_lines(
    found: Judged, path: Path, tables: Sequence[str], settings: dict[str, Any]
) -> None:
    """The JSON file of the results."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(_to_dict(found, tables, settings), indent=1) + "\n")
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
            f"{found.signal.value[i]:.4f} ± {found.signal.error[i]:.4f}",
        )
    return table


def _overlap_table(found: Judged) -> Table:
    menu, names = found.menu, [line.name for line in found.lines]
    table = terminal.columns("overlap, kHz", *(str(printable(name)) for name in names[1:]))
    for i in range(len(names) - 1):
        cells = ["" if j <= i else _khz(menu, menu.overlap(i, j)) for j in range(1, len(names))]
        table.add_row(printable(names[i]), *cells)
    return table


def _khz(menu: Menu, rate: Estimate) -> str:
    value, error = rate.value / 1e3, menu.error(rate) / 1e3
    return f"{value:.4g} ± {error:.2g}"


def _to_dict(found: Judged, tables: Sequence[str], settings: dict[str, Any]) -> dict[str, Any]:
    menu = found.menu

    def told(estimate: Estimate) -> dict[str, float]:
        return {"value": estimate.value, "error": menu.error(estimate)}

    lines = [
        {
            "name": line.name,
            "fingerprint": found.fingerprints[i],
            "threshold": found.thresholds[i],
            "prescale": line.prescale,
            "event_size": line.event_size,
            "rate": told(menu.rate([i])),
            "exclusive_rate": told(menu.exclusive(i)),
            "efficiency": found.signal.value[i],
            "efficiency_error": found.signal.error[i],
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
        "bandwidth": told(menu.bandwidth),
        "efficiency": found.signal.value[-1],
        "efficiency_error": found.signal.error[-1],
    }
