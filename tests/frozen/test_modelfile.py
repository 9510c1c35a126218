"""The model file: what was saved comes back, and nothing else is believed."""

from __future__ import annotations

import json
import os
import socket
import struct
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from isotone import FrozenNetwork, limits, load
from isotone.export import json as export_json
from isotone.files.untrusted import parse_json
from isotone.frozen import modelfile
from isotone.frozen.steps import residual_block
from networks import content_of, small


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.isotone"


def rewrite(path: Path, change: Any, arrays: Any = None) -> None:
    """Save a model whose content was changed, with a checksum that is right again."""
    small().save(path)
    content, old = content_of(path)
    change(content)
    modelfile.write(path, content, old if arrays is None else arrays(old))


def raw(path: Path, header: bytes, data: bytes = b"") -> None:
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def test_what_was_saved_comes_back(path: Path) -> None:
    frozen = small(features=["a", "b", "c"], provenance={"made by": "a test", "seed": 3})
    frozen.save(path)
    copy = load(path)
    X = np.random.default_rng(0).normal(size=(1000, 3))
    assert copy.fingerprint == frozen.fingerprint
    assert np.array_equal(copy.score(X), frozen.score(X))
    assert copy.provenance == frozen.provenance
    assert copy.certificate == frozen.certificate
    assert isinstance(copy, FrozenNetwork)


def test_saving_twice_gives_the_same_bytes(path: Path) -> None:
    small().save(path)
    first = path.read_bytes()
    load(path).save(path)
    assert path.read_bytes() == first


def test_every_flipped_bit_is_noticed(path: Path) -> None:
    small().save(path)
    data = path.read_bytes()
    for position in np.random.default_rng(0).choice(8 * len(data), 2000, replace=False):
        broken = bytearray(data)
        broken[position // 8] ^= 1 << (position % 8)
        path.write_bytes(broken)
        with pytest.raises(ValueError, match="model file"):
            load(path)


def test_every_truncation_is_noticed(path: Path) -> None:
    small().save(path)
    data = path.read_bytes()
    for length in [0, 1, 7, 8, 9, 100, len(data) // 2, len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(ValueError, match="model file"):
            load(path)
    path.write_bytes(data + b"x")
    with pytest.raises(ValueError, match="bytes of numbers but holds"):
        load(path)


def test_an_unknown_version_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modelfile, "FORMAT_VERSION", 99)
    small().save(path)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="format version 99; this isotone reads versions 1 and 2"):
        load(path)


