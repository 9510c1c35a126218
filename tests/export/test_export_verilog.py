"""Verilog: its simulation gives the integers of the engine, with and without a clock."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fixed_points import blocks, corners, rows_of
from isotone import FrozenNetwork, MonotonicNetwork, export, freeze
from isotone.certificate.widths import follow
from isotone.export.fpga import simulation
from isotone.freezing.fixed import to_fixed
from isotone.typing import Integers
from networks import small

pytest.importorskip("da4ml", reason="Verilog is written by da4ml: pip install 'isotone[fpga]'")

from isotone.export.fpga.verilog import Circuit, Verilog


def need_simulator(name: str) -> None:
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed")


def pairs() -> FrozenNetwork:
    network = MonotonicNetwork([2, 6, 4, 2], monotonic_cst=[[1, 0], [0, -1]], group_size=2)
    return freeze(network, precision="fixed", bits=(6, 5), clip=4, features=["p t", 'a"b'])


MODELS = {
    "sorted": freeze(small(), precision="fixed", bits=(7, 5), clip=4),
    "pairs": pairs(),
    "blocks": to_fixed(replace(small(), steps=blocks()), (5, 4), clip=4.0),
}


def simulated(frozen: FrozenNetwork, path: Path, rows: Integers, simulator: str) -> Any:
    units = follow(frozen)
    widths = [units[0].width, units[-1].width]
    found = simulation.simulate(path, path.name, rows, widths, frozen.n_outputs, simulator)
    return np.squeeze(np.ldexp(found.astype(float), units[-1].exponent))


@pytest.mark.parametrize("depth", [None, 3])
@pytest.mark.parametrize("name", MODELS)
def test_icarus_finds_the_scores_of_the_engine(
    name: str, depth: int | None, tmp_path: Path
) -> None:
    need_simulator("iverilog")
    frozen = MODELS[name]
    Verilog(depth=depth).write(frozen, tmp_path / "model")
    u = frozen.snap(np.concatenate([corners(frozen), rows_of(frozen, 150)]))
    rows = (u / frozen.grid).astype(np.int64)
    found = simulated(frozen, tmp_path / "model", rows, "iverilog")
    assert np.array_equal(found, frozen.score(u))


@pytest.mark.slow
def test_verilator_finds_them_too_for_all_edge_cases(tmp_path: Path) -> None:
    """Raw edge cases through the check of an export, and ten thousand random rows."""
    need_simulator("verilator")
    frozen = MODELS["sorted"]
    claim = export.write(frozen, "verilog", tmp_path / "model", depth=3)
    assert claim.to_the_last_bit
    assert claim.distance == (0.0,)


def test_the_logic_of_da4ml_is_the_engine() -> None:
    """By da4ml's own interpreter, on many rows."""
    for frozen in MODELS.values():
        circuit = Circuit.of(frozen, "model")
        u = frozen.snap(rows_of(frozen, 3000))
        found = np.squeeze(circuit.logic.predict(u / frozen.grid))
        assert np.array_equal(np.ldexp(found, circuit.scores.exponent), frozen.score(u))


def test_the_module_says_what_it_is(tmp_path: Path) -> None:
    frozen = MODELS["pairs"]
    Verilog(name="line", depth=3).write(frozen, tmp_path)
    text = (tmp_path / "line.v").read_text()
    assert frozen.fingerprint in text
    assert "monotone to the last bit" in text
    assert '// x1: "a"b"' in text
    units = follow(frozen)
    assert f"input signed [{units[0].width - 1}:0] x1" in text
    assert f"output signed [{units[-1].width - 1}:0] score1" in text
    assert f"scores of 2^{units[-1].exponent}, " in text
    estimate = r"By da4ml's estimate \d+ look-up tables, \d+ adders deep"
    assert re.search(estimate, text)


def test_rows_survive_packing() -> None:
    rows = np.random.default_rng(0).integers(-64, 64, (50, 3))
    assert np.array_equal(simulation.unpack(simulation.pack(rows, 7), 7, 3), rows)


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="Verilog needs a network in fixed point"):
        export.write(small(), "verilog", tmp_path / "model")
    with pytest.raises(ValueError, match="`depth=0` must be a whole number of at least 1"):
        export.write(MODELS["pairs"], "verilog", tmp_path / "model", depth=0)
    (tmp_path / "model.v").write_text("module model; broken")
    (tmp_path / "model_tb.v").write_text("")
    need_simulator("iverilog")
    with pytest.raises(ValueError, match="iverilog -g2012 "):
        simulation.simulate(tmp_path, "model", np.zeros((1, 1), int), [1, 1], 1, "iverilog")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ValueError, match="neither iverilog nor verilator was found"):
        simulation.find_simulator(10)
