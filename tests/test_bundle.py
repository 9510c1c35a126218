"""Bundles: what decides in one file, the same bytes each time, refused if anything was altered."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotone import bundle
from isotone.cli import main
from networks import by_hand, every_step, mixed, small

GOOD: dict[str, Any] = {"threshold": 0.125, "name": "two-track", "version": "2026.1"}


def entries(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(path: Path, content: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize("frozen", [small(), small(precision="float32"), mixed()], ids=repr)
def test_a_bundle_decides_as_the_model_it_was_made_from(frozen: Any, tmp_path: Path) -> None:
    made = bundle.write(frozen, tmp_path / "line.zip", **GOOD)
    found = bundle.read(tmp_path / "line.zip")
    assert found.frozen.fingerprint == frozen.fingerprint
    assert found.certificate.to_dict() == made.certificate.to_dict()
    for name in ("name", "version", "threshold", "identity", "holds", "claimed"):
        assert getattr(found, name) == getattr(made, name)
    if frozen.inputs.is_plain:
        X = np.random.default_rng(0).normal(size=(500, 3))
        assert found.passes(X).tolist() == (frozen.score(X) >= 0.125).tolist()
        X[0, 0] = np.nan
        with pytest.warns(UserWarning, match="never seen in training"):
            assert not found.passes(X, on_unseen="skip")[0]


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        bundle.write(small(), tmp_path / name, **GOOD)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    other = bundle.write(small(), tmp_path / "c.zip", **GOOD | {"threshold": 0.25})
    assert other.identity != bundle.read(tmp_path / "a.zip").identity


def test_every_flipped_byte_of_the_content_is_noticed(tmp_path: Path) -> None:
    bundle.write(by_hand(0.5), tmp_path / "line.zip", **GOOD)
    data, rng = (tmp_path / "line.zip").read_bytes(), np.random.default_rng(0)
    identity = bundle.read(tmp_path / "line.zip").identity
    for place in rng.integers(0, len(data), 300):
        broken = bytearray(data)
        broken[place] ^= 1 << int(rng.integers(8))
        (tmp_path / "broken.zip").write_bytes(bytes(broken))
        try:
            found = bundle.read(tmp_path / "broken.zip")
        except ValueError:
            continue
        assert found.identity == identity  # a byte that says nothing, such as a date


def alter(change: dict[str, Any]) -> Any:
    def altered(content: dict[str, bytes]) -> dict[str, bytes]:
        manifest = json.loads(content["bundle.json"]) | change
        return content | {"bundle.json": json.dumps(manifest).encode()}

    return altered


HOSTILE: list[tuple[Any, str]] = [
    (lambda c: c | {"../evil": b"x"}, "does not hold just bundle.json, model.isotone, cert"),
    (lambda c: {f"../{n}": d for n, d in c.items()}, "does not hold just bundle.json"),
    (lambda c: {n: c[n] for n in list(c)[:2]}, "does not hold just bundle.json"),
    (lambda c: c | {"model.isotone": b"x"}, "model.isotone does not match its checksum"),
    (lambda c: c | {"certificate.json": b"{}"}, "certificate.json does not match its checksum"),
    (lambda c: c | {"bundle.json": b"{" * 100}, "has an unreadable bundle.json"),
    (lambda c: c | {"bundle.json": b" " * 2**17}, "has 131072 bytes of bundle.json"),
    (alter({"threshold": "0.1"}), "its threshold is '0.1'"),
    (alter({"threshold": None}), "its threshold is None"),
    (alter({"rule": ">"}), "its format must be 1 and its rule '>='"),
    (alter({"format": 2}), "its format must be 1 and its rule '>='"),
    (alter({"fingerprint": "0" * 64}), "its model has another fingerprint"),
    (alter({"holds": False}), "its certificate is about another model"),
    (alter({"name": "a b"}), "`name='a b'` must be up to 64 letters, digits"),
    (alter({"files": {}}), "lacks 'model.isotone'; make it again"),
]


@pytest.mark.parametrize(("change", "message"), HOSTILE, ids=[m for _, m in HOSTILE])
def test_hostile_bundles_are_refused(change: Any, message: str, tmp_path: Path) -> None:
    bundle.write(small(), tmp_path / "line.zip", **GOOD)
    path = zipped(tmp_path / "hostile.zip", change(entries(tmp_path / "line.zip")))
    with pytest.raises(ValueError, match=message):
        bundle.read(path)
    assert not (tmp_path.parent / "evil").exists()


def test_bombs_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    content = dict.fromkeys(("bundle.json", "model.isotone", "certificate.json"), b"\0" * 10**6)
    path = zipped(tmp_path / "bomb.zip", content, zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match=r"has bundle.json compressed or encrypted; no bundle"):
        bundle.read(path)
    path.write_bytes(b"PK" + b"\0" * 100)
    with pytest.raises(ValueError, match=r"is damaged \(File is not a zip file\); no bundle"):
        bundle.read(path)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in entries(write_good(tmp_path)).items():
            archive.writestr(name, data)
    cut = stream.getvalue()[:-30]
    path.write_bytes(cut)
    with pytest.raises(ValueError, match=r"is damaged"):
        bundle.read(path)


@pytest.mark.parametrize("place", ["before", "after", "in the comment", "between"])
def test_bytes_around_the_archive_are_refused(place: str, tmp_path: Path) -> None:
    path = write_good(tmp_path)
    good, some = path.read_bytes(), b"#!/bin/sh\n"
    first = good.index(b"PK\x03\x04", 4)
    changed = {
        "before": some + good,
        "after": good + some,
        "in the comment": good[:-2] + len(some).to_bytes(2, "little") + some,
        "between": good[:first] + some + good[first:],
    }[place]
    path.write_bytes(changed)
    with pytest.raises(ValueError, match=r"before, between or after its entries|is damaged"):
        bundle.read(path)
    path.write_bytes(good)
    assert bundle.read(path).threshold == GOOD["threshold"]


def write_good(tmp_path: Path) -> Path:
    bundle.write(small(), tmp_path / "good.zip", **GOOD)
    return tmp_path / "good.zip"


def test_what_decides_nothing_is_not_bundled(tmp_path: Path) -> None:
    for frozen, change, message in (
        (small(), {"threshold": float("inf")}, "`threshold=inf` must be finite; give a number"),
        (small(), {"version": ""}, "`version=''` must be up to 64 letters"),
        (every_step(3), {}, "has 3 outputs; a decision by threshold needs one"),
    ):
        with pytest.raises(ValueError, match=message):
            bundle.write(frozen, tmp_path / "line.zip", **GOOD | change)
    assert not (tmp_path / "line.zip").exists()


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as exit_:
        main(["bundle", *map(str, words)])
    return int(exit_.value.code or 0)


def test_the_command_writes_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, line = tmp_path / "m.isotone", tmp_path / "line.zip"
    small().save(model)
    assert run(model, "--threshold", "0.5", "--version", "7", "--out", line) == 0
    made = capsys.readouterr().out
    assert run(line, "--check") == 0
    said = capsys.readouterr().out
    assert said in made
    assert "line, version 7" in said
    assert "score >= 0.5" in said
    assert small().fingerprint in said
    by_hand(-2.0).save(model)
    assert run(model, "--threshold", "0.5", "--out", line) == 1
    assert run(line, "--check") == 1
    assert "FAILS" in capsys.readouterr().out
    for words, message in (
        ([model], "no bundle to write was named; add `--out line.zip`, or `--check`"),
        ([model, "--out", line], "a bundle needs a threshold and none was given"),
        ([line, "--check", "--threshold", "1"], "`--threshold 1.0` makes a bundle; leave it out"),
        ([model, "--check"], "is damaged (File is not a zip file)"),
        ([model, "--threshold", "1", "--out", model], "outputs must not be inputs"),
    ):
        assert run(*words) == 2
        assert message in " ".join(capsys.readouterr().err.split())
