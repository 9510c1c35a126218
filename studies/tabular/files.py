"""Files: where the tables of the studies come from.

They are looked for in the directory `ISOTONE_DATA`, then in a cache, and otherwise fetched by
scikit-learn from their public homes into the cache. The digest of what was fetched must be the one
that is written here: nobody compares numbers on other rows without noticing.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sklearn.datasets import fetch_file

from isotone.files import replacing

_UCI = "https://archive.ics.uci.edu/static/public/"  # followed by the number of a data set
_REFERENCE = "https://raw.githubusercontent.com/niklasnolte/monotonic_tests/main/data/"


class NoDataError(RuntimeError):
    """A table is neither at hand nor to be had."""


@dataclass(frozen=True)
class Source:
    """Where a file is published; `member` is its name (or the start of its names) in an archive.

    The digest is of the content, unpacked by `read`.
    """

    url: str
    sha256: str
    member: str = ""
    read: Callable[[bytes, str], bytes] | None = None  # `unpack` if not said otherwise


SOURCES = {
    "adult/adult.data": Source(
        _UCI + "2/adult.zip",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        "adult.data",
    ),
    "adult/adult.test": Source(
        _UCI + "2/adult.zip",
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        "adult.test",
    ),
    "auto_mpg/auto-mpg.csv": Source(
        _REFERENCE + "auto-mpg.csv",
        "09a282cf12c7ab4ffb517b496b0dd1a8bac6e95977178cc7832c32044c32c3f6",
    ),
    "bike_sharing/hour.csv": Source(
        _UCI + "275/bike+sharing+dataset.zip",
        "e03de4ee4ef4dc376ac6e04bf829673c6269e8eba5c60fa121640fa2f829504f",
        "hour.csv",
    ),
    "blog_feedback/blogData_train.csv.gz": Source(
        _UCI + "304/blogfeedback.zip",
        "f3cc953ea9913361be6d3bae2c393eef73eab57b1cb8e5bf8a22f1e5eb5dd05f",
        "blogData_train.csv",
    ),
    "blog_feedback/blogData_test.csv.gz": Source(  # 60 files, one for every day
        _UCI + "304/blogfeedback.zip",
        "b8143cca9c76597c0ab8b433e2dd3a547c20276771e1fc24f8804349d85160c9",
        "blogData_test-",
    ),
    "blog_feedback/blogData_test_index.csv": Source(
        _UCI + "304/blogfeedback.zip",
        "a56a40b8e52ae843593a2aeef5aef20833cd8dbd67c85b1d68322ae9fd5bf4e8",
        "blogData_test-",
        lambda content, member: index(content, member),
    ),
    "boston_housing/Boston.csv": Source(
        "https://raw.githubusercontent.com/intro-stat-learning/ISLP/main/ISLP/data/Boston.csv",
        "c9c9ac3fb3574db6ff1e7e11a03117d0ce8a5e2e817c3755fa5045fc66d9d94b",
    ),
    "california_housing/cal_housing.data": Source(  # the archive that scikit-learn fetches
        "https://ndownloader.figshare.com/files/5976036",
        "a2b44dcc7e1c9091b43c4f458b25cbd1f7e8068d08edd26bc4703108d3fa6214",
        "CaliforniaHousing/cal_housing.data",
    ),
    "compas/compas_scores_two_years.csv": Source(
        _REFERENCE + "compas_scores_two_years.csv",
        "d180e410066da845eceb452417fbf8b119633f05526bcb29ef2c5b546d8946c5",
    ),
    "german_credit/german.data": Source(
        _UCI + "144/statlog+german+credit+data.zip",
        "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
        "german.data",
    ),
    "heart_disease/heart_test.csv": Source(
        _REFERENCE + "heart_test.csv",
        "0454aeb41092b0b54d8e40b254700f16c79857ad48376bf2bf9be608944e6d1b",
    ),
    "heart_disease/heart_train.csv": Source(
        _REFERENCE + "heart_train.csv",
        "ee7d8a19680186f9f676490effca221cb9794eba298e00e922a79f60a1474597",
    ),
}


def cache() -> Path:
    """Where fetched files are kept."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "isotone" / "data"


def find(name: str) -> Path:
    """The path of a table, which is fetched if need be."""
    directory = os.environ.get("ISOTONE_DATA")
    for place in [Path(directory), cache()] if directory else [cache()]:
        if (place / name).exists():
            return place / name
    return _fetch(name, cache() / name)


def _fetch(name: str, path: Path) -> Path:
    source = SOURCES.get(name)
    advice = f"put it below a directory and name that directory in ISOTONE_DATA, as {name}"
    if source is None:
        raise NoDataError(f"{name} is not published in this form; {advice}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            fetched = fetch_file(source.url, folder, "fetched", n_retries=0)
            content = (source.read or unpack)(fetched.read_bytes(), source.member)
    except OSError as error:
        raise NoDataError(f"{name} is not here and {source.url} gave {error}; {advice}") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != source.sha256:
        raise NoDataError(
            f"{source.url} has changed: its sha256 is {digest}, but must be {source.sha256}; "
            f"find the old file and {advice}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        part.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return path


def unpack(content: bytes, member: str) -> bytes:
    """A file of an archive; if none has that name, those that begin with it, in their order."""
    if not member:
        return content
    if content[:2] == b"PK":
        return b"".join(_members(content, member).values())
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        file = archive.extractfile(member)
        return file.read() if file else b""


def _members(content: bytes, member: str) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = archive.namelist()
        found = [member] if member in names else sorted(n for n in names if n.startswith(member))
        return {name: archive.read(name) for name in found}


def index(content: bytes, member: str) -> bytes:
    """Where every one of the joined files begins, and its number of rows, as a table."""
    lines, first = ["file,first_row,rows\n"], 0
    for name, text in _members(content, member).items():
        n_rows = len(text.splitlines())
        lines.append(f"{name},{first},{n_rows}\n")
        first += n_rows
    return "".join(lines).encode()