def entry(**change: Any) -> bytes:
    return json.dumps(
        {"w": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]} | change}
    ).encode()


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"[]", "not an object"),
        (b"{", "unreadable text"),
        (b"[" * 100_000, "unreadable text"),
        (entry(shape=[10**18]), "of shape"),
        (entry(shape=[-1]), "of shape"),
        (entry(shape=[1, 1, 1]), "of shape"),
        (entry(shape="x"), "of shape"),
        (entry(shape={}), "of shape"),
        (entry(shape=3), "of shape"),
        (entry(shape=[10**4000] * 400), "a whole number has 4001 digits"),
        (entry(shape=[1.5]), "of shape"),
        (b'{"w": {"dtype": "F64", "shape": [Infinity]}}', "Infinity is not a number"),
        (entry(shape=[2**29]), "of shape"),
        (entry(shape=[2**13, 2**13]), "at most 268435456 are read"),
        (b'{"w": 1, "w": 2}', "has the name 'w' twice"),
        (b'{"w": 1' + b"0" * 400 + b"}", "a whole number has 401 digits"),
        (b'{"w": 1e999}', "1e999 is too large for float64"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, "nested in JSON; the limit is 64"),
        (entry(dtype="I64"), "malformed entry"),
        (entry(data_offsets=[0]), "malformed entry"),
        (entry(data_offsets=[0, 8.0]), "no isotone model has such an array"),
        (b'{"w": {"dtype": "F64", "shape": [1]}}', "malformed entry"),
        (json.dumps({str(i): 0 for i in range(2000)}).encode(), "has 2000 arrays; at most 1024"),
        (b"{}", "no isotone metadata"),
        (b'{"__metadata__": {"isotone": "{}"}}', "no format version"),
        (b'{"__metadata__": {"isotone": "{\\"format\\": true}"}}', "no format version"),
        (b'{"__metadata__": {"isotone": "{\\"format\\": NaN}"}}', "NaN is not a number"),
    ],
)
def test_strange_headers_are_refused(path: Path, header: bytes, message: str) -> None:
    raw(path, header)
    with pytest.raises(ValueError, match=message):
        load(path)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([0, 8], [0, 8]),
        ([8, 16], [0, 16]),
        ([0, 16], [8, 16]),
        ([8, 16], [16, 24]),
        ([-8, 0], [0, 8]),
    ],
)
def test_arrays_that_do_not_follow_one_another_are_refused(
    path: Path, first: list[int], second: list[int]
) -> None:
    entries = {
        name: {"dtype": "F64", "shape": [1], "data_offsets": offsets}
        for name, offsets in (("v", first), ("w", second))
    }
    raw(path, json.dumps(entries).encode(), bytes(16))
    with pytest.raises(ValueError, match="is not where the one before it ends"):
        load(path)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_file_is_what_safetensors_writes_and_reads(path: Path, precision: Any) -> None:
    small(precision=precision, provenance={"né": "ü"}).save(path)
    arrays = safetensors.numpy.load_file(path)
    _, ours = content_of(path)
    assert {name: array.tobytes() for name, array in arrays.items()} == {
        name: array.tobytes() for name, array in ours.items()
    }
    with safetensors.safe_open(path, "numpy") as file:
        metadata = file.metadata()
    assert safetensors.numpy.save(arrays, metadata) == path.read_bytes()


def test_numbers_that_are_not_aligned_are_read(path: Path) -> None:
    small().save(path)
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    raw(path, data[8 : 8 + length] + b" ", data[8 + length :])
    assert load(path).fingerprint == small().fingerprint


def test_a_bloated_header_is_refused_in_little_memory(path: Path) -> None:
    length = 200 * 2**20
    with path.open("wb") as file:
        file.write(struct.pack("<Q", length))
        file.truncate(8 + length)
    tracemalloc.start()
    with pytest.raises(ValueError, match=f"header of {length} bytes"):
        load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_are_refused(path: Path, value: float) -> None:
    def spoil(arrays: Any) -> Any:
        return {name: np.full_like(array, value) for name, array in arrays.items()}

    rewrite(path, lambda content: None, spoil)
    with pytest.raises(ValueError, match="a weight or bias is NaN or infinite"):
        load(path)


_POINTWISE = {"kind": "pointwise", "name": "leaky_relu"}
_MEMBERS = {"kind": "members", "members": [[]]}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("features", ["a"], "does not describe a network"),
        ("features", ["a", "a", "a"], "two (columns|features) are called|repeated names"),
        ("lipschitz", [-1, 1, 1], "must be positive"),
        ("monotonic_cst", [[0.5, 0, 0]], "`monotonic_cst=.* must hold -1"),
        ("monotonic_cst", [[1, 0]], "has shape"),
        ("precision", "float16", "`precision='float16'` is unknown"),
        ("grid", 0.3, "must be a power of two"),
        ("grid", 2.0**-60, "at most"),
        ("clip", 0, "must be between"),
        ("steps", [{"kind": "pickle"}], "kind 'pickle' is unknown"),
        ("steps", [], "no step uses the array"),
        ("steps", [{"kind": "sort", "group_size": 1}] * 2000, "2000 steps are in the network"),
        ("steps", [{"kind": "sort", "group_size": 10**299}], "units are sorted together"),
        ("steps", [{"kind": "sort", "group_size": 1.5}], "must be a whole number"),
        ("steps", [{"kind": "sort", "group_size": True}], "must be a whole number"),
        ("steps", [{"kind": "sort", "group_size": 0}], "must be a whole number"),
        ("steps", [_POINTWISE | {"negative_slope": "0.5"}], "a list of numbers was expected"),
        ("steps", [_POINTWISE | {"negative_slope": True}], "a list of numbers was expected"),
        ("steps", [_MEMBERS | {"weights": ["1.0"]}], "a list of numbers was expected"),
        ("clip", 10**299, "must be between"),
        ("steps", {}, "a list was expected; got {}"),
        ("steps", [_MEMBERS | {"members": {}}], "a list was expected; got {}"),
        ("steps", [_MEMBERS | {"members": [{}], "weights": [1.0]}], "a list was expected; got {}"),
        ("monotonic_cst", {}, "a list was expected; got {}"),
        ("joint_cst", {}, "a list was expected; got {}"),
        ("features", "abc", "names must be a list of text"),
        ("features", ["a", ["x"], None], "names must be a list of text"),
        ("lipschitz", [True, 1, 1], "a list of numbers was expected"),
        ("clip", True, "a list of numbers was expected"),
        ("steps", "dense", "does not describe a network"),
        ("unknown", 1, "does not describe a network"),
        ("scaling", {}, "lacks 'log'"),
        ("classes", ["only one"], "the network's outputs are values"),
        ("classes", ["twice", "twice"], "two (columns|features) are called|repeated names"),
        ("certificate", "trust me", "must be a dictionary"),
        ("provenance", [1], "must be a dictionary"),
        ("clip", "far", "does not describe a network"),
    ],
)
def test_content_that_is_no_network_is_refused(
    path: Path, key: str, value: Any, message: str
) -> None:
    rewrite(path, lambda content: content.update({key: value}))
    with pytest.raises(ValueError, match=message):
        load(path)


