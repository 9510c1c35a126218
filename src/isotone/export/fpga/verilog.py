"""Verilog: a directory with one module that scores, and a test bench, by da4ml.

The module takes scaled inputs as integers and gives scores as integers, those of `cpp-int`: it has
no scaling, which a detector's electronics do in their own units. It has no clock, or one register
stage after every few adders.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isotone.certificate.widths import Whole, describe_widths, find_widths
from isotone.checks import check_count
from isotone.export.claim import Arithmetic, Claim, Target, claim
from isotone.export.exactness import exact
from isotone.export.fpga.simulation import simulate
from isotone.export.native import source
from isotone.export.native.integer import check_exact
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import has_features
from isotone.typing import Floats, Reals


@dataclass(frozen=True)
class Verilog(Target):
    """A module, by default of the directory's name, and its test bench.

    Parameters
    ----------
    depth : the largest number of adders or multiplexers between two registers; without it there
        are no registers and no clock
    """

    name: str | None = None
    depth: int | None = None

    def write(self, frozen: FrozenNetwork, path: Path) -> Claim:
        name, found = source.identifier(self.name, path), claim(self, frozen)
        circuit = Circuit.of(frozen, name, self.depth)
        heading = source.heading(frozen, found)
        files = {f"{name}.v": circuit.module(heading), f"{name}_tb.v": circuit.test_bench()}
        source.write_files(path, files)
        return found

    def score(self, frozen: FrozenNetwork, path: Path, X: Floats) -> Reals:
        """By a simulation of the module; rows are scaled in Python."""
        features = frozen.encode(frozen.inputs.decode(X), on_unseen="skip")
        known = has_features(features) & np.all(np.isfinite(features), axis=1)
        scores = np.full((len(X), frozen.n_outputs), np.nan)
        units = check_exact(frozen, "Verilog")
        rows = np.ldexp(frozen.snap(features[known]), -units[0].exponent).astype(np.int64)
        name = source.identifier(self.name, path)
        found = simulate(path, name, rows, [units[0].width, units[-1].width], frozen.n_outputs)
        scores[known] = np.ldexp(found.astype(np.float64), units[-1].exponent)
        return scores

    def tolerance(self, frozen: FrozenNetwork) -> Floats:
        check_exact(frozen, "Verilog")
        return exact(frozen)

    def arithmetic(self, frozen: FrozenNetwork) -> Arithmetic:
        return Arithmetic(
            f"integers; {describe_widths(find_widths(frozen))}",
            repeats=True,
            provided="inputs are the scaled row, clamped and rounded to whole numbers",
        )


@dataclass(frozen=True)
class Circuit:
    """A network as da4ml writes it.

    Parameters
    ----------
    logic : da4ml's combinational logic, or its pipeline
    features : names of the inputs
    inputs, scores : their numbers
    """

    name: str
    logic: Any
    features: tuple[str, ...]
    inputs: Whole
    scores: Whole

    @classmethod
    def of(cls, frozen: FrozenNetwork, name: str, depth: int | None = None) -> Circuit:
        from da4ml.trace import to_pipeline

        from isotone.export.fpga.trace import trace

        units = check_exact(frozen, "Verilog")
        logic = trace(frozen, units[0], units[-1])
        if depth is not None:
            check_count("depth", depth)
            logic = to_pipeline(logic, depth, verbose=False)
        return cls(name, logic, tuple(frozen.features), units[0], units[-1])

    @property
    def n_stages(self) -> int:
        """Clock cycles from inputs to scores; 0 without a clock."""
        return len(self.logic.solutions) + 1 if self.is_clocked else 0

    @property
    def n_adders(self) -> int:
        """Adders and multiplexers on the longest way from an input to a score."""
        last = self.logic.solutions[-1] if self.is_clocked else self.logic
        return int(max(last.out_latency))

    @property
    def is_clocked(self) -> bool:
        return hasattr(self.logic, "solutions")

    def module(self, heading: str) -> str:
        """The text of the module with everything it needs."""
        core = self._core()
        return "\n".join([_FILE.format(heading=heading), self._top(), core, *_library(core)])

    def _core(self) -> str:
        from da4ml.codegen.rtl.verilog import comb_logic_gen, pipeline_logic_gen

        if not self.is_clocked:
            return str(comb_logic_gen(self.logic, f"{self.name}_core"))
        texts = pipeline_logic_gen(self.logic, f"{self.name}_core", timescale=None)
        return "\n".join(texts.values())

    def _top(self) -> str:
        n_in, n_out = self.inputs.width, self.scores.width
        ports = [
            *["input clk"] * self.is_clocked,
            *(f"input signed [{n_in - 1}:0] x{i}" for i in range(len(self.features))),
            *(f"output signed [{n_out - 1}:0] score{j}" for j in range(self.n_outputs)),
        ]
        return _TOP.format(
            name=self.name,
            about="\n".join(self._about()),
            ports=",\n".join(f"    {port}" for port in ports),
            width=sum(self._core_widths()),
            clock=".clk(clk), " * self.is_clocked,
            inputs=", ".join(self._packed()),
            outputs="\n".join(self._unpacked()),
        )

    def _about(self) -> list[str]:
        largest = int(np.ldexp(self.inputs.each.max(), -self.inputs.exponent))
        lines = [f'// x{i}: "{source.comment(name)}"' for i, name in enumerate(self.features)]
        return [
            *lines,
            f"// Inputs are whole numbers of 2^{self.inputs.exponent} within +-{largest},",
            f"// scores of 2^{self.scores.exponent}, {self.n_stages} clock cycles after them.",
            f"// By da4ml's estimate {self.logic.cost:.0f} look-up tables, "
            f"{self.n_adders} adders deep.",
        ]

    @property
    def n_outputs(self) -> int:
        return len(self.scores.each)

    def _packed(self) -> list[str]:
        """The inputs of the core, the last one first: their bits, fewer where one is narrower."""
        widths = [_bits(interval)[0] for interval in self.logic.inp_qint]
        parts = [f"x{i}[{width - 1}:0]" for i, width in enumerate(widths) if width]
        return parts[::-1]

    def _core_widths(self) -> list[int]:
        return [_bits(interval)[0] for interval in self.logic.out_qint]

    def _unpacked(self) -> list[str]:
        """The scores from the bits of the core: shifted to their unit, and extended by signs."""
        lines, first = [], 0
        for j, interval in enumerate(self.logic.out_qint):
            width, fraction, is_signed = _bits(interval)
            bits = f"out[{first + width - 1}:{first}]" if width else "1'b0"
            value = f"$signed({bits})" if is_signed else f"$signed({{1'b0, {bits}}})"
            lines.append(f"    wire signed [{self.scores.width - 1}:0] wide{j} = {value};")
            lines.append(f"    assign score{j} = wide{j} <<< {-fraction};")
            first += width
        return lines

    def test_bench(self) -> str:
        """Reads hexadecimal rows, input 0 in the lowest bits, and writes scores the same way."""
        n, n_in, n_out = len(self.features), self.inputs.width, self.scores.width
        ports = [
            *[".clk(clk)"] * self.is_clocked,
            *(f".x{i}(x[{(i + 1) * n_in - 1}:{i * n_in}])" for i in range(n)),
            *(f".score{j}(y[{(j + 1) * n_out - 1}:{j * n_out}])" for j in range(self.n_outputs)),
        ]
        return _BENCH.format(
            name=self.name,
            n_in=n * n_in - 1,
            n_out=self.n_outputs * n_out - 1,
            ports=",\n        ".join(ports),
            n_stages=self.n_stages,
        )


def _bits(interval: Any) -> tuple[int, int, bool]:
    """Width, bits of the fraction, which is never positive, and whether there is a sign."""
    from da4ml.types import minimal_kif

    sign, whole, fraction = minimal_kif(interval)
    return sign + whole + fraction, fraction, bool(sign)


def _library(core: str) -> list[str]:
    """The modules of da4ml that a text of it uses, without what older simulators refuse."""
    from da4ml.codegen import rtl

    files = sorted((Path(rtl.__file__).parent / "verilog" / "source").glob("*.v"))
    used = [file.read_text(encoding="utf-8") for file in files if f"{file.stem} #(" in core]
    return [re.sub(r"/\*\s*verilator lint_\w+ \w+\s*\*/", "", text) for text in used]


_FILE = """\
`timescale 1ns / 1ps
// A network in integers, made by isotone. The first module is the interface. Modules after it were
// written by da4ml (LGPL-3.0, https://github.com/calad0i/da4ml).
//
{heading}
"""

_TOP = """\
{about}
module {name} (
{ports}
);
    wire [{width} - 1:0] out;
    {name}_core core ({clock}.model_inp({{{inputs}}}), .model_out(out));
{outputs}
endmodule
"""

_BENCH = """\
// iverilog -g2012 -o {name} {name}.v {name}_tb.v && ./{name}
// or: verilator --binary --timing -Wno-fatal --top-module {name}_tb {name}.v {name}_tb.v
`timescale 1ns / 1ps
module {name}_tb;
    reg clk = 0;
    reg [{n_in}:0] row = 0, x = 0;
    wire [{n_out}:0] y;
    {name} dut (
        {ports}
    );
    integer rows, scores, n_rows, more, k;
    initial begin
        rows = $fopen("rows.hex", "r");
        scores = $fopen("scores.hex", "w");
        n_rows = 0;
        more = 1;
        for (k = 0; more == 1 || k < n_rows + {n_stages}; k = k + 1) begin
            if (more == 1) more = $fscanf(rows, "%h", row);
            if (more == 1) n_rows = n_rows + 1;
            x = row;
            #1;
            if (k >= {n_stages} && k < n_rows + {n_stages}) $fwrite(scores, "%h\\n", y);
            clk = 1; #1; clk = 0; #1;
        end
        $finish;
    end
endmodule
"""
