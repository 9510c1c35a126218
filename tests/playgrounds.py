"""The playground's worker, run by Node: the very script that the page hands to its browser."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from networks import RANKS
from playground import bundle

# Answers lists of questions, a new session for each; paths stand for the bytes of files.
TAIL = """
const fs = require("node:fs");
const { Session } = modules["playground/src/worker.mjs"];
const plain = (_, value) => ArrayBuffer.isView(value) ? Array.from(value) : value;
for (const questions of JSON.parse(fs.readFileSync(process.argv[2], "utf-8"))) {
  const session = new Session();
  const answers = questions.map(({ path, ...rest }) => session.answer(
    path === undefined ? rest : { ...rest, bytes: new Uint8Array(fs.readFileSync(path)) },
  ));
  fs.writeSync(1, `${JSON.stringify(answers, plain)}\\n`);
}
"""

# What the page says of models, with all that `verifier/` says of them, a line each.
VERIFY = """
const fs = require("node:fs");
const { Session } = modules["playground/src/worker.mjs"];
const { verify } = modules["verifier/src/report.mjs"];
for (const path of JSON.parse(fs.readFileSync(process.argv[2], "utf-8"))) {
  const bytes = new Uint8Array(fs.readFileSync(path));
  const said = new Session().answer({ kind: "Model", name: path, bytes });
  const found = { ...verify(bytes), verdict: said.verdict ?? "BAD FILE" };
  if (said.fingerprint) found.fingerprint = said.fingerprint;
  fs.writeSync(1, `${JSON.stringify(found)}\\n`);
}
"""


def ask(sessions: Sequence[Sequence[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    """What the worker answers to lists of questions."""
    return _run(TAIL, sessions)


def verify(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """What the page says of model files, as `rivals.verify` gives it."""
    return _run(VERIFY, [str(path) for path in paths])


def _run(tail: str, questions: Any) -> list[Any]:
    """The lines that Node prints, given the worker, a script that asks it, and what to ask."""
    with tempfile.TemporaryDirectory() as folder:
        program, file = Path(folder) / "worker.js", Path(folder) / "questions.json"
        program.write_text(bundle.program() + tail, encoding="utf-8")
        file.write_text(json.dumps(questions))
        run = subprocess.run(["node", program, file], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"the worker crashed: {run.stderr[-2000:]}")
    return [json.loads(line) for line in run.stdout.splitlines()]


def model(path: Path) -> dict[str, Any]:
    return {"kind": "Model", "name": path.name, "path": str(path)}


def table(path: Path) -> dict[str, Any]:
    return {"kind": "Table", "name": path.name, "path": str(path)}


def people(n: int = 300) -> pd.DataFrame:
    """Rows of the columns of `networks.MIXED`, with missing values, a number and a class."""
    rng = np.random.default_rng(0)
    age, income = rng.integers(18, 90, n), rng.exponential(1000.0, n).round(1)
    return pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, age),
            "city": rng.choice(["Oslo", "Rome", ""], n),
            "size": rng.choice([*RANKS, ""], n),
            "debt": rng.normal(300.0, 100.0, n).round(2),
            "income": np.where(rng.random(n) < 0.2, np.nan, income),
            "y": rng.normal(size=n),
            "class": rng.integers(0, 3, n),
        }
    )