def test_a_file_without_content_is_refused(path: Path) -> None:
    text = json.dumps({"format": 1, "checksum": modelfile.checksum("3", {}), "content": "3"})
    raw(path, json.dumps({"__metadata__": {"isotone": text}}).encode())
    with pytest.raises(ValueError, match="has no content"):
        load(path)


def test_deeply_nested_blends_are_refused(path: Path) -> None:
    def nest(content: Any) -> None:
        content["steps"] = [{"kind": "sort", "group_size": 1}]
        for _ in range(limits.DEPTH.largest + 1):
            blend = {"kind": "blend", "keep": 0.5, "add": 0.5, "steps": content["steps"]}
            content["steps"] = [blend]

    rewrite(path, nest, lambda arrays: {"residual": arrays["residual"]})
    with pytest.raises(ValueError, match="17 residual blocks or members are nested"):
        load(path)


def test_residual_blocks_of_version_1_score_as_members_do(path: Path) -> None:
    def nest(content: Any) -> None:
        before, *branch, after = content["steps"]
        blend = {"kind": "blend", "keep": 0.5, "add": 0.25, "steps": branch}
        content["steps"] = [before, blend, after]

    def rename(arrays: modelfile.Arrays) -> modelfile.Arrays:
        places = {"0": "0", "2": "1.1", "4": "2", "residual": "residual"}
        heads = {name: name.partition(".")[0] for name in arrays}
        return {
            name.replace(heads[name], places[heads[name]], 1): array
            for name, array in arrays.items()
        }

    rewrite(path, nest, rename)
    frozen = small()
    before, *branch, after = frozen.steps
    steps = (before, residual_block(0.5, 0.25, tuple(branch)), after)
    X = np.random.default_rng(0).normal(size=(100, 3))
    np.testing.assert_array_equal(load(path).score(X), replace(frozen, steps=steps).score(X))


@pytest.mark.parametrize("kind", ["<f8", ">f8", "<f4", ">f4"])
def test_a_file_does_not_depend_on_how_arrays_lie_in_memory(kind: str, path: Path) -> None:
    plain = np.arange(6.0).reshape(2, 3).astype(kind)
    modelfile.write(path, {}, {"a": plain.astype(f"<{kind[1:]}")})
    expected = path.read_bytes()
    for array in (plain, np.asfortranarray(plain), np.repeat(plain, 2, axis=1)[:, ::2]):
        modelfile.write(path, {}, {"a": array})
        assert path.read_bytes() == expected
        assert np.array_equal(content_of(path)[1]["a"], plain)


