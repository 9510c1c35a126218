"""Groups of features: networks are sums of functions of them, however they are trained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from isotone import Ensemble, LipschitzNetwork, MonotonicNetwork, Recipe, freeze
from isotone.losses import SquaredError
from isotone.nn.interactions import check_groups, make_masks, simplify
from isotone.nn.layers import LipschitzLinear

GROUPS = [[0, 1], [1, 2]]  # and 3 alone
APART = [(0, 2), (0, 3), (1, 3), (2, 3)]


@pytest.mark.parametrize(
    ("value", "n_features", "groups"),
    [  # those of scikit-learn's test_check_interaction_cst, and more
        (None, 931, [range(931)]),
        ([{0, 1}], 2, [{0, 1}]),
        ("pairwise", 2, [{0, 1}]),
        ("pairwise", 4, [{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}]),
        ("pairwise", 1, [{0}]),
        ("no_interactions", 2, [{0}, {1}]),
        ("no_interactions", 4, [{0}, {1}, {2}, {3}]),
        ([(1, 0), [5, 1]], 6, [{0, 1}, {1, 5}, {2, 3, 4}]),
        ([], 3, [{0, 1, 2}]),
        ([(np.int64(2),)], 3, [{2}, {0, 1}]),
    ],
)
def test_groups_are_those_of_scikit_learn(value: Any, n_features: int, groups: Any) -> None:
    assert check_groups(value, n_features) == tuple(tuple(sorted(group)) for group in groups)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([0, 1], "must be 'no_interactions', 'pairwise' or a list of groups"),
        (3, "must be 'no_interactions', 'pairwise' or a list of groups"),
        (["ab"], "must be 'no_interactions', 'pairwise' or a list of groups"),
        ("none", "`interaction_cst='none'` is unknown; choose 'no_interactions'"),
        ([{0, 9999}], "names the feature 9999 .* from 0 to 3"),
        ([{-1, 0}], "names the feature -1 .* from 0 to 3"),
        ([{0.5}], "names the feature 0.5 .* from 0 to 3"),
        ([[True, 2]], "names the feature True"),
        ([[], [2]], "holds a group without features; every group needs at least one"),
    ],
)
def test_what_is_no_group_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_groups(value, 4)


def test_groups_within_others_add_nothing() -> None:
    assert simplify(((0, 1, 2), (1, 2), (3,), (2, 1, 0))) == ((0, 1, 2), (3,))


def test_sorts_are_dealt_evenly_and_layers_are_blocks() -> None:
    first, second, last = make_masks(((0, 1), (2,)), [3, 10, 6, 1], group_size=2)
    assert first is not None
    assert second is not None
    assert last is None
    assert first.int().tolist() == 6 * [[1, 1, 0]] + 4 * [[0, 0, 1]]
    assert second.int().tolist() == 4 * [6 * [1] + 4 * [0]] + 2 * [6 * [0] + 4 * [1]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group_size": 4}, "8 units has 2 sorts of 4 units but there are 3 groups .* 12 wide"),
        ({}, "8 units has one sort of 8 units but there are 3 groups .* 6 wide .*`group_size=2`"),
    ],
)
def test_a_layer_too_narrow_for_its_groups_is_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LipschitzNetwork([4, 8, 1], interaction_cst=GROUPS, **options)


def test_modules_have_masks_of_their_own() -> None:
    with pytest.raises(ValueError, match="`interaction_cst` is for a network that is given by"):
        LipschitzNetwork([LipschitzLinear(2, 1)], interaction_cst=[[0], [1]])
    with pytest.raises(ValueError, match=r"`mask` has shape \(2, 3\); .* needs \(3, 2\)"):
        LipschitzLinear(2, 3, mask=torch.ones(2, 3))


def member(seed: int, **options: Any) -> MonotonicNetwork:
    torch.manual_seed(seed)
    return MonotonicNetwork(
        [4, 12, 12, options.pop("n_outputs", 1)],
        monotonic_cst=[1, 0, -1, 0],
        group_size=4,
        interaction_cst=options.pop("interaction_cst", GROUPS),
        **options,
    )


def mixed_differences(score: Any, a: int, b: int, seed: int = 0) -> Any:
    """f(a, b) - f(a', b) - f(a, b') + f(a', b') for random rows of four features."""
    rng = np.random.default_rng(seed)
    x, other = rng.normal(size=(2, 200, 4)) * 2
    corners = []
    for columns in ([], [a], [b], [a, b]):
        corner = x.copy()
        corner[:, columns] = other[:, columns]
        corners.append(score(corner))
    return corners[0] - corners[1] - corners[2] + corners[3]


OPTIONS: list[dict[str, Any]] = [
    {},
    {"chain": "inf"},
    {"n_outputs": 3, "outputs": "logits"},
    {"norm": "matrix"},
    {"norm": "rescaled-matrix", "apply": "project"},
    {"apply": "project"},
    {"lipschitz": "learned", "init": "torch"},
    {"init": "permutation"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_columns_of_no_common_group_do_not_interact_after_any_training(options: Any) -> None:
    if options.get("n_outputs"):
        torch.manual_seed(0)
        network = LipschitzNetwork(
            [4, 12, 12, 3], group_size=4, interaction_cst=GROUPS, outputs="logits"
        )
    else:
        network = member(0, **options)
    network.double()
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.02, weight_decay=0.1)
    x = torch.randn(256, 4, dtype=torch.float64)
    with torch.no_grad():
        for layer in network.layers:
            if isinstance(layer, LipschitzLinear):
                layer.weight.add_(0.1 * torch.randn_like(layer.weight))  # also outside of masks
    for _ in range(30):
        optimizer.zero_grad()
        ((network(x) - (x[:, :1] * x[:, 1:2] + x[:, 2:3] ** 2)) ** 2).mean().backward()
        optimizer.step()
    frozen = freeze(network)
    # E bounds the error of a score; the four of a difference are off by 4E, and its own rounding
    # is far below
    for a, b in APART:
        assert np.abs(mixed_differences(frozen.score, a, b)).max() <= 4e-12
    assert np.abs(mixed_differences(frozen.score, 0, 1)).max() > 1e-3


def test_every_unit_starts_with_slope_and_units_of_one_group_point_apart() -> None:
    for chain in ("one", "inf"):
        first = member(0, chain=chain).layers[0]
        assert isinstance(first, LipschitzLinear)
        weight, mask = first.normalized().detach(), first.mask
        assert mask is not None
        assert not weight[~mask].any()
        assert torch.all(weight[mask] != 0)
    orthogonal = member(0).layers[0].normalized().detach()[:4, :2]
    directions = orthogonal / orthogonal.norm(dim=0)
    assert torch.allclose(directions.T @ directions, torch.eye(2), atol=1e-5)


@pytest.mark.parametrize("backend", ["torch", "fused"])
def test_members_of_an_ensemble_keep_their_groups(backend: Any) -> None:
    ensemble = Ensemble([member(seed) for seed in range(3)])
    x = np.random.default_rng(0).normal(size=(300, 4))
    ensemble.train(x, x[:, 0] * x[:, 3], SquaredError(), Recipe(epochs=3), backend=backend)
    frozen = freeze(ensemble.networks)
    for a, b in APART:
        assert np.abs(mixed_differences(frozen.score, a, b)).max() <= 4e-12


def test_an_ensemble_has_one_set_of_groups() -> None:
    with pytest.raises(ValueError, match="network 1 differs from the first in its layers, masks"):
        Ensemble([member(0), member(1, interaction_cst=[[0, 2], [1, 3]])])


def test_backends_learn_the_same_groups() -> None:
    x = np.random.default_rng(0).normal(size=(300, 4))
    scores = []
    for backend in ("torch", "fused"):
        ensemble = Ensemble([member(seed) for seed in range(2)])
        recipe = Recipe(epochs=4, batch_size=32)
        ensemble.train(x, x[:, 0] * x[:, 1], SquaredError(), recipe, backend=backend)  # type: ignore[arg-type]
        scores.append(freeze(ensemble.networks).score(x))
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-4)
