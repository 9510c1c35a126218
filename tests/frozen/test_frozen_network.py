"""FrozenNetwork: what it refuses, at which sizes, and what it says of its outputs and numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from isotone import FrozenNetwork, Scaling, limits
from isotone.frozen.steps import Dense, Pointwise, Sort, Step, residual_block
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Number, Ordered
from isotone.inputs.knots import Knots
from networks import PEOPLE, by_hand, copied, mixed, small


def plain(n_features: int, n_outputs: int = 1, *more: Step, **options: Any) -> FrozenNetwork:
    """Of one dense step, and others after it."""
    weight = 1.0 + np.arange(n_features * n_outputs).reshape(n_outputs, n_features)
    zero = np.zeros(weight.shape)
    given: dict[str, Any] = {
        "features": tuple(f"x{i}" for i in range(n_features)),
        "scaling": Scaling.identity(n_features),
        "steps": (Dense(weight, np.zeros(n_outputs)), *more),
        "residual": zero,
        "lipschitz": np.ones(n_features),
        "monotonic_cst": zero.astype(np.int8),
    }
    return FrozenNetwork(**(given | options))


def test_a_network_has_features() -> None:
    empty = {"features": (), "scaling": Scaling.identity(0), "lipschitz": np.ones(0)}
    none = {"residual": np.zeros((0, 0)), "monotonic_cst": np.zeros((0, 0), np.int8)}
    with pytest.raises(ValueError, match="`features` has 0 names; it needs a scaling"):
        replace(plain(1), steps=(Sort(1),), **(empty | none))


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("FEATURES", 3),
        ("OUTPUTS", 4),
        ("SLOPES", 12),
        ("TENSORS", 3),  # weight, bias, residual
        ("BYTES", 8 * (12 + 4 + 12)),
        ("WORK", 12 + 4 // 4),
    ],
)
def test_a_network_is_refused_one_beyond_a_limit(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room in (0, 1):
        limit = replace(getattr(limits, name), largest=size - room)
        with monkeypatch.context() as context:
            context.setattr(limits, name, limit)
            if room == 0:
                plain(3, 4, Sort(1))
            else:
                with pytest.raises(ValueError, match=f"^{size} .* the limit is {size - 1}"):
                    plain(3, 4, Sort(1))


def test_steps_that_are_nested_too_deeply_are_refused() -> None:
    step: Step = Sort(1)
    for _ in range(limits.DEPTH.largest + 1):
        step = residual_block(0.5, 0.5, (step,))
    with pytest.raises(ValueError, match="17 residual blocks or members are nested"):
        plain(1, 1, step)


def test_columns_of_numbers_take_the_names_of_the_features() -> None:
    frozen = plain(2)
    assert frozen.inputs.names == ("x0", "x1")
    assert replace(frozen, features=("a", "b")).inputs.names == ("a", "b")
    assert replace(frozen, inputs=Inputs()).inputs.names == ("x0", "x1")


@pytest.mark.parametrize(
    ("inputs", "features"),
    [
        (Inputs.numbers(["a", "b"]), ("b", "a")),  # turned, in either order
        (Inputs.numbers(["b", "a"]), ("a", "b")),
        (Inputs.numbers(["a", "b", "c"]), ("d", "e")),
        (Inputs.numbers(["a", "b"], [0, 1]), ("d", "e")),
        (Inputs((Number("a"), Category("b", ("u",)))), ("d", "e")),
        (Inputs((Number("a", fill=1.0),)), ("d", "e")),
    ],
)
def test_inputs_that_give_other_features_are_refused(
    inputs: Inputs, features: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match=r"`inputs` give the features .* they must agree"):
        replace(plain(2), inputs=inputs, features=features)


@pytest.mark.parametrize("bad", [0.0, -0.5, -1.0, np.nan, np.inf])
def test_every_lipschitz_constant_is_positive_and_finite(bad: float) -> None:
    with pytest.raises(ValueError, match="`lipschitz` must be positive and finite"):
        replace(plain(2), lipschitz=np.array([1.0, bad]))
    assert replace(plain(2), lipschitz=np.array([5e-324, 1.7e308])).lipschitz[0] > 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_every_residual_is_finite(bad: float) -> None:
    with pytest.raises(ValueError, match="`residual` holds NaN or infinity"):
        replace(plain(2), residual=np.array([[1.0, bad]]))


def test_the_clip_lies_within_its_ends() -> None:
    for clip in (2.0**-64, 2.0**64):
        assert plain(1, clip=clip, grid=None).clip == clip
    for clip in (np.nextafter(2.0**-64, 0), np.nextafter(2.0**64, np.inf), np.nan):
        with pytest.raises(ValueError, match="must be between"):
            plain(1, clip=float(clip), grid=None)


def test_a_grid_divides_the_clip_and_with_knots_one() -> None:
    assert plain(1, clip=6.0, grid=2.0).grid == 2.0
    assert copied(clip=0.5, grid=2.0**-51).grid == 2.0**-51
    with pytest.raises(ValueError, match=r"`clip=3.0` and `grid=2.0` do not fit"):
        plain(1, clip=3.0, grid=2.0)
    with pytest.raises(ValueError, match=r"`clip=0.75` and `grid=0.5` do not fit"):
        copied(clip=0.75, grid=0.5)
    with pytest.raises(ValueError, match=r"`clip=0.5` and `grid=.*` do not fit"):
        copied(clip=0.5, grid=2.0**-52)


@pytest.mark.parametrize(("name", "number"), [("residual", 0.1), ("clip", 0.1)])
def test_float32_holds_all_numbers_of_a_network_of_float32(name: str, number: float) -> None:
    single = (Dense(np.ones((1, 1), "f4"), np.zeros(1, "f4")),)
    value = np.array([[number]]) if name == "residual" else number
    with pytest.raises(ValueError, match=f"`{name}` holds numbers that float32 cannot hold"):
        plain(1, steps=single, precision="float32", grid=None, **{name: value})
    assert plain(1, grid=None, **{name: value}).precision == "float64"


def test_inputs_are_clamped_and_on_the_grid() -> None:
    X = [[-1e308, -6.0], [1e308, 6.0], [-0.75, 0.25], [0.5, -1.5]]
    frozen = plain(2, clip=4.0, grid=1.0)
    assert frozen.snap(X).tolist() == [[-4, -4], [4, 4], [-1, 0], [0, -2]]
    assert replace(frozen, grid=None).snap(X).tolist() == [[-4, -4], [4, 4], *X[2:]]


def test_networks_of_copies_begin_with_dense_steps() -> None:
    with pytest.raises(ValueError, match="a network of copies must begin with dense steps"):
        replace(copied(), steps=(Sort(1), Dense(np.ones((1, 23)), np.ones(1))))
    turned = replace(plain(2), steps=(Sort(2), Dense(np.ones((1, 2)), np.ones(1))))
    assert turned.copies is None


def logits(n: int, classes: Any = None) -> FrozenNetwork:
    return plain(2, n, outputs="logits", classes=classes)


@pytest.mark.parametrize(
    ("frozen", "names", "scores", "about", "of_classes"),
    [
        (plain(2), ["0"], ["score"], ["score"], False),
        (plain(2, 2), ["0", "1"], ["score_0", "score_1"], ["output 0", "output 1"], False),
        (logits(1), ["0"], ["score"], ["probability of class 1"], False),
        (logits(1, ("no", "yes")), ["0"], ["score"], ["probability of yes"], False),
        (
            logits(2),
            ["0", "1"],
            ["score_0", "score_1"],
            ["probability of 0", "probability of 1"],
            True,
        ),
        (
            logits(2, ("no", "yes")),
            ["no", "yes"],
            ["score_no", "score_yes"],
            ["probability of no", "probability of yes"],
            True,
        ),
    ],
)
def test_outputs_are_called_by_class_if_each_is_one(
    frozen: FrozenNetwork, names: Any, scores: Any, about: Any, of_classes: bool
) -> None:
    assert frozen.output_names == names
    assert frozen.names_of("score") == scores
    assert [frozen.about(k) for k in range(frozen.n_outputs)] == about
    assert frozen.of_classes == of_classes


def test_logits_have_a_class_each_and_one_has_two() -> None:
    for n, classes in ((1, ("a",)), (1, ("a", "b", "c")), (3, ("a", "b"))):
        with pytest.raises(ValueError, match=f"{n} logits need {max(n, 2)} class names; got"):
            logits(n, classes)


def test_a_direction_along_copies_is_that_of_all_of_them() -> None:
    frozen = copied(n_outputs=2)  # four copies of x0, one of x1 and of x2, 17 of x3
    signs = np.zeros((2, frozen.n_features), np.int8)
    signs[0, :4], signs[1, 1:4], signs[1, 4], signs[0, 5], signs[1, 6:] = 1, 1, 1, -1, -1
    signs[0, 6:] = [-1, 1] * 8 + [-1]
    counts = frozen.inputs.counts.tolist()
    found = replace(frozen, monotonic_cst=signs).directions
    pieces = np.split(signs, np.cumsum(counts)[:-1], axis=1)
    expected = [[s[k, 0] if np.all(s[k] == s[k, 0]) else 0 for s in pieces] for k in range(2)]
    assert found.tolist() == expected
    assert found.tolist() == [[1, 0, -1, 0], [0, 1, 0, -1]]
    assert not found.flags.writeable


def test_rows_with_what_training_never_saw_are_told_of_where_they_are_scored() -> None:
    frozen = mixed()
    table = PEOPLE | {"city": ["Paris", *PEOPLE["city"][1:]]}
    with pytest.raises(ValueError, match="column 'city' holds 'Paris' in row 0"):
        frozen.score(table)
    with pytest.warns(UserWarning, match="1 of 5 rows contain values never seen") as told:
        scores = frozen.score(table, on_unseen="skip")
    assert [warning.filename for warning in told] == [__file__]
    assert np.isnan(scores).tolist() == [True, False, False, False, False]
    assert np.array_equal(scores[1:], frozen.score(PEOPLE)[1:])


def test_joint_directions_are_checked_and_their_order_changes_nothing() -> None:
    rates = {"x0": 1.0, "x1": 2.0}, {"x1": 2.0, "x0": 1.0}
    first, second = (replace(plain(2), joint_cst=(rate,)) for rate in rates)
    assert first.fingerprint == second.fingerprint != plain(2).fingerprint
    assert replace(plain(2), joint_cst=[{"x0": 1}]).joint_cst == ({"x0": 1.0},)
    with pytest.raises(ValueError, match="a joint direction names 'z'"):
        replace(plain(2), joint_cst=({"z": 1.0},))


GOLDEN = {  # the first digits of fingerprints
    "by hand": "c18f5b8c2756d815",
    "joint": "65773bc6701cdf06",
    "classes": "7ea44b70abcc3170",
    "float32": "6bbfd34f074f3b0b",
    "columns": "9b6b19d473a090b0",
    "knots": "29b447c364575ba6",
    "a sum": "91396704656234d0",
}


def test_fingerprints_are_those_of_earlier_versions() -> None:
    """Whoever wrote one down must find it again."""
    single = (Dense(np.full((1, 1), 0.5, "f4"), np.zeros(1, "f4")),)
    table = Inputs(
        (Number("a", fill=1.5), Category("b", ("u", None), 3), Ordered("c", ("l", "h")))
    )
    knots = Knots.at([[0.0, 1.0, 2.0, 4.0]])
    copies = {"inputs": Inputs.numbers(["a"], [0] * 3), "scaling": knots.scaling}
    networks = {
        "by hand": by_hand(0.5),
        "joint": replace(plain(2), joint_cst=({"x0": 1.0, "x1": 2.0},)),
        "classes": logits(2, ("no", "yes")),
        "float32": plain(1, steps=single, precision="float32", grid=None),
        "columns": plain(6, 1, inputs=table, features=table.features),
        "knots": plain(3, 2, features=("a[0]", "a[1]", "a[2]"), **copies),
        "a sum": plain(2, 2, residual_block(0.5, 0.25, (Sort(2), Pointwise("leaky_relu", 0.1)))),
    }
    assert {name: frozen.fingerprint[:16] for name, frozen in networks.items()} == GOLDEN


def test_the_parts_of_a_network_say_how_many_numbers_it_has() -> None:
    assert small().n_parameters == 3 * 8 + 8 + 8 * 8 + 8 + 8 + 1
