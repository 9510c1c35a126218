"""What a certificate says of interactions follows from the zeros of a file, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from isotone import (
    Inputs,
    Knots,
    LipschitzNetwork,
    MonotonicNetwork,
    Scaling,
    certify,
    cli,
    freeze,
)
from isotone.certificate import interactions
from isotone.certificate.interactions import find_interactions
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import Dense, Members, Pointwise, Sort, Step, rebuild, residual_block
from isotone.inputs.columns import Category, Number
from isotone.report.outcomes import Outcomes
from isotone.report.verdict import to_html

NAMES = ["age", "income", "rent", "debt"]
GROUPS = [[0, 1], [1, 2]]
PROVED = (("age", "income"), ("income", "rent"), ("debt",))


def network(seed: int = 0, **options: Any) -> MonotonicNetwork:
    torch.manual_seed(seed)
    return MonotonicNetwork(
        [4, 12, 12, 1],
        monotonic_cst=[1, 0, 0, -1],
        **({"interaction_cst": GROUPS, "group_size": 4} | options),
    )


def test_groups_are_found_in_the_numbers() -> None:
    for seed in range(5):
        certificate = certify(freeze(network(seed), features=NAMES))
        assert certificate.interactions == PROVED
    assert certificate.about_interactions == (
        "the score is a sum of one function each of (age, income), (income, rent) and (debt): "
        "columns interact only within a group"
    )
    assert certificate.to_dict()["interactions"] == [list(group) for group in PROVED]
    assert certificate.to_dict()["about_interactions"] == certificate.about_interactions
    assert "columns interact only within a group" in certificate._repr_html_()


def test_nothing_is_said_of_a_network_whose_columns_all_interact() -> None:
    certificate = certify(freeze(network(interaction_cst=None), features=NAMES))
    assert certificate.interactions == (tuple(NAMES),)
    assert certificate.about_interactions == ""
    assert "interact" not in certificate._repr_html_()


def test_single_columns_are_said_to_be_so() -> None:
    torch.manual_seed(0)
    additive = LipschitzNetwork(
        [3, 12, 2], group_size=4, interaction_cst="no_interactions", outputs="logits"
    )
    certificate = certify(freeze(additive))
    assert certificate.interactions == (("x0",), ("x1",), ("x2",))
    assert certificate.about_interactions == (
        "every output is a sum of functions of single columns: no two columns interact"
    )


def test_a_long_list_of_groups_is_cut_and_says_how_many_are_left() -> None:
    frozen = freeze(network(), features=NAMES)
    pair = tuple(f"long{i}" for i in range(21))
    groups = (pair, *((f"x{i}", f"y{i}") for i in range(21)))
    said = interactions.describe_interactions(frozen, groups)
    assert "(long0, " in said
    assert "long19, …), " in said
    assert "(x18, y18) and 2 more groups: columns interact only within a group" in said
    whole = interactions.describe_interactions(frozen, groups[1:21])
    assert "(x18, y18) and (x19, y19): columns interact" in whole
    assert "…" not in whole


def test_an_average_has_what_all_its_members_have() -> None:
    one, other = network(0), network(1, interaction_cst=[[0, 1], [2, 3]])
    found = find_interactions(freeze([one, one, one], features=NAMES))
    both = find_interactions(freeze([one, other], features=NAMES))
    assert found == PROVED
    assert both == (("age", "income"), ("income", "rent"), ("rent", "debt"))


def with_weight(frozen: FrozenNetwork, layer: int, row: int, column: int) -> FrozenNetwork:
    """The network with one more weight that is not zero, however small."""
    dense = [step for step in frozen.steps if isinstance(step, Dense)]

    def change(step: Dense) -> Dense:
        weight = step.weight.copy()
        if step is dense[layer]:
            assert weight[row, column] == 0
            weight[row, column] = 5e-324
        return Dense(weight, step.bias)

    return replace(frozen, steps=rebuild(frozen.steps, change, lambda weights: weights))


@pytest.mark.parametrize(
    ("place", "groups"),
    [
        ((0, 0, 3), (("age", "income", "debt"), ("income", "rent"))),
        ((0, 11, 0), (("age", "income"), ("age", "debt"), ("income", "rent"))),
        ((1, 0, 5), (("age", "income", "rent"), ("debt",))),
        ((1, 5, 11), (("age", "income"), ("income", "rent", "debt"))),
    ],
)
def test_one_weight_across_groups_and_they_interact(place: Any, groups: Any) -> None:
    """A note in the file does not help: what it claims about itself is not read."""
    frozen = freeze(network(), features=NAMES)
    changed = with_weight(frozen, *place)
    assert certify(frozen).interactions == PROVED
    assert changed.certificate is not None
    assert changed.certificate["interactions"] == [list(group) for group in PROVED]
    assert certify(changed).interactions == groups


def test_pages_and_commands_quote_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frozen, path = freeze(network(), features=NAMES), tmp_path / "model.isotone"
    frozen.save(path)
    said = "a sum of one function each of (age, income), (income, rent) and (debt)"
    assert f"The score is {said}" in to_html(certify(frozen), Outcomes.of(frozen, None, None))
    for command in ("certify", "show"):
        with pytest.raises(SystemExit) as exit_:
            cli.main([command, str(path)])
        assert exit_.value.code in (0, None)
        assert said in " ".join(capsys.readouterr().out.split())


def plain(steps: tuple[Step, ...], n_outputs: int = 1) -> FrozenNetwork:
    n = len(NAMES)
    return FrozenNetwork(
        features=tuple(NAMES),
        scaling=Scaling.identity(n),
        steps=steps,
        residual=np.zeros((n_outputs, n)),
        lipschitz=np.full(n, 100.0),
        monotonic_cst=np.zeros((n_outputs, n), np.int8),
    )


def dense(*rows: list[float]) -> Dense:
    return Dense(np.array(rows, float), np.zeros(len(rows)))


EYE = dense(*np.eye(4).tolist())
ALL = dense([1.0] * 4)
PAIRS = (("age", "income"), ("rent", "debt"))
SINGLES = tuple((name,) for name in NAMES)
STEPS: list[tuple[tuple[Step, ...], Any]] = [
    ((ALL,), SINGLES),  # linear
    ((EYE, EYE, ALL), SINGLES),  # still linear
    ((Sort(2), ALL), PAIRS),
    ((Pointwise("tanh"), ALL), SINGLES),
    ((Pointwise("tanh"), Pointwise("relu"), EYE, ALL), SINGLES),
    ((ALL, Pointwise("tanh")), (tuple(NAMES),)),
    ((Sort(2), EYE, Sort(4), ALL), (tuple(NAMES),)),
    ((Sort(2), dense([1, 1, 0, 0]), Pointwise("tanh")), (("age", "income"),)),
    ((dense([0, 0, 0, 0]),), ()),  # of nothing
    ((residual_block(0.5, 0.5, [Sort(2)]), ALL), PAIRS),
    ((residual_block(0.5, 0.0, [Sort(2)]), ALL), SINGLES),  # a branch that does not count
    ((residual_block(0.5, 0.5, [Sort(2)]), Sort(4), ALL), (tuple(NAMES),)),
    ((Members((0.5, 0.5), ((Sort(2), ALL), (Pointwise("relu"), ALL))),), PAIRS),
    ((Members((0.0,), ((ALL,),)),), ()),
]


@pytest.mark.parametrize(("steps", "groups"), STEPS)
def test_every_kind_of_step_is_understood(steps: Any, groups: Any) -> None:
    assert find_interactions(plain(steps)) == groups


def select(*units: int) -> Dense:
    """The sum of some units."""
    return dense([float(k in units) for k in range(4)])


EITHER = Members((0.5, 0.5), ((select(0, 1),), (select(1, 2),)))  # of the same terms
BOTH = Members((0.5, 0.5), ((Sort(2),), (Pointwise("tanh"),)))  # of terms of their own


@pytest.mark.parametrize(
    ("steps", "groups"),
    [
        ((EITHER,), SINGLES[:3]),
        ((Pointwise("tanh"), EITHER), SINGLES[:3]),
        ((Sort(2), Members((0.5, 0.5), ((select(0),), (select(1),)))), PAIRS[:1]),
        ((BOTH, select(0)), PAIRS[:1]),
        ((BOTH, select(3)), PAIRS[1:]),
        ((BOTH, select(0, 3)), PAIRS),
        ((Members((0.5, 0.5), ((Pointwise("tanh"),), (EYE,))), select(1)), SINGLES[1:2]),
    ],
)
def test_a_sum_of_members_reads_what_one_of_them_reads(steps: Any, groups: Any) -> None:
    assert find_interactions(plain(steps)) == groups


@pytest.mark.parametrize(("most", "groups"), [(6, PAIRS[:1]), (5, (tuple(NAMES),))])
def test_terms_are_taken_together_once_there_are_more_than_the_most(
    most: int, groups: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two pairs and four single columns."""
    monkeypatch.setattr(interactions, "MOST_TERMS", most)
    assert find_interactions(plain((BOTH, select(0)))) == groups


