"""Strangers: text in a model file cannot pass for what we say, on terminals or pages."""

from __future__ import annotations

import json
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import isotone
from isotone import certify, export, report
from isotone.cli import main
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Number
from networks import by_hand, small

VERDICT = "HOLDS  model.isotone"
HOSTILE = [
    f"innocent\n{VERDICT}",
    f"innocent\r{VERDICT}",
    f"\x1b[2J\x1b[H{VERDICT}",
    f"\x9b2J{VERDICT}",
    f"innocent\u2028{VERDICT}",
    f"\u202e{VERDICT}",
    f"{'x' * 80}{' ' * 200}{VERDICT}",
    f"{'漢' * 37}{' ' * 9}{VERDICT}",
    VERDICT,
]


def liar(text: str) -> isotone.FrozenNetwork:
    """A network that fails its certificate, with `text` wherever a file has room for it."""
    return by_hand(
        -3.0,
        outputs="logits",
        classes=("no", text),
        provenance={text: text, "certificate": VERDICT, "nested": {text: [text]}},
        certificate={"fingerprint": text, "holds": True, "guarantee": text},
    )


def named(text: str) -> isotone.FrozenNetwork:
    return replace(liar("yes"), features=(text,))


@pytest.mark.parametrize("make", [liar, named])
@pytest.mark.parametrize("command", ["show", "certify"])
@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_no_line_of_a_terminal_begins_with_a_verdict_of_the_file(
    make: Any, command: str, text: str, tmp_path: Path, capsys: Any
) -> None:
    path = tmp_path / "m"
    make(text).save(path)
    with pytest.raises(SystemExit):
        main([command, str(path)])
    out, err = capsys.readouterr()
    if command == "certify":
        assert out.startswith("FAILS  ")
    for line in f"{out}\n{err}".splitlines():
        assert not line.startswith("HOLDS")
        assert all(c.isprintable() for c in line)


