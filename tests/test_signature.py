"""Signatures are those of minisign, both ways, and nothing that was changed counts as signed."""

from __future__ import annotations

import base64
import os
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typer.testing import CliRunner

from isotone.cli import app
from isotone.signature import PublicKey, SignatureError, is_encrypted, sign, verify
from networks import small
from programs import need

NUMBER = bytes(range(8))


def make_keys(folder: Path, seed: int = 0) -> tuple[Path, str]:
    """A secret key without a password, as `minisign -GW` makes it, and its public key."""
    key = Ed25519PrivateKey.from_private_bytes(bytes([seed] * 32))
    point = key.public_key().public_bytes_raw()
    secret = key.private_bytes_raw() + point
    body = NUMBER + secret
    data = b"Ed\0\0B2" + bytes(48) + body + bytes(32)
    path = folder / f"{seed}.key"
    path.write_text(f"untrusted comment: secret\n{base64.b64encode(data).decode()}\n")
    return path, base64.b64encode(b"Ed" + NUMBER + point).decode()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "a.isotone"
    small().save(path)
    return path


def test_what_was_signed_verifies_and_says_its_comment(model: Path, tmp_path: Path) -> None:
    key, public = make_keys(tmp_path)
    beside = sign(model, key, comment="release 3")
    assert beside == tmp_path / "a.isotone.minisig"
    assert verify(model, PublicKey.read(public)) == "release 3"
    assert str(PublicKey.read(public)) == public


