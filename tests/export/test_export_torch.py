"""torch: the score as a module and as a program that runs without isotone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from isotone import export
from isotone.export.exactness import within
from isotone.export.parity import check_rows
from isotone.export.torch import to_module
from isotone.frozen.activations import ACTIVATIONS
from networks import every_step

CODE = """
import io, json, sys
sys.modules["isotone"] = None
import numpy as np
import torch

about = {"isotone.json": ""}
program = torch.export.load(sys.argv[1], extra_files=about).module()
X = torch.from_numpy(np.load(sys.argv[2]))
scores = [program(X[:n]).tolist() for n in (1, 2, len(X))]
print(json.dumps([json.loads(about["isotone.json"]), scores]))
"""


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_the_module_is_within_the_rounding_errors(activation: str, precision: Any) -> None:
    frozen = every_step(2, activation=activation, precision=precision)
    X = check_rows(frozen, 500)
    found = to_module(frozen)(torch.from_numpy(X)).numpy()
    assert found.dtype == precision
    difference = np.abs(found.astype(np.float64) - frozen.score(X))
    assert np.all(difference <= within(frozen, precision))


def test_nan_stays_nan() -> None:
    X = torch.tensor([[1.0, 2.0, torch.nan], [1.0, torch.nan, 3.0], [1.0, 2.0, 3.0]])
    assert torch.isnan(to_module(every_step())(X)).tolist() == [True, True, False]


@pytest.mark.slow
def test_the_program_runs_without_isotone(tmp_path: Path) -> None:
    frozen = every_step()
    export.write(frozen, "torch", tmp_path / "model.pt2")
    X = check_rows(frozen, 50)
    np.save(tmp_path / "X.npy", X)
    result = subprocess.run(
        [sys.executable, "-c", CODE, tmp_path / "model.pt2", tmp_path / "X.npy"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    about, scores = json.loads(result.stdout)
    assert about["fingerprint"] == frozen.fingerprint
    assert [len(entry) for entry in scores] == [1, 2, len(X)]
    assert np.all(np.abs(np.array(scores[2]) - frozen.score(X)) <= within(frozen, "float64"))
