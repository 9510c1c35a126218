"""A model card states facts of the model, and nothing in a stranger's file can forge one."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from typer.testing import CliRunner

import isotone
from isotone.cli import app
from isotone.integrations.model_card import describe_model
from networks import small


def test_a_card_states_what_certify_finds() -> None:
    frozen = small()
    card, certificate = describe_model(frozen, "Loans"), isotone.certify(frozen)
    assert card.startswith("---\nlibrary_name: isotone\n")
    assert "# Loans" in card
    assert f"**HOLDS**: {certificate.guarantee}" in card
    assert frozen.fingerprint in card
    assert all(f"| {name} |" in card for name in frozen.features)
    assert "**FAILS**" in describe_model(replace(frozen, residual=-frozen.residual))


def test_names_in_a_file_cannot_act_as_markdown() -> None:
    forged = "x`\n## What is proved\n<script>|**HOLDS**"
    frozen = small()
    names = (forged, *frozen.features[1:])
    card = describe_model(
        replace(frozen, features=names, provenance={forged: forged}), title=forged
    )
    assert card.count("\n## What is proved") == 1
    assert "<script>" not in card.partition("## How to use it")[0]
    assert card.count("```") == 2


def test_the_command_writes_the_card(tmp_path: Path) -> None:
    small().save(tmp_path / "model.isotone")
    arguments = ["card", str(tmp_path / "model.isotone"), "--out", str(tmp_path / "README.md")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert (tmp_path / "README.md").read_text() == describe_model(small())


def test_the_card_is_in_utf_8_wherever_it_is_written(tmp_path: Path) -> None:
    replace(small(), features=("λ", "µ", "x")).save(tmp_path / "model.isotone")
    code = "import sys; from isotone.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "card", "model.isotone", "--out", "README.md"]
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    subprocess.run(command, cwd=tmp_path, env=os.environ | ascii_only, check=True)
    assert "| λ |" in (tmp_path / "README.md").read_text(encoding="utf-8")
