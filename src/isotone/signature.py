"""Signature: who published a file, by a detached signature in minisign's format.

A certificate says what a model guarantees, whoever made it; a signature says that it is the one
somebody published. `model.isotone.minisig` lies beside `model.isotone`. Keys and signatures are
those of minisign, so that its command, and any other program that knows the format, makes and
checks them as well. Ed25519 is that of the `cryptography` package, the extra `sign`.

Signed are the BLAKE2b hash of the file, s = Ed25519(BLAKE2b(file)), and the trusted comment,
Ed25519(s ‖ comment). The untrusted comment above them is not signed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from isotone.extras import lacking
from isotone.files import write_whole
from isotone.files.untrusted import open_regular

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ed25519

SUFFIX = ".minisig"
_KEY, _HASHED = b"Ed", b"ED"  # algorithms of keys and of signatures
_PLAIN, _SCRYPT, _CHECKSUM = b"\0\0", b"Sc", b"B2"
_MOST_BYTES = 1 << 16  # of a file with a key or a signature
_UNTRUSTED, _TRUSTED = "untrusted comment: ", "trusted comment: "


class SignatureError(ValueError):
    """Why a file does not count as signed."""


@dataclass(frozen=True)
class PublicKey:
    """What a publisher gives away.

    Parameters
    ----------
    number : 8 bytes that tell keys apart
    point : 32 bytes, of Ed25519
    """

    number: bytes
    point: bytes

    @classmethod
    def read(cls, given: str | Path) -> PublicKey:
        """From the line of 56 letters in a file of minisign, or from such a file.

        56 letters that are a key are never taken for the name of a file, which a stranger may
        have put there.
        """
        data = _bytes(str(given))
        if len(data) != 42 or data[:2] != _KEY:
            data = _decoded(_second(Path(given)), 42, "a public key")
        if data[:2] != _KEY:
            raise SignatureError(
                f"the public key is of kind {data[:2]!r}, but only Ed25519 (b'Ed') is known; ask "
                "for a key of minisign"
            )
        return cls(data[2:10], data[10:])

    def __str__(self) -> str:
        return base64.b64encode(_KEY + self.number + self.point).decode()

    def agrees(self, signature: bytes, message: bytes) -> bool:
        """Whether this key signed a message."""
        public = _cryptography().ed25519.Ed25519PublicKey.from_public_bytes(self.point)
        try:
            public.verify(signature, message)
        except _cryptography().InvalidSignature:
            return False
        return True


def verify(path: str | Path, key: PublicKey, signature: str | Path | None = None) -> str:
    """Check that a file is what the owner of a key signed; the trusted comment of the signature.

    Parameters
    ----------
    signature : of the file; by default `path` with `.minisig` appended

    Raises
    ------
    SignatureError
        if it is not, or nobody can tell
    """
    beside = Path(f"{path}{SUFFIX}") if signature is None else Path(signature)
    if not beside.exists():
        raise SignatureError(
            f"{str(path)!r} is not signed: there is no {str(beside)!r}; ask its publisher for one"
        )
    lines = _lines(beside)
    if len(lines) != 4 or not lines[2].startswith(_TRUSTED):
        raise SignatureError(
            f"{str(beside)!r} has {len(lines)} lines, but a signature has four, the third of them "
            "a trusted comment; sign the file again with `isotone sign` or minisign"
        )
    data, over_all = _decoded(lines[1], 74, "a signature"), _decoded(lines[3], 64, "a signature")
    comment = lines[2].removeprefix(_TRUSTED)
    kind, number, own = data[:2], data[2:10], data[10:]
    if kind != _HASHED:
        raise SignatureError(
            f"the signature is of kind {kind!r}, but must be one of the file's hash (b'ED'); sign "
            "it again with minisign 0.8 or newer"
        )
    if number != key.number:
        raise SignatureError(
            f"{str(beside)!r} was made with the key {_name(number)}, not with "
            f"{_name(key.number)}; give the public key of whoever signed it"
        )
    if not key.agrees(own, _hash(Path(path))):
        raise SignatureError(f"{str(path)!r} is not the file that was signed; do not use it")
    if not key.agrees(over_all, own + comment.encode()):
        raise SignatureError(f"the comment in {str(beside)!r} was changed; do not trust it")
    return comment


def sign(path: str | Path, key: str | Path, *, comment: str, password: str = "") -> Path:
    """Write the signature of a file beside it, whole or not at all; where it is.

    Parameters
    ----------
    key : a file with a secret key, as `minisign -G` makes it
    comment : a line that is signed, too
    password : of the key; empty if it has none
    """
    if not comment.isprintable() or len(comment) > 1000:
        raise ValueError(
            f"`comment={comment!r:.50}` has {len(comment)} letters; it must be one line of at "
            "most 1000 that can be printed: shorten it, and leave line breaks out"
        )
    number, secret = _secret(Path(key), password)
    own = secret.sign(_hash(Path(path)))
    over_all = secret.sign(own + comment.encode())
    lines = [
        f"{_UNTRUSTED}signature by the key {_name(number)}",
        base64.b64encode(_HASHED + number + own).decode(),
        f"{_TRUSTED}{comment}",
        base64.b64encode(over_all).decode(),
    ]
    target = Path(f"{path}{SUFFIX}")
    write_whole(target, "\n".join(lines) + "\n")
    return target


def is_encrypted(key: str | Path) -> bool:
    """Whether a secret key needs a password."""
    return _secret_bytes(Path(key))[2:4] == _SCRYPT


def _secret(path: Path, password: str) -> tuple[bytes, ed25519.Ed25519PrivateKey]:
    """The number of a secret key and the key itself; its second half is its public key."""
    data = _secret_bytes(path)
    method, salt, cost, body = data[2:4], data[6:38], data[38:54], data[54:]
    if method == _SCRYPT:
        stream = _stretched(password, salt, cost, len(body))
        body = bytes(a ^ b for a, b in zip(body, stream, strict=True))
    number, seed, point = body[:8], body[8:40], body[40:72]
    key = _cryptography().ed25519.Ed25519PrivateKey.from_private_bytes(seed)
    if key.public_key().public_bytes_raw() != point:
        why = "with this password" if method == _SCRYPT else "because it is damaged"
        raise SignatureError(
            f"the secret key {str(path)!r} cannot be opened {why}; it must be as minisign made it"
        )
    return number, key


def _secret_bytes(path: Path) -> bytes:
    data = _decoded(_second(path), 158, "a secret key")
    if data[:2] != _KEY or data[2:4] not in (_PLAIN, _SCRYPT) or data[4:6] != _CHECKSUM:
        raise SignatureError(
            f"{str(path)!r} is not a secret key in a known format; make one with `minisign -G`"
        )
    return data


def _stretched(password: str, salt: bytes, cost: bytes, length: int) -> bytes:
    """The bytes that hide a secret key: scrypt with libsodium's reading of its two limits."""
    operations, memory = (int.from_bytes(part, "little") for part in (cost[:8], cost[8:]))
    operations = max(operations, 32768)
    few = operations < memory // 32
    most = operations // 32 if few else memory // 1024
    n = 1 << max(1, (most // 2).bit_length())
    p = 1 if few else max(1, operations // 4 // n // 8)
    if n > 1 << 20 or p > 16:  # beyond what minisign asks for, and OpenSSL grants
        raise SignatureError(
            f"the key asks for scrypt with n={n}, p={p}; make one with `minisign -G`"
        )
    room = 128 * 8 * (n + p) + (1 << 20)
    return hashlib.scrypt(password.encode(), salt=salt, n=n, r=8, p=p, maxmem=room, dklen=length)


def _hash(path: Path) -> bytes:
    file, _ = open_regular(path)
    with file:
        return hashlib.file_digest(file, "blake2b").digest()


def _lines(path: Path) -> list[str]:
    """Of a small text file."""
    file, _ = open_regular(path)
    with file:
        data = file.read(_MOST_BYTES + 1)
    try:
        lines = data.decode().replace("\r\n", "\n").removesuffix("\n").split("\n")
    except UnicodeDecodeError:
        lines = []
    if len(data) > _MOST_BYTES or len(lines) < 2 or not lines[0].startswith(_UNTRUSTED):
        raise SignatureError(
            f"{str(path)!r} is not a file of minisign, which begins with "
            f"{_UNTRUSTED.strip()!r}; name a key or a signature"
        )
    return lines


def _second(path: Path) -> str:
    """The line of a key, below the comment; nothing may follow it."""
    lines = _lines(path)
    if len(lines) != 2:
        raise SignatureError(
            f"{str(path)!r} has {len(lines)} lines, but a key has two; copy it as minisign "
            "wrote it"
        )
    return lines[1]


def _bytes(line: str) -> bytes:
    """What a line in base 64 stands for; nothing if it is not one."""
    try:
        return base64.b64decode(line, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _decoded(line: str, length: int, what: str) -> bytes:
    data = _bytes(line)
    if len(data) != length:
        raise SignatureError(
            f"{line!r:.60} is not {what}, which has {length} bytes in base 64; copy it whole"
        )
    return data


def _name(number: bytes) -> str:
    """As minisign prints it."""
    return number[::-1].hex().upper()


def _cryptography() -> Any:
    """The names of the package that are needed here."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise ImportError(lacking("a signature", "cryptography", "sign")) from error
    return SimpleNamespace(InvalidSignature=InvalidSignature, ed25519=ed25519)