def test_a_column_counts_if_the_residual_of_one_output_does() -> None:
    none = Dense(np.zeros((2, 4)), np.zeros(2))
    residual = np.zeros((2, 4))
    residual[1, 2] = 1.0
    assert find_interactions(replace(plain((none,), 2), residual=residual)) == SINGLES[2:3]


def test_outputs_that_are_sorted_are_no_sums() -> None:
    both = dense([1, 1, 0, 0], [0, 0, 1, 1])
    assert find_interactions(plain((both,), 2)) == SINGLES
    assert find_interactions(plain((both, Sort(2)), 2)) == (tuple(NAMES),)


def test_copies_categories_and_indicators_are_of_their_column() -> None:
    columns = (Number("age", fill=3.0), Category("city", ("Oslo", "Rome")), Number("debt"))
    inputs = Inputs(columns)  # age, city=Oslo, city=Rome, debt, missing(age)
    knots = Knots.fit(np.random.default_rng(0).normal(size=(50, 5)), [3, 1, 1, 2, 1])
    owner = np.array(inputs.owners)[knots.columns]
    groups = [np.flatnonzero(np.isin(owner, group)).tolist() for group in ([0], [1, 2])]
    torch.manual_seed(0)
    made = MonotonicNetwork(
        [len(owner), 16, 1], monotonic_cst=owner == 0, group_size=4, interaction_cst=groups
    )
    frozen = freeze(made, inputs=inputs, knots=knots)
    assert find_interactions(frozen) == (("age",), ("city", "debt"))


def test_too_many_terms_are_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = freeze(network(interaction_cst="no_interactions", group_size=2), features=NAMES)
    assert find_interactions(frozen) == SINGLES
    with monkeypatch.context() as few:
        few.setattr(interactions, "MOST_TERMS", 3)
        assert find_interactions(frozen) == (tuple(NAMES),)
    monkeypatch.setattr(interactions, "_MOST_WORK", 100)
    assert find_interactions(frozen) == (tuple(NAMES),)
