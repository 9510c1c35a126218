"""Rare and new categories have one place of the model, which is part of its file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotone
from isotone import Category, FrozenNetwork, Inputs, Number, Ordered, certify
from isotone.frozen import modelfile
from isotone.frozen.engine import Engine
from isotone.inputs.columns import from_dict, to_dict
from networks import content_of, small

CITY = Category("city", ("Oslo", "Rome", None), pooled=12)
ZONE = Category("zone", ("1", "2"), pooled=1)
INPUTS = Inputs((Number("age", fill=35.0), CITY, ZONE))
COLUMNS: dict[str, list[Any]] = {
    "age": [31.0, None, 2.5, 40.0],
    "zone": ["1", " 2 ", "3", "no zone"],
    "city": ["Rome", "Bonn", None, "nowhere"],
}
FEATURES = [
    [31, 0, 1, 0, 0, 1, 0, 0, 0],
    [35, 0, 0, 0, 1, 0, 1, 0, 1],
    [2.5, 0, 0, 1, 0, 0, 0, 1, 0],
    [40, 0, 0, 0, 1, 0, 0, 1, 0],
]


def model(inputs: Inputs = INPUTS, directions: dict[str, int] | None = None) -> FrozenNetwork:
    signs = tuple((directions or {}).get(name, 0) for name in inputs.features)
    return replace(small(signs), features=inputs.features, inputs=inputs)


def test_what_has_no_name_has_the_last_place_of_its_column() -> None:
    names = "age", "city=Oslo", "city=Rome", "missing(city)", "other(city)"
    assert INPUTS.encoded == (*names, "zone=1", "zone=2", "other(zone)", "missing(age)")
    np.testing.assert_array_equal(INPUTS.encode(COLUMNS), FEATURES)
    np.testing.assert_array_equal(model().score(COLUMNS), model().score_features(FEATURES))


def test_rare_and_new_categories_have_one_score_without_a_policy() -> None:
    rows = {"age": [1.0] * 4, "city": ["Bonn", "Paris", " x ", "Rome"], "zone": ["1"] * 4}
    for policy in ("error", "missing", "skip", -1.0):
        engine = Engine(model(), on_unseen=policy)  # type: ignore[arg-type]
        scores = engine(rows)
        assert scores[0] == scores[1] == scores[2] != scores[3]
        assert (engine.n_unseen, engine.n_pooled) == (0, 3)


def test_rows_are_counted_once_whatever_is_pooled_in_them() -> None:
    engine = Engine(model())
    engine(COLUMNS)
    engine(COLUMNS)
    assert engine.n_pooled == 6
    assert engine.n_unseen == 0


def test_a_missing_value_is_never_pooled() -> None:
    rows = {"age": [1.0], "city": ["Rome"], "zone": [None]}
    with pytest.raises(ValueError, match=r"'zone' is missing in row 0.*has not learned"):
        model().score(rows)
    engine = Engine(model(), on_unseen="missing")
    scores = engine(rows)
    assert (engine.n_unseen, engine.n_pooled) == (1, 0)
    none = np.array([[1.0, 0, 1, 0, 0, 0, 0, 0, 0]])  # no feature of zone is 1
    np.testing.assert_array_equal(scores, model().score_features(none))


def test_a_column_may_pool_all_of_its_categories() -> None:
    inputs = Inputs((Number("age"), Category("id", (), pooled=3)))
    assert inputs.encoded == ("age", "other(id)")
    scores = model(inputs).score({"age": [1.0, 1.0], "id": ["a", "b"]})
    assert scores[0] == scores[1]
    with pytest.raises(ValueError, match="'id' is missing in row 0"):
        model(inputs).score({"age": [1.0], "id": [""]})


def test_the_file_alone_pools(tmp_path: Path) -> None:
    model().save(tmp_path / "m.isotone")
    loaded = isotone.load(tmp_path / "m.isotone")
    assert loaded.inputs == INPUTS
    assert loaded.fingerprint == model().fingerprint
    np.testing.assert_array_equal(loaded.score(COLUMNS), model().score(COLUMNS))
    other = Inputs((INPUTS.columns[0], replace(CITY, pooled=13), ZONE))
    assert model(other).fingerprint != model().fingerprint


def test_a_column_that_pools_nothing_is_written_as_ever() -> None:
    column = Category("city", ("Oslo", "Rome"))
    assert to_dict(column) == {"kind": "category", "name": "city", "categories": ["Oslo", "Rome"]}
    for each in (column, CITY, ZONE):
        assert from_dict(json.loads(json.dumps(to_dict(each)))) == each


@pytest.mark.parametrize("pooled", [None, True, "3", -1, 0.5, 1e300, 2**60, [2], {"n": 1}])
def test_a_pool_that_is_no_count_is_refused(pooled: Any) -> None:
    written = {"kind": "category", "name": "city", "categories": ["a"], "pooled": pooled}
    with pytest.raises(ValueError, match=r"`pooled` of column 'city' is .* whole number.*give 0"):
        from_dict(written)


@pytest.mark.parametrize("kind", ["number", "ordered"])
def test_only_categories_without_an_order_are_pooled(kind: str) -> None:
    written = {"kind": kind, "name": "x", "categories": ["a", "b"], "pooled": 2}
    if kind == "number":
        del written["categories"]
    with pytest.raises(ValueError, match=r"an input column is described by .*'pooled'"):
        from_dict(written)
    assert not hasattr(Ordered("x", ("a", "b")), "pooled")


def _altered(path: Path, change: Any) -> Path:
    """A file with another text, and the checksum of that."""
    content, arrays = content_of(path)
    change(content["inputs"]["columns"][1])
    modelfile.write(path, content, arrays)
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pooled": "12"}, "`pooled` of column 'city' is '12'; it must be a whole number"),
        ({"pooled": 0}, "features"),  # the network has a place that the inputs do not have
        ({"categories": ["Oslo", "Rome", "Bonn", None]}, "features"),
        ({"categories": []}, "features"),
        ({"categories": None}, "`categories` must be a list"),
        ({"other": 1}, "an input column is described by .*'other'"),
    ],
)
def test_crafted_files_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    model().save(tmp_path / "m.isotone")
    path = _altered(tmp_path / "m.isotone", lambda column: column.update(change))
    with pytest.raises(ValueError, match=f"does not describe a network: .*{message}"):
        isotone.load(path)


def test_a_pool_for_which_the_network_has_no_place_is_refused(tmp_path: Path) -> None:
    plain = Inputs((Number("age"), Category("city", ("Oslo", "Rome"))))
    model(plain).save(tmp_path / "m.isotone")
    path = _altered(tmp_path / "m.isotone", lambda column: column.update(pooled=3))
    with pytest.raises(ValueError, match=r"does not describe a network: .*other\(city\)"):
        isotone.load(path)


def test_a_name_that_means_two_features_is_refused() -> None:
    with pytest.raises(ValueError, match=r"two features are called 'other\(city\)'"):
        Inputs((CITY, Number("other(city)")))
    Inputs((Category("city", ("other", "Rome"), pooled=2),))  # a category may be called other


def test_words_say_how_many_are_pooled() -> None:
    assert CITY.describe() == "category: Oslo, Rome, missing, 12 others pooled"
    assert ZONE.describe() == "category: 1, 2, 1 other pooled"
    assert Category("id", (), pooled=300).describe() == "category: 300 others pooled"
    many = Category("c", tuple("abcdefghijk"), pooled=2).describe()
    assert many == "category: a, b, c, d, e, f, g, h, … (11 in all), 2 others pooled"


def test_missing_is_compared_with_the_pool_as_well() -> None:
    """A missing city scores no higher than any, also one that training never saw."""
    inputs = Inputs((CITY,))
    frozen = model(inputs, {"missing(city)": -1})
    (verdict,) = certify(frozen).missing
    gaps = frozen.score({"city": [None, "new", "Oslo", "Rome"]})
    assert verdict.least <= (gaps[1:] - gaps[0]).min() + verdict.needed
    without = model(Inputs((replace(CITY, pooled=0),)), {"missing(city)": -1})
    assert len(certify(without).missing) == 1