def test_content_that_says_something_twice_is_refused(path: Path) -> None:
    small().save(path)
    content, arrays = content_of(path)
    text = json.dumps(content)[:-1] + ', "clip": 1.0}'
    meta = {"format": 1, "checksum": modelfile.checksum(text, arrays), "content": text}
    data = safetensors.numpy.save(arrays, metadata={"isotone": json.dumps(meta)})
    path.write_bytes(data)
    with pytest.raises(ValueError, match="an object has the name 'clip' twice"):
        load(path)


def test_a_table_is_not_called_a_damaged_model(path: Path) -> None:
    path.write_text("id,score\n1,0.5\n")
    with pytest.raises(ValueError, match=r"is not a model file: it begins with b'id,score'.*give"):
        load(path)


@pytest.mark.parametrize("kind", ["pipe", "device", "socket"])
def test_what_is_no_regular_file_is_refused_without_waiting(path: Path, kind: str) -> None:
    held: list[object] = []
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        held.append(socket.socket(socket.AF_UNIX))
        held[0].bind(str(path))  # type: ignore[attr-defined]
    else:
        path = Path("/dev/zero")
    for read in (load, export_json.read):
        with pytest.raises(ValueError, match=f"is a {kind}; it must be a regular file: copy it"):
            read(path)
    for connection in held:
        connection.close()  # type: ignore[attr-defined]


def test_a_name_that_many_others_hide_is_refused(path: Path) -> None:
    names = ",".join(f'"a{i}":1' for i in range(150_000))
    header = f'{{{names},"a1":2}}'.encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(ValueError, match="an object has the name 'a1' twice"):
        load(path)


def test_a_directory_is_no_model(path: Path) -> None:
    path.mkdir()
    for read in (load, export_json.read):
        with pytest.raises(IsADirectoryError, match=path.name):
            read(path)


def test_a_file_keeps_its_permissions_and_a_link_stays_a_link(path: Path) -> None:
    small().save(path)
    path.chmod(0o600)
    link = path.with_name("link.isotone")
    link.symlink_to(path)
    small(seed=1).save(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert load(path).fingerprint == small(seed=1).fingerprint


def test_an_array_that_nobody_uses_is_refused(path: Path) -> None:
    rewrite(path, lambda content: None, lambda arrays: arrays | {"extra": np.ones(2)})
    with pytest.raises(ValueError, match="no step uses the array 'extra'"):
        load(path)


def test_a_failing_write_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small().save(path)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        small(seed=1).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_model_that_could_not_be_read_back_is_not_written(path: Path) -> None:
    with pytest.raises(ValueError, match="shorten names and provenance"):
        small(provenance={"text": "x" * limits.HEADER.largest}).save(path)
    nested: dict[str, object] = {}
    for _ in range(100_000):
        nested = {"a": nested}
    with pytest.raises(ValueError, match="`provenance` cannot be saved"):
        small(provenance=nested).save(path)
    nested = {}
    for _ in range(limits.NESTING.largest):
        nested = {"a": nested}
    with pytest.raises(
        ValueError, match=r"could not be read back; .* nested in JSON; the limit is 64"
    ):
        small(provenance=nested).save(path)
    with pytest.raises(ValueError, match="`provenance` cannot be saved"):
        small(provenance={"object": object()}).save(path)
    assert not path.exists()


def test_a_missing_file_is_said_to_be_missing(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(path)


@pytest.mark.parametrize(
    "number",
    ["1e309", "-1E+400", "1" + "0" * 309 + ".0", "9" * 199 + "e110", "1.5e0000308e", "7" * 301],
)
def test_numbers_that_float64_cannot_hold_are_refused(number: str) -> None:
    with pytest.raises(ValueError, match=r"too large for float64|has 301 digits|delimiter"):
        parse_json(f'{{"a": [0.5, {number}]}}')
    with pytest.raises(ValueError, match=r"too large for float64|has 301 digits|Extra data"):
        parse_json(number)


@pytest.mark.parametrize("number", ["1e308", "1e-400", "9" * 199 + "e99", "9" * 300, "1E+0000007"])
def test_numbers_that_it_can_hold_are_read(number: str) -> None:
    assert parse_json(f'{{"e+999": {number}}}') == {"e+999": json.loads(number)}
