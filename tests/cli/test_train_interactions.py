"""`isotone train --interaction-cst`: groups of columns that may interact, proved by the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import isotone
from isotone import cli

RNG = np.random.default_rng(0)
A, B, C = RNG.normal(size=(3, 200))
QUICK = ["--max-iter", "3", "--n-members", "2", "--hidden-layer-sizes", "8", "--lipschitz", "2"]


def train(folder: Path, *words: str) -> Any:
    table = folder / "table.csv"
    pa.csv.write_csv(pa.table({"a": A, "b": B, "c, net": C, "y": A * B + C}), table)
    with pytest.raises(SystemExit) as exit_:
        cli.main(["train", str(table), "--target", "y", "--out", str(folder), *QUICK, *words])
    return exit_.value.code


@pytest.mark.parametrize(
    ("words", "groups"),
    [
        ("", (("a", "b", "c, net"),)),
        ("no_interactions", (("a",), ("b",), ("c, net",))),
        ("pairwise", (("a", "b"), ("a", "c, net"), ("b", "c, net"))),
        ("a,b", (("a", "b"), ("c, net",))),
        ('a,b b,"c, net"', (("a", "b"), ("b", "c, net"))),
    ],
)
def test_groups_end_up_in_the_certificate(
    words: str, groups: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = words.replace(", ", "_").split()
    options = [
        word for part in parts for word in ("--interaction-cst", part.replace("_net", ", net"))
    ]
    assert not train(tmp_path, *options)
    certificate = isotone.certify(isotone.load(tmp_path / "model.isotone"))
    assert certificate.interactions == groups
    assert ("interactions" in capsys.readouterr().out) == (len(groups) > 1)


def test_a_group_of_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("", ","):
        assert train(tmp_path, "--interaction-cst", "a,b", "--interaction-cst", text) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert f"`--interaction-cst '{text}'` names no feature; a group has at least one" in said
        assert "or leave it out" in said


def test_other_names_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tmp_path, "--interaction-cst", "a,nope") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "`--interaction-cst` names 'nope', which is not a feature" in said
    assert "--interaction-cst a,b --interaction-cst c,d" in said
