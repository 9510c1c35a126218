"""`interaction_cst`: columns of no common group do not interact, whatever they hold.

For raw columns a and b, f(a, b) - f(a', b) - f(a, b') + f(a', b') is zero. The certificate bounds
the error of a computed score by E, so that this sum of four is at most 4E, and three additions.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

import isotone
from isotone.certificate.certify import Certificate
from people import classifier, people, regressor

COLUMNS = ["age", "city", "income", "rent"]
GROUPS = [["age", "city"], ["city", "income"]]  # and rent alone
TOGETHER = {("age", "city"), ("city", "income")}


def flats(n: int = 300, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, a text and missing values; every two columns interact."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "city": rng.choice(["Oslo", "Paris", "Rome"], n),
            "income": np.exp(10 + rng.normal(size=n)),
            "rent": rng.uniform(size=n),
        }
    )
    age, city, z = X["age"] / 50, X["city"] == "Rome", np.log(X["income"]) - 10
    y = age * z + city * (age - z) + X["rent"] * (age + z - city)
    X.loc[rng.random(n) < 0.2, "age"] = np.nan
    X.loc[rng.random(n) < 0.2, "rent"] = np.nan
    return X, y.to_numpy() + 0.1 * rng.normal(size=n)


def mixed_differences(score: Any, X: pd.DataFrame, a: str, b: str) -> np.ndarray:
    """Four scores of every row: with its own a and b, with those of another row, and mixed."""
    other = X.sample(frac=1.0, random_state=1).reset_index(drop=True)
    corners = [
        score(X.assign(**{name: other[name] for name in names})) for names in powerset(a, b)
    ]
    return np.abs(corners[0] - corners[1] - corners[2] + corners[3])


def powerset(a: str, b: str) -> list[list[str]]:
    return [[], [a], [b], [a, b]]


def bound(certificate: Certificate, scores: np.ndarray) -> float:
    """4E, and the rounding of three additions of such scores."""
    return 4 * max(certificate.rounding_errors) + 2.0**-50 * float(np.abs(scores).max())


CASES: list[tuple[Any, dict[str, Any]]] = [
    (regressor, {}),
    (regressor, {"lipschitz": "learned"}),
    (regressor, {"lipschitz": "learned", "knots": 8}),
    (regressor, {"lipschitz": "auto", "max_iter": 12}),  # a mixture
    (regressor, {"monotonic_cst": {"rent": -1, "missing(rent)": -1, "age": 1}}),
    (regressor, {"loss": "quantile", "quantile": 0.9, "hidden_layer_sizes": (8, 24)}),
    (regressor, {"hidden_layer_sizes": ()}),
    (classifier, {}),
    (classifier, {"lipschitz": "learned", "knots": 8, "monotonic_cst": {"income": 1}}),
    (classifier, {"loss": "dynamic_hinge"}),  # by torch
    (classifier, {"classes": 3}),
]


@pytest.mark.parametrize(("make", "options"), CASES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_columns_of_no_common_group_do_not_interact(make: Any, options: dict[str, Any]) -> None:
    X, y = flats()
    options = dict(options)
    if make is classifier:
        edges = np.quantile(y, np.linspace(0, 1, options.pop("classes", 2) + 1)[1:-1])
        y = np.searchsorted(edges, y)
    model = make(interaction_cst=GROUPS, missing="indicator", **({"max_iter": 8} | options))
    model.fit(X, y)
    score, certificate = model.network_.score, isotone.certify(model.network_)
    allowed = bound(certificate, score(X))
    assert allowed < 1e-8
    for a, b in set(combinations(COLUMNS, 2)) - TOGETHER:
        assert mixed_differences(score, X, a, b).max() <= allowed
    linear = options.get("hidden_layer_sizes") == ()
    assert certificate.interactions == (
        tuple((name,) for name in COLUMNS)
        if linear
        else (("age", "city"), ("city", "income"), ("rent",))
    )
    if not linear:
        assert mixed_differences(score, X, "age", "city").max() > 100 * allowed


def test_the_file_proves_it(tmp_path: Any) -> None:
    X, y = flats()
    regressor(interaction_cst=GROUPS, missing="indicator").fit(X, y).save(tmp_path / "m.isotone")
    certificate = isotone.certify(isotone.load(tmp_path / "m.isotone"))
    assert "each of (age, city), (city, income) and (rent):" in certificate.about_interactions


@pytest.mark.parametrize(
    ("given", "groups"),
    [
        (None, (("income", "debt", "age"),)),
        ("no_interactions", (("income",), ("debt",), ("age",))),
        ("pairwise", (("income", "debt"), ("income", "age"), ("debt", "age"))),
        ([{0, 2}], (("income", "age"), ("debt",))),
        ([("age", "income")], (("income", "age"), ("debt",))),
        (np.array([[0, 1], [1, 2]]), (("income", "debt"), ("debt", "age"))),
        ([["debt"], ["age", 1]], (("income",), ("debt", "age"))),
        ([[0, 1, 2], [1]], (("income", "debt", "age"),)),
    ],
)
def test_groups_by_position_by_name_and_by_word(given: Any, groups: Any) -> None:
    X, y = people()
    model = classifier(interaction_cst=given, max_iter=3).fit(X, y)
    assert model.certificate_.interactions == groups
    assert model.get_params()["interaction_cst"] is given


def test_numbers_that_are_names_are_names() -> None:
    X, y = people()
    X = X.set_axis([2, 0, 1], axis=1)
    model = classifier(interaction_cst=[[2, 1]], max_iter=3).fit(X, y)
    assert model.certificate_.interactions == (("2", "1"), ("0",))


@pytest.mark.parametrize(
    ("given", "message"),
    [  # the first four are those of scikit-learn's test_init_parameters_validation
        ([0, 1], r"`interaction_cst=\[0, 1\]` must be 'no_interactions', 'pairwise' or a list"),
        ([{0, 9999}], "`interaction_cst` holds 9999, which is not a column of `X`"),
        ([{-1, 0}], "holds -1, which is not a column .* or positions from 0 to 2.$"),
        ([{0.5}], "`interaction_cst` holds 0.5, which is not a column of `X`"),
        ("none", "`interaction_cst='none'` is unknown; choose 'no_interactions' or 'pairwise'"),
        ([["incom"]], "holds 'incom', which is not a column .* did you mean 'income'"),
        (["income"], "must be 'no_interactions', 'pairwise' or a list of groups"),
        ({0: 1}, r"`interaction_cst={0: 1}` must be 'no_interactions', 'pairwise' or a list"),
        ([{0: 1}], r"`interaction_cst=\[{0: 1}\]` must be .* a list of features"),
        (7, "`interaction_cst=7` must be"),
        (
            [[]],
            r"`interaction_cst=\[\[\]\]` holds a group without features; every .* leave it out",
        ),
        ([[0, 1], []], "holds a group without features"),
    ],
)
def test_what_is_no_group_is_explained(given: Any, message: str) -> None:
    X, y = people()
    with pytest.raises(ValueError, match=message):
        classifier(interaction_cst=given).fit(X, y)


def test_names_need_a_frame() -> None:
    X, y = people()
    with pytest.raises(ValueError, match="`interaction_cst` names the column 'debt' but `X` is"):
        classifier(interaction_cst=[["debt"]]).fit(X.to_numpy(), y)


def test_what_would_mix_groups_is_refused() -> None:
    X, y = people()
    with pytest.raises(ValueError, match=r"3 groups of columns, whose units must not .* 'auto'"):
        classifier(interaction_cst="no_interactions", group_size=None).fit(X, y)
    with pytest.raises(ValueError, match=r"2 quantiles that never cross are sorted, .* one level"):
        regressor(interaction_cst=[[0]], loss="quantile", quantile=(0.1, 0.9)).fit(X, y * 1.0)
    wide = np.random.default_rng(0).normal(size=(50, 30))
    with pytest.raises(ValueError, match=r"has 435 groups .* a layer of 870 units; at most 512"):
        classifier(interaction_cst="pairwise").fit(wide, wide[:, 0] > 0)


def test_joint_directions_are_of_columns_in_the_same_groups() -> None:
    X, y = people()
    joint = [{"debt": -1, "age": 1}]
    model = classifier(joint_cst=joint, interaction_cst=[["age", "debt"]], max_iter=5).fit(X, y)
    assert model.certificate_.interactions == (("income",), ("debt", "age"))
    assert model.certificate_.holds
    with pytest.raises(ValueError, match=r"joins the columns age, debt, but .* only some of them"):
        classifier(joint_cst=joint, interaction_cst="no_interactions").fit(X, y)


@pytest.mark.parametrize(
    ("sizes", "group_size", "shape"),
    [
        ((32, 32), "auto", "3-(2 × 48-48-1)"),
        ((32, 32), 4, "3-(2 × 36-36-1)"),
        ((5,), "auto", "3-(2 × 12-1)"),
        ((24, 48), 8, "3-(2 × 24-48-1)"),
    ],
)
def test_every_group_gets_its_share_of_the_units(sizes: Any, group_size: Any, shape: str) -> None:
    X, y = people()
    model = classifier(
        interaction_cst="no_interactions",
        hidden_layer_sizes=sizes,
        group_size=group_size,
        max_iter=2,
    )
    assert model.fit(X, y).network_.shape == shape


def test_no_interactions_after_scikit_learn() -> None:
    """Its test_interaction_cst_numerically, with E for its tolerance."""
    X = np.random.RandomState(42).uniform(size=(2000, 2))
    y = X[:, 0] + X[:, 1] + 5 * X[:, 0] * X[:, 1]
    free = regressor(hidden_layer_sizes=(32,)).fit(X, y)
    additive = regressor(hidden_layer_sizes=(32,), interaction_cst=[{0}, {1}]).fit(X, y)
    delta = 0.25
    x = X[(1 - delta > X).all(axis=1)]

    def mixed(model: Any) -> np.ndarray:
        moved = [model.predict(x + shift) for shift in ([delta, delta], [0, 0])]
        apart = [model.predict(x + shift) for shift in ([delta, 0], [0, delta])]
        return np.asarray(moved[0] + moved[1] - apart[0] - apart[1])

    assert np.abs(mixed(additive)).max() <= bound(additive.certificate_, y) < 1e-9
    assert np.all(mixed(free) > 0.01)  # the truth is 5 delta² = 0.31


def test_sums_are_learned_as_well_and_products_only_within_a_group() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(1500, 5))
    total = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + np.abs(X[:, 2]) + np.exp(X[:, 3] / 2) + X[:, 4]
    product = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3]
    quick = {
        "max_iter": 40,
        "batch_size": 32,
        "lipschitz": "learned",
        "knots": 16,
        "hidden_layer_sizes": (32, 32),
    }

    def score(cst: Any, y: np.ndarray) -> float:
        model = regressor(interaction_cst=cst, **quick).fit(X[:1000], y[:1000])
        return float(model.score(X[1000:], y[1000:]))

    assert score("no_interactions", total) > score(None, total) - 0.005
    assert score("no_interactions", product) < 0.1
    assert score([[0, 1], [2, 3]], product) > 0.95
