"""Bundle: a model, its threshold and its certificate in one file, with a version and checksums.

A bundle is what a trigger line or a service deploys: everything that decides, and nothing else.
The file is a zip archive, without compression, of three entries with fixed names:

=====================  =====================================================================
``bundle.json``        name, version, threshold, rule, fingerprint, checksums of the others
``model.isotone``      the model, as `FrozenNetwork.save` writes it
``certificate.json``   what `isotone.certify` said when the bundle was made
=====================  =====================================================================

The same model, threshold, name and version give the same bytes. `read` trusts nothing: sizes come
first, then names, checksums, fingerprint; the certificate is computed again. Checksums find
damage. Against someone who makes a bundle of their own, compare `Bundle.identity` with one that
you were told in another way.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import isotone
from isotone import limits
from isotone.arithmetic import ieee_arithmetic
from isotone.certificate.certify import Certificate, certify
from isotone.files import write_whole
from isotone.files.untrusted import open_regular, parse_json
from isotone.frozen.loading import check_network, describing, load
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import Policy
from isotone.typing import Bools

FORMAT = 1
RULE = ">="  # score >= threshold
_ENTRIES = ("bundle.json", "model.isotone", "certificate.json")
_SIZES = dict(zip(_ENTRIES, (2**16, limits.BYTES.largest + 2**23, 2**26), strict=True))
_DATE = (1980, 1, 1, 0, 0, 0)  # the first that zip knows, so that the bytes tell no time
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


@dataclass(frozen=True, eq=False)
class Bundle:
    """A model with its threshold, under a name and a version.

    Parameters
    ----------
    certificate : computed from the numbers of the model
    claimed : what the certificate in the file says of itself: whether constraints hold
    identity : SHA-256 of everything
    """

    name: str
    version: str
    frozen: FrozenNetwork
    threshold: float
    certificate: Certificate
    claimed: bool
    identity: str

    @property
    def holds(self) -> bool:
        """Whether every declared constraint holds, whatever the file claims."""
        return self.certificate.holds

    def passes(self, X: Any, on_unseen: Policy = "error") -> Bools:
        """The decisions score >= threshold; a row without a score does not pass.

        Parameters
        ----------
        X, on_unseen : as for `FrozenNetwork.score`
        """
        scores = self.frozen.score(X, on_unseen).astype(np.float64)
        return np.asarray(scores >= self.threshold)


@ieee_arithmetic()
def write(
    frozen: FrozenNetwork, path: str | Path, *, threshold: float, name: str, version: str
) -> Bundle:
    """Write a bundle, whole or not at all.

    Parameters
    ----------
    threshold : a row passes if its score is at least this
    name, version : letters, digits and . _ + -, at most 64 of them

    Examples
    --------
    >>> network = isotone.MonotonicNetwork([2, 8, 1], monotonic_cst=[1, 0])
    >>> made = write(  # doctest: +SKIP
    ...     isotone.freeze(network), "line.zip", threshold=0.5, name="line", version="1"
    ... )
    """
    check_network("`write` bundles", frozen)
    _check(frozen, threshold, name=name, version=version)
    certificate = certify(frozen)
    files = {
        "model.isotone": _model_bytes(frozen),
        "certificate.json": certificate.to_json().encode(),
    }
    content = {
        "format": FORMAT,
        "isotone": isotone.__version__,
        "name": name,
        "version": version,
        "fingerprint": frozen.fingerprint,
        "threshold": float(threshold),
        "rule": RULE,
        "holds": certificate.holds,
        "guarantee": certificate.guarantee,
        "files": {file: hashlib.sha256(data).hexdigest() for file, data in files.items()},
    }
    manifest = json.dumps(content, indent=1).encode()
    write_whole(path, _zipped({"bundle.json": manifest, **files}))
    identity = hashlib.sha256(manifest).hexdigest()
    return Bundle(
        name, version, frozen, float(threshold), certificate, certificate.holds, identity
    )


@ieee_arithmetic()
def read(path: str | Path) -> Bundle:
    """Read a bundle, if nothing in it was altered; its certificate is computed again."""
    entries = _unzipped(path)
    content = _parsed(path, entries["bundle.json"])
    advice = "; make it again with `isotone bundle`"
    with describing(f"bundle {str(path)!r} does not describe a decision", advice):
        if content["format"] != FORMAT or content["rule"] != RULE:
            raise ValueError(f"its format must be {FORMAT} and its rule {RULE!r}")
        for file in _ENTRIES[1:]:
            if content["files"][file] != hashlib.sha256(entries[file]).hexdigest():
                raise ValueError(f"{file} does not match its checksum: it was altered or damaged")
        frozen = _load(entries["model.isotone"])
        if content["fingerprint"] != frozen.fingerprint:
            raise ValueError("its model has another fingerprint")
        claim = parse_json(entries["certificate.json"])
        if claim["fingerprint"] != frozen.fingerprint or claim["holds"] != content["holds"]:
            raise ValueError("its certificate is about another model")
        name, version, threshold = (content[key] for key in ("name", "version", "threshold"))
        if type(threshold) not in (int, float):
            raise ValueError(f"its threshold is {threshold!r:.50}")
        _check(frozen, threshold, name=name, version=version)
    identity = hashlib.sha256(entries["bundle.json"]).hexdigest()
    claimed = bool(content["holds"])
    return Bundle(name, version, frozen, float(threshold), certify(frozen), claimed, identity)


def _check(frozen: FrozenNetwork, threshold: float, **words: Any) -> None:
    for what, word in words.items():
        if not isinstance(word, str) or not _WORD.fullmatch(word):
            raise ValueError(
                f"`{what}={word!r:.80}` must be up to 64 letters, digits and . _ + -, such as "
                "'two-track' or '2026.1'; choose another"
            )
    if not math.isfinite(threshold):
        raise ValueError(f"`threshold={threshold}` must be finite; give a number")
    if frozen.n_outputs != 1:
        raise ValueError(
            f"the model has {frozen.n_outputs} outputs; a decision by threshold needs one: bundle "
            "a model with one output"
        )


def _model_bytes(frozen: FrozenNetwork) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        frozen.save(Path(folder) / "model.isotone")
        return (Path(folder) / "model.isotone").read_bytes()


def _load(data: bytes) -> FrozenNetwork:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.isotone"
        path.write_bytes(data)
        return load(path)


def _zipped(entries: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), data)
    return stream.getvalue()


def _unzipped(path: str | Path) -> dict[str, bytes]:
    """The entries by name: exactly those expected, stored as they are, and not too large."""
    file, size = open_regular(path)
    with file:
        if size > sum(_SIZES.values()) + 2**16:
            raise _refused(path, f"has {size} bytes")
        try:
            with zipfile.ZipFile(file) as archive:
                found = archive.infolist()
                if tuple(entry.filename for entry in found) != _ENTRIES:
                    raise _refused(path, f"does not hold just {', '.join(_ENTRIES)}")
                for entry in found:
                    _check_entry(path, entry)
                _check_layout(path, archive, size)
                return {entry.filename: archive.read(entry) for entry in found}
        except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError) as error:
            raise _refused(path, f"is damaged ({error})") from error


def _check_entry(path: str | Path, entry: zipfile.ZipInfo) -> None:
    stored = entry.compress_type == zipfile.ZIP_STORED and entry.compress_size == entry.file_size
    if not stored or entry.flag_bits & 1:
        raise _refused(path, f"has {entry.filename} compressed or encrypted")
    if entry.file_size > _SIZES[entry.filename]:
        raise _refused(path, f"has {entry.file_size} bytes of {entry.filename}")


def _check_layout(path: str | Path, archive: zipfile.ZipFile, size: int) -> None:
    """Refuse bytes that belong to no entry: entries, the directory and its end are all there is.

    Their headers have 30, 46 and 22 bytes, and the first two a name.
    """
    end, found = 0, archive.infolist()
    gaps = False
    for entry in found:
        gaps |= entry.header_offset != end
        end += 30 + len(entry.filename) + entry.file_size
    directory = sum(46 + len(entry.filename) for entry in found)
    if gaps or archive.start_dir != end or size != end + directory + 22:
        raise _refused(path, "has bytes before, between or after its entries")


def _parsed(path: str | Path, text: bytes) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise _refused(path, f"has an unreadable bundle.json ({error})") from error


def _refused(path: str | Path, what: str) -> ValueError:
    return ValueError(
        f"bundle {str(path)!r} {what}; no bundle that isotone wrote does: copy it again"
    )
