"""`isotone train --scaling`: what the network sees of every column, as asked for, and printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import isotone
from isotone import cli
from isotone.cli.console.options import scaling_of
from isotone.inputs.scaling import Scaling

RNG = np.random.default_rng(0)
N = 300
PT = RNG.lognormal(1.0, 1.0, N)
LN_CHI2 = RNG.normal(4.0, 2.0, N)
Y = (LN_CHI2 + np.log(PT) + RNG.normal(size=N) > 5).astype(int)
QUICK = "--max-iter 2 --n-members 1 --hidden-layer-sizes 8,8 --lipschitz 2 --knots none"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.parquet"
    columns = {"pt": PT, "ln_chi2": LN_CHI2, "kind": ["a", "b"] * (N // 2), "y": Y}
    pa.parquet.write_table(pa.table(columns), path)
    return path


def run(table: Path, words: str) -> int:
    out = str(table.parent / "model.isotone")
    with pytest.raises(SystemExit) as exit_:
        cli.main(["train", str(table), "--target", "y", *words.split(), "--out", out])
    return int(exit_.value.code or 0)


def scaling(table: Path, words: str, features: str = "pt,ln_chi2") -> Scaling:
    assert run(table, f"--features {features} {words} {QUICK}") == 0
    return isotone.load(table.parent / "model.isotone").scaling


def test_none_hands_the_columns_to_the_network_as_they_are(table: Path) -> None:
    found = scaling(table, "--scaling none")
    assert np.array_equal(found.transform([[3.0, -7.0]]), [[3.0, -7.0]])


def test_each_column_has_its_own_scaling(table: Path) -> None:
    mixed = scaling(table, "--scaling none,pt=log")
    assert mixed.log.tolist() == [True, False]
    assert (mixed.center[1], mixed.factor[1]) == (0.0, 1.0)
    assert scaling(table, "--scaling pt=standard").log.tolist() == [False, False]
    assert scaling(table, "--scaling auto").log.tolist() == [True, False]
    quartiles = scaling(table, "--scaling ln_chi2=robust --scaling pt=none")
    assert quartiles.center[0] == 0.0
    assert quartiles.center[1] == pytest.approx(np.median(LN_CHI2), abs=0.3)


def test_categories_are_never_scaled(table: Path) -> None:
    found = scaling(table, "--categorical kind --scaling standard", "pt,kind")
    assert found.factor.tolist()[1:] == [1.0, 1.0]


def test_the_scaling_is_printed_with_lipschitz_constants_per_raw_unit(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = scaling(table, "--scaling none,pt=standard")
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "feature direction scaling λ, scaled λ, raw" in lines
    assert "ln_chi2 free unscaled 2 2" in lines
    pt = f"pt free (x - {found.center[0]:.4g}) / {1 / found.factor[0]:.4g} 2 "
    (line,) = (line for line in lines if line.startswith(pt))
    raw = float(line.removeprefix(pt))
    assert 2 * found.factor[0] <= raw <= 2.05 * found.factor[0]


def test_categories_stand_below_the_numbers(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scaling(table, "--categorical kind --scaling none", "kind,pt")
    lines = [line.split()[:5] for line in capsys.readouterr().out.splitlines()]
    seen = [line for line in lines if line[:1] and line[0].startswith(("pt", "kind"))]
    assert seen[0][:3] == ["pt", "free", "unscaled"]
    assert seen[1:] == [[f"kind={name}", "free", "0", "or", "1"] for name in "ab"]


def test_many_features_are_cut_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = {f"x{i}": RNG.normal(size=N) for i in range(23)} | {"y": Y}
    pa.parquet.write_table(pa.table(columns), tmp_path / "table.parquet")
    assert run(tmp_path / "table.parquet", f"--scaling none {QUICK}") == 0
    printed = capsys.readouterr().out
    assert "3 more are not shown; isotone show lists all" in printed
    assert printed.count("unscaled") == 20


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--scaling minmax", "`--scaling minmax` must be one of none, auto, identity, standard"),
        ("--scaling none,standard", "`--scaling standard` must be one of"),
        ("--scaling pt=none,pt=log", "once for a column; write `--scaling none`"),
        ("--scaling pt=none --log pt", "`--log` and `--scaling` both name 'pt'"),
        ("--scaling mass=none", "has no column 'mass'"),
        ("--scaling kind=none", "is about 'kind', which is not among the features"),
        ("--scaling y=none", "`--scaling y=identity` names the target"),
    ],
)
def test_advice_for_every_mistake(
    table: Path, words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(table, f"--features pt,ln_chi2 {words} {QUICK}") == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_category_has_no_scaling_of_its_own(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(table, f"--categorical kind --scaling kind=log {QUICK}") == 2
    assert "'kind' is categorical" in capsys.readouterr().err


def test_a_sign_of_equality_in_a_name_is_left_alone() -> None:
    assert scaling_of("a=b=log,none", ["a=b"]) == ("identity", {"a=b": "log"})
    assert scaling_of(None, ["a"]) == ("auto", {})


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        ("", "standard"),
        ("--scaling none", "identity"),
        ("--scaling pt=auto", {"pt": "auto", "ln_chi2": "standard"}),
    ],
)
def test_a_sweep_scales_alike(
    table: Path, words: str, kinds: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from isotone.estimators.fitting import automatic

    seen = []
    original = automatic.fit_scaling
    monkeypatch.setattr(
        automatic, "fit_scaling", lambda value, *rest: seen.append(value) or original(value, *rest)
    )
    grid = "--features pt,ln_chi2 --seeds 0 --lipschitz 1 --max-iter 1 --workers 1"
    out = ["--out", str(table.parent / "grid")]
    with pytest.raises(SystemExit, match="0"):
        cli.main(["sweep", str(table), "--target", "y", *grid.split(), *words.split(), *out])
    assert seen == [kinds]
