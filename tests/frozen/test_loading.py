"""Loading: the bytes of a file up to its limits, and content of this format and the one before."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotone import FrozenNetwork, Scaling, certify, limits, load
from isotone.frozen import modelfile
from isotone.frozen.modelfile import checksum
from isotone.frozen.steps import Dense, Pointwise, Sort, residual_block
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Number
from networks import by_hand, content_of, small


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.isotone"


def header_of(path: Path) -> tuple[dict[str, Any], bytes]:
    """The header and the numbers of a file."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def put_together(path: Path, header: dict[str, Any], data: bytes) -> None:
    written = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(written)) + written + data)


def refused(path: Path, message: str) -> None:
    with pytest.raises(ValueError, match=rf"model file '.*' {message}"):
        load(path)


class TestBytes:
    def test_the_version_and_the_checksum_stand_in_the_header(self, path: Path) -> None:
        small().save(path)
        meta = json.loads(header_of(path)[0]["__metadata__"]["isotone"])
        assert meta["format"] == 2
        assert meta["checksum"] == checksum(meta["content"], content_of(path)[1])
        assert checksum("", {}) == (
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        )

    def test_a_changed_number_and_a_changed_word_are_noticed(self, path: Path) -> None:
        small().save(path)
        header, data = header_of(path)
        put_together(path, header, data)
        assert load(path).fingerprint == small().fingerprint
        put_together(path, header, bytes([data[0] ^ 1]) + data[1:])
        refused(path, "does not match its checksum")
        text = header["__metadata__"]["isotone"].replace("1024.0", "1024.5")
        put_together(path, header | {"__metadata__": {"isotone": text}}, data)
        refused(path, "does not match its checksum")

    def test_the_checksum_is_over_names_types_shapes_and_numbers(self) -> None:
        x = np.arange(4.0)
        others: list[dict[str, Any]] = [
            *({"b": x}, {"a": x[::-1]}, {"a": x[:, None]}, {"a": x[None]}, {"a": x, "b": x[:0]}),
            {"a": x.astype("f4")},
            {"a": np.frombuffer(x.tobytes(), "f4")},
        ]
        found = {checksum("", arrays) for arrays in ({"a": x}, *others)} | {
            checksum(" ", {"a": x})
        }
        assert len(found) == len(others) + 2

    def test_numbers_are_the_same_however_they_lie_in_memory(self, path: Path) -> None:
        x = np.arange(12.0).reshape(3, 4)
        expected = checksum("", {"a": x})
        spread = np.zeros((3, 8))
        spread[:, ::2] = x
        for same in (x.astype(">f8"), np.asfortranarray(x), spread[:, ::2]):
            assert checksum("", {"a": same}) == expected
            modelfile.write(path, {}, {"a": same})
            assert np.array_equal(content_of(path)[1]["a"], x)

    def test_arrays_may_be_named_in_any_order(self, path: Path) -> None:
        small().save(path)
        header, data = header_of(path)
        put_together(path, dict(reversed(header.items())), data)
        assert load(path).fingerprint == small().fingerprint

    @pytest.mark.parametrize("places", [[0, 16], [4, 8], [8, 16], [0, 4], [-4, 4]])
    def test_an_array_is_exactly_where_its_bytes_are(self, path: Path, places: Any) -> None:
        entry = {"dtype": "F64", "shape": [1], "data_offsets": places}
        put_together(path, {"w": entry}, bytes(8))
        refused(path, "is damaged .the array 'w' is not where the one before it ends")

    @pytest.mark.parametrize("shape", [[], [0], [1, 0], [0, 1], [1, 1, 1], [2, -1], [-1, 2]])
    def test_an_array_has_one_side_or_two_of_at_least_one(self, path: Path, shape: Any) -> None:
        entry = {"dtype": "F64", "shape": shape, "data_offsets": [0, 8]}
        put_together(path, {"w": entry}, bytes(8))
        refused(path, r"declares an array 'w' of shape \[")

    def test_a_side_is_at_most_as_long_as_the_largest_matrix(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "MATRIX", replace(limits.MATRIX, largest=8))
        for shape, message in (
            ([8, 1], "has no isotone metadata"),
            ([1, 8], "has no isotone metadata"),
            ([9, 1], "declares an array"),
            ([1, 9], "declares an array"),
        ):
            n = 8 * max(shape)
            entry = {"dtype": "F64", "shape": shape, "data_offsets": [0, n]}
            put_together(path, {"w": entry}, bytes(n))
            refused(path, message)

    @pytest.mark.parametrize("n", range(8))
    def test_a_file_of_less_than_eight_bytes_has_no_header(self, path: Path, n: int) -> None:
        for byte in (b"\0", b"x"):
            path.write_bytes(byte * n)
            refused(path, "is too short for its header; it was cut off")

    def test_a_header_ends_with_the_file_at_the_latest(self, path: Path) -> None:
        for length, message in (
            (2, "has no isotone metadata"),
            (3, "is too short for its header"),
        ):
            path.write_bytes(struct.pack("<Q", length) + b"{}")
            refused(path, message)

    @pytest.mark.parametrize("name", ["HEADER", "TENSORS", "BYTES"])
    def test_a_file_is_read_and_written_at_a_limit_and_not_beyond(
        self, name: str, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        frozen = small()
        frozen.save(path)
        content, arrays = content_of(path)
        sizes = {
            "HEADER": int.from_bytes(path.read_bytes()[:8], "little"),
            "TENSORS": len(arrays),
            "BYTES": sum(array.nbytes for array in arrays.values()),
        }
        limit = replace(getattr(limits, name), largest=sizes[name])
        monkeypatch.setattr(limits, name, limit)
        modelfile.write(path, content, arrays)
        content_of(path)
        monkeypatch.setattr(limits, name, replace(limit, largest=sizes[name] - 1))
        with pytest.raises(ValueError, match=f"{sizes[name] - 1} are read"):
            content_of(path)
        with pytest.raises(ValueError, match=r"could not be read back; .* the limit is"):
            modelfile.write(path, content, arrays)

    @pytest.mark.parametrize("text", ["[]", "1", "null", '"x"', '{"format": 2.0}', "{}"])
    def test_metadata_without_a_whole_version_is_refused(self, path: Path, text: str) -> None:
        put_together(path, {"__metadata__": {"isotone": text}}, b"")
        refused(path, "has no format version")

    @pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
    def test_what_json_cannot_hold_is_not_written(self, path: Path, number: float) -> None:
        with pytest.raises(ValueError, match=r"`provenance` cannot be saved .*finite numbers"):
            by_hand(0.5, provenance={"loss": number}).save(path)
        assert not path.exists()


class TestContent:
    def test_what_is_for_other_files_is_refused_here(self, path: Path) -> None:
        small().save(path)
        given: dict[str, Any]
        for given in ({"features": ["a", "b", "c"]}, {"monotonic_cst": [1, 0, -1]}, {"clip": 1.0}):
            with pytest.raises(ValueError, match=f"`{min(given)}` is for JSON files of LHCb's"):
                load(path, **given)

    def test_a_large_file_of_json_is_refused_before_it_is_read(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path.write_text("{" + " " * 99)
        monkeypatch.setattr(limits, "SIGMA_NET", replace(limits.SIGMA_NET, largest=99))
        with pytest.raises(ValueError, match="100 bytes are in a file for Allen or HLT2"):
            load(path)

    def test_too_many_steps_are_refused_before_they_are_made(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        small().save(path)
        content, arrays = content_of(path)
        for many in ([None] * 3, [{"kind": "members", "weights": [], "members": [None] * 3}]):
            content["steps"] = many
            modelfile.write(path, content, arrays)
            with monkeypatch.context() as context:
                context.setattr(limits, "STEPS", replace(limits.STEPS, largest=2))
                with pytest.raises(ValueError, match="3 steps are in the network"):
                    load(path)

    def test_a_block_of_the_first_format_is_read(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        branch = (Pointwise("leaky_relu", -0.25), Dense(np.eye(2) / 4, np.ones(2)), Sort(2))
        ends = Dense(np.ones((2, 1)), np.zeros(2)), Dense(np.ones((1, 2)), np.zeros(1))
        frozen = replace(by_hand(0.5), steps=(ends[0], residual_block(0.5, 0.25, branch), ends[1]))
        frozen.save(path)
        content, arrays = content_of(path)
        (inner,) = content["steps"][1]["members"][1:]
        inner[0]["slope"] = inner[0].pop("negative_slope")
        content["steps"][1] = {"kind": "blend", "keep": 0.5, "add": 0.25, "steps": inner}
        old = {name.replace("1.1.1.", "1.1."): array for name, array in arrays.items()}
        del content["inputs"]
        monkeypatch.setattr(modelfile, "FORMAT_VERSION", 1)
        modelfile.write(path, content, old)
        found = load(path)
        assert found.fingerprint == frozen.fingerprint
        assert found.provenance == {"format": 1}

    def test_an_encoding_of_the_first_format_is_read(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        columns = Number("a", fill=1.5), Category("b", ("u", None)), Number("c")
        inputs, n = Inputs(columns), 5
        zero = np.zeros((1, n))
        steps = (Dense(np.ones((1, n)), np.zeros(1)),)
        frozen = FrozenNetwork(
            *(inputs.features, Scaling.identity(n), steps, zero, np.ones(n), zero),
            inputs=inputs,
            provenance={"by": "hand"},
        )
        frozen.save(path)
        content, arrays = content_of(path)
        del content["inputs"]
        content["provenance"]["encoding"] = {
            "columns": ["a", "b", "c"],
            "categories": {"b": ["u", None]},
            "fills": {"a": 1.5},
        }
        monkeypatch.setattr(modelfile, "FORMAT_VERSION", 1)
        modelfile.write(path, content, arrays)
        found = load(path)
        assert found.inputs == inputs
        assert found.fingerprint == frozen.fingerprint
        assert found.provenance == {"by": "hand", "format": 1}


def test_what_is_no_frozen_network_is_named() -> None:
    class Fitted:
        def fit(self) -> None: ...

    for value, advice in ((1, "call isotone.freeze"), (Fitted(), "give the `network_` of a fitt")):
        with pytest.raises(TypeError, match=rf"a FrozenNetwork; got \w+: {advice}"):
            certify(value)  # type: ignore[arg-type]