def test_a_file_that_is_called_like_a_key_is_not_taken_for_it(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever sends a folder with the model could send a key of his own under that name."""
    _, publisher = make_keys(tmp_path)
    forger, forged = make_keys(tmp_path, seed=1)
    monkeypatch.chdir(tmp_path)
    target = tmp_path / publisher  # base 64 of these seeds has no slash
    target.write_text(f"untrusted comment: key\n{forged}\n")
    sign(model, forger, comment="official release")
    with pytest.raises(SignatureError, match="is not the file that was signed"):
        verify(model, PublicKey.read(publisher))
    assert verify(model, PublicKey.read(f"./{publisher}")) == "official release"


def test_what_has_no_signature_is_called_so(model: Path, tmp_path: Path) -> None:
    _, public = make_keys(tmp_path)
    with pytest.raises(SignatureError, match=r"a.isotone' is not signed: there is no"):
        verify(model, PublicKey.read(public))
    os.mkfifo(tmp_path / "a.isotone.minisig")
    with pytest.raises(ValueError, match="is a pipe"):
        verify(model, PublicKey.read(public))


def test_a_key_has_two_lines(tmp_path: Path) -> None:
    _, public = make_keys(tmp_path)
    path = tmp_path / "a.pub"
    path.write_text(f"untrusted comment: key\n{public}\n{public}\n")
    with pytest.raises(SignatureError, match="has 3 lines, but a key has two"):
        PublicKey.read(path)


def test_every_changed_byte_of_the_file_is_noticed(model: Path, tmp_path: Path) -> None:
    key, public = make_keys(tmp_path)
    sign(model, key, comment="")
    content = model.read_bytes()
    for place in range(0, len(content), 211):
        model.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(SignatureError, match="is not the file that was signed"):
            verify(model, PublicKey.read(public))


def test_every_changed_letter_of_the_signature_is_noticed(model: Path, tmp_path: Path) -> None:
    key, public = make_keys(tmp_path)
    beside = sign(model, key, comment="release 3")
    text = beside.read_text()
    signed = text.index("\n") + 1  # what is above is a comment that nobody signs
    for place in range(signed, len(text) - 1):
        if text[place] not in "=\n":
            beside.write_text(text[:place] + chr(ord(text[place]) ^ 1) + text[place + 1 :])
            with pytest.raises(SignatureError):
                verify(model, PublicKey.read(public))


def test_another_key_does_not_verify(model: Path, tmp_path: Path) -> None:
    key, _ = make_keys(tmp_path)
    _, other = make_keys(tmp_path, seed=1)
    sign(model, key, comment="")
    with pytest.raises(SignatureError, match="is not the file that was signed"):
        verify(model, PublicKey.read(other))
    renumbered = PublicKey(b"another!", PublicKey.read(other).point)
    with pytest.raises(
        SignatureError, match=r"was made with the key 0706050403020100, not with 2172"
    ):
        verify(model, renumbered)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a file of minisign"),
        ("untrusted comment: a\n", "is not a file of minisign"),
        ("untrusted comment: a\nQUJD\n", "has 2 lines, but a signature has four"),
        ("untrusted comment: a\nQUJD\ntrusted comment: b\nQUJD", "'QUJD' is not a signature"),
        ("untrusted comment: a\n!\ntrusted comment: b\nQUJD", "'!' is not a signature"),
        ("untrusted comment: a\n" + "x" * 70_000, "is not a file of minisign"),
    ],
)
def test_files_that_are_no_signatures_are_refused(
    model: Path, tmp_path: Path, text: str, message: str
) -> None:
    _, public = make_keys(tmp_path)
    (tmp_path / "a.isotone.minisig").write_text(text)
    with pytest.raises(SignatureError, match=message):
        verify(model, PublicKey.read(public))


def test_signatures_of_the_file_itself_are_refused(model: Path, tmp_path: Path) -> None:
    key, public = make_keys(tmp_path)
    beside = sign(model, key, comment="")
    lines = beside.read_text().split("\n")
    lines[1] = base64.b64encode(b"Ed" + base64.b64decode(lines[1])[2:]).decode()
    beside.write_text("\n".join(lines))
    with pytest.raises(SignatureError, match="must be one of the file's hash"):
        verify(model, PublicKey.read(public))


def test_keys_that_are_none_are_refused(model: Path, tmp_path: Path) -> None:
    key, public = make_keys(tmp_path)
    with pytest.raises(SignatureError, match=r"is of kind b'XX', but only Ed25519"):
        PublicKey.read(_written(tmp_path, base64.b64encode(b"XX" + bytes(40)).decode()))
    with pytest.raises(SignatureError, match="is not a secret key, which has 158 bytes"):
        sign(model, _written(tmp_path, public), comment="")
    data = base64.b64decode(key.read_text().split("\n")[1])
    with pytest.raises(SignatureError, match="is not a secret key in a known format"):
        sign(model, _written(tmp_path, base64.b64encode(b"XX" + data[2:]).decode()), comment="")
    damaged = data[:-33] + bytes([data[-33] ^ 1]) + data[-32:]
    with pytest.raises(SignatureError, match="cannot be opened because it is damaged"):
        sign(model, _written(tmp_path, base64.b64encode(damaged).decode()), comment="")
    with pytest.raises(ValueError, match="must be one line"):
        sign(model, key, comment="a\nb")


def _written(folder: Path, line: str) -> Path:
    path = folder / "written.key"
    path.write_text(f"untrusted comment: a key\n{line}\n")
    return path


def test_minisign_reads_our_signatures_and_we_read_its(model: Path, tmp_path: Path) -> None:
    need("minisign")
    key, public = tmp_path / "m.key", tmp_path / "m.pub"
    _minisign("-G", "-W", "-p", str(public), "-s", str(key))
    assert not is_encrypted(key)
    _minisign("-S", "-s", str(key), "-m", str(model), "-t", "by minisign")
    assert verify(model, PublicKey.read(public)) == "by minisign"
    sign(model, key, comment="by isotone")
    assert "Trusted comment: by isotone" in _minisign("-V", "-p", str(public), "-m", str(model))


@pytest.mark.slow
def test_passwords_of_minisign_open_its_keys(model: Path, tmp_path: Path) -> None:
    need("minisign")
    key, public = tmp_path / "m.key", tmp_path / "m.pub"
    _minisign("-G", "-p", str(public), "-s", str(key), given="secret\nsecret\n")
    assert is_encrypted(key)
    with pytest.raises(SignatureError, match="cannot be opened with this password"):
        sign(model, key, comment="", password="other")
    sign(model, key, comment="right", password="secret")
    assert verify(model, PublicKey.read(public)) == "right"


def _minisign(*words: str, given: str = "") -> str:
    run = subprocess.run(["minisign", *words], input=given, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_commands_sign_and_check(model: Path, tmp_path: Path) -> None:
    key, public = make_keys(tmp_path)
    runner = CliRunner()
    signed = runner.invoke(app, ["sign", str(model), "--key", str(key)])
    assert signed.exit_code == 0, signed.output
    checked = runner.invoke(app, ["certify", str(model), "--signed-by", public])
    assert checked.exit_code == 0, checked.output
    assert f"fingerprint {small().fingerprint}" in checked.output.replace("\n", "")
    as_json = runner.invoke(app, ["certify", str(model), "--signed-by", public, "--json"])
    assert f'"signed_by": "{public}"' in as_json.output
    model.write_bytes(model.read_bytes() + b" ")
    refused = runner.invoke(app, ["certify", str(model), "--signed-by", public])
    assert refused.exit_code != 0
    assert "is not the file that was signed" in refused.output + str(refused.exception)


@pytest.mark.parametrize("replaced_after", [1, 2])
def test_what_is_certified_is_what_was_signed_though_the_file_is_replaced_meanwhile(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaced_after: int
) -> None:
    """Replaced before the copy is made, it is refused; replaced later, it is not what is read."""
    key, public = make_keys(tmp_path)
    sign(model, key, comment="release 3")
    other = tmp_path / "other.isotone"
    small(seed=1).save(other)
    n_checks = 0

    def verify_and_replace(*arguments: Any) -> str:
        nonlocal n_checks
        comment = verify(*arguments)
        n_checks += 1
        if n_checks == replaced_after:
            other.replace(model)
        return comment

    monkeypatch.setattr(import_module("isotone.cli.certify"), "verify", verify_and_replace)
    ran = CliRunner().invoke(app, ["certify", str(model), "--signed-by", public, "--json"])
    assert not other.exists()
    if replaced_after == 1:
        assert ran.exit_code != 0
        assert "is not the file that was signed" in ran.output + str(ran.exception)
    else:
        assert small().fingerprint in ran.output
