"""What is released agrees with itself: one version everywhere, and a smoke test that can fail."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import isotone
from release import smoke

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("pyproject.toml", r'^version = "(.*)"$'),
        ("CITATION.cff", r"^version: (.*)$"),
        ("release/conda/recipe.yaml", r'^  version: "(.*)"$'),
        ("CHANGELOG.md", r"^## (\S+)"),
    ],
)
def test_every_file_has_the_version(file: str, pattern: str) -> None:
    found = re.search(pattern, (ROOT / file).read_text(), re.MULTILINE)
    assert found is not None
    assert found[1] == isotone.__version__


def test_the_conda_recipe_needs_what_the_wheel_needs() -> None:
    recipe = (ROOT / "release/conda/recipe.yaml").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    needed = {*project["dependencies"], "python" + project["requires-python"]}
    assert {line.strip("- ").replace(" ", "") for line in run.splitlines()} == needed


def test_the_smoke_test_passes_and_notices_a_network_that_falls() -> None:
    frozen = smoke.make_model()
    assert isotone.certify(frozen).holds
    smoke.check_scores(frozen)
    with pytest.raises(AssertionError):
        smoke.check_scores(replace(frozen, residual=np.array([[-1.0, 1.0]])))