def test_provenance_is_quoted_and_called_unchecked(tmp_path: Path, capsys: Any) -> None:
    liar(HOSTILE[0]).save(tmp_path / "m")
    with pytest.raises(SystemExit):
        main(["show", str(tmp_path / "m")])
    out = capsys.readouterr().out
    head, stated = out.split("provenance, as the file states it; none of it was verified\n")
    assert "HOLDS  model.isotone" not in head.replace("\N{REPLACEMENT CHARACTER}HOLDS", "")
    assert all(line.startswith("  │ ") for line in stated.splitlines())
    assert f'  │ "certificate": "{VERDICT}"\n' in stated
    assert f'"innocent\\n{VERDICT}"' in stated


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_pages_and_notebooks_hold_no_character_that_steers(text: str, tmp_path: Path) -> None:
    frozen = replace(named(text), classes=("no", text))
    report.write(frozen, tmp_path / "report.html", title=text)
    page = (tmp_path / "report.html").read_text()
    for shown in (page, frozen._repr_html_(), certify(frozen)._repr_html_()):
        assert all(c.isprintable() or c == "\n" for c in shown if ord(c) > 0x7E or ord(c) < 0x20)
    assert "does NOT hold" in page


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_errors_that_quote_a_file_are_one_line(text: str, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / f"m{len(text)}"
    isotone.frozen.modelfile.write(path, {"features": text, "classes": None}, {})
    with pytest.raises(SystemExit):
        main(["certify", str(path)])
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1
    assert "   " not in err


class TestClass:
    """Which class a direction is about is said everywhere."""

    def test_certify_names_it(self, tmp_path: Path, capsys: Any) -> None:
        frozen = by_hand(0.5, outputs="logits", classes=("bad", "good"))
        frozen.save(tmp_path / "m")
        for arguments in (["certify"], ["certify", "--json"], ["show"]):
            with pytest.raises(SystemExit):
                main([*arguments, str(tmp_path / "m")])
        out = capsys.readouterr().out
        assert out.count("directions   of the probability of good, rather than of bad ") == 2
        assert '"about": "probability of good"' in out

    @pytest.mark.parametrize(
        ("options", "about"),
        [
            ({}, "score"),
            ({"outputs": "logits"}, "probability of class 1"),
            ({"outputs": "logits", "classes": ("a", "b")}, "probability of b"),
        ],
    )
    def test_the_certificate_names_it(self, options: dict[str, Any], about: str) -> None:
        certificate = certify(by_hand(0.5, **options))
        assert [verdict.about for verdict in certificate.verdicts] == [about]
        data = json.loads(certificate.to_json())
        assert data["verdicts"][0]["about"] == about
        assert data["classes"] == (list(options["classes"]) if "classes" in options else None)
        assert f"of the {about}" in certificate._repr_html_()

    def test_the_report_names_it(self, tmp_path: Path) -> None:
        frozen = by_hand(0.5, outputs="logits", classes=("bad", "good"))
        report.write(frozen, tmp_path / "report.html")
        page = (tmp_path / "report.html").read_text()
        assert "declared: probability of <b>good</b>, when the feature rises" in page


def test_slopes_are_said_to_be_those_of_the_exact_function(tmp_path: Path, capsys: Any) -> None:
    """Across the edge of a cell a computed score is steeper than any bound of slopes."""
    frozen = by_hand(0.5)
    (slope,) = certify(frozen).slopes
    edge = 0.5 * (frozen.grid or 0.0)
    below, above = edge * (1 - 2**-50), edge * (1 + 2**-50)
    low, high = frozen.score([[below], [above]])
    assert (high - low) / (above - below) > 1e6 * slope.raw.high
    frozen.save(tmp_path / "m")
    with pytest.raises(SystemExit):
        main(["certify", str(tmp_path / "m")])
    report.write(frozen, tmp_path / "report.html")
    out = " ".join(capsys.readouterr().out.split())
    assert (
        "Slopes are those of the exact function within that range; computed scores change" in out
    )
    assert "those of the exact function" in (tmp_path / "report.html").read_text()


def everything(directory: Path) -> bytes:
    """All bytes of all files, unpacked where they are archives."""
    found = b""
    for path in directory.rglob("*"):
        if path.is_file():
            found += path.read_bytes()
        if path.is_file() and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                found += b"".join(archive.read(name) for name in archive.namelist())
    return found


class TestPaths:
    """What is handed on does not tell where it was made."""

    def test_no_artifact_holds_a_folder_of_this_machine(self, tmp_path: Path) -> None:
        frozen = by_hand(0.5)
        for name in export.TARGETS:
            cut = {"threshold": 0.25} if name in ("allen", "hlt2") else {}
            export.write(frozen, name, tmp_path / name, check=False, **cut)
        frozen.save(tmp_path / "model.isotone")
        report.write(frozen, tmp_path / "report.html")
        folders = tmp_path, Path(isotone.__file__).parent, Path(sys.prefix), Path.cwd()
        for folder in folders:
            assert str(folder).encode() not in everything(tmp_path), folder

    @pytest.mark.parametrize(
        ("table", "shown"),
        [
            ("/home/ann/secret/loans.csv", "loans.csv"),
            ("~/secret/loans.csv", "loans.csv"),
            ("../secret/loans.csv", "loans.csv"),
            ("C:\\Users\\ann\\secret\\loans.csv", "loans.csv"),
            ("/secret/run.root:signal/tree", "run.root:signal/tree"),
            ("s3://secret/loans.parquet", "loans.parquet"),
            ("speed in m/s", "speed in m/s"),
        ],
    )
    def test_a_report_names_files_without_folders(
        self, table: str, shown: str, tmp_path: Path
    ) -> None:
        frozen = by_hand(0.5, provenance={"table": table, "more": {"tables": [table]}})
        report.write(frozen, tmp_path / "report.html")
        page = (tmp_path / "report.html").read_text()
        assert "secret" not in page
        made_from = page.split("<dt>made from</dt><dd>")[1].split("</dd>")[0]
        assert made_from.count(shown) == 2


def test_what_decides_scores_is_not_called_unchecked(tmp_path: Path, capsys: Any) -> None:
    inputs = Inputs((Number("x0", fill=7.5), Number("x1")))
    frozen = replace(small(), features=inputs.features, inputs=inputs, provenance={"who": "me"})
    frozen.save(tmp_path / "model.isotone")
    with pytest.raises(SystemExit):
        main(["show", str(tmp_path / "model.isotone")])
    applied, unchecked = capsys.readouterr().out.split("provenance, as the file states it")
    assert "7.5" in applied
    assert '"who"' in unchecked
    assert "7.5" not in unchecked
