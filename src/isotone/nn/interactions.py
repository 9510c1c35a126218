r"""Interactions: which features a network may combine, as masks of its weights.

With groups of features :math:`G_1, \ldots, G_K`, which may overlap, a network is a sum

.. math:: g(x) = \sum_k g_k(x_i : i \in G_k).

Every hidden unit belongs to one group: the first layer reads the features of its group only, the
others units of the same group, sorts stay within a group, and only the last layer adds groups.
The masks are part of the layers, so that what is trained and frozen has those zeros, from which
`isotone.certify` proves the sum again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

import torch
from torch import Tensor

from isotone.checks import is_count

Groups = tuple[tuple[int, ...], ...]
Interactions = Sequence[Iterable[Any]] | Literal["pairwise", "no_interactions"] | None


def check_groups(value: Interactions, n_features: int) -> Groups:
    """Groups of positions, as scikit-learn reads `interaction_cst`; one of all features for None.

    Features that are in no group form one more.

    Examples
    --------
    >>> check_groups([(1, 0), [5, 1]], n_features=6)
    ((0, 1), (1, 5), (2, 3, 4))
    >>> check_groups("no_interactions", n_features=3)
    ((0,), (1,), (2,))
    """
    every = range(n_features)
    if value is None:
        return (tuple(every),)
    if isinstance(value, str):
        return _named_groups(value, n_features)
    groups = [_check_group(group, n_features) for group in list_groups(value)]
    rest = tuple(sorted(set(every) - {i for group in groups for i in group}))
    return tuple(group for group in (*groups, rest) if group)


def list_groups(value: Any) -> list[list[Any]]:
    """The features of every group, as they were given; none of the groups is empty."""
    found = list(value) if _is_list(value) else [value]
    if not all(map(_is_list, found)):
        raise ValueError(
            f"`interaction_cst={value!r:.100}` must be 'no_interactions', 'pairwise' or a list of "
            "groups, each of them a list of features; give [[0, 1], [2]], for example"
        )
    groups = [list(group) for group in found]
    if [] in groups:
        raise ValueError(
            f"`interaction_cst={value!r:.100}` holds a group without features; every group needs "
            "at least one: leave it out, or give None if all features may interact"
        )
    return groups


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _named_groups(value: str, n_features: int) -> Groups:
    if value == "no_interactions" or (value == "pairwise" and n_features == 1):
        return tuple((i,) for i in range(n_features))
    if value == "pairwise":
        return tuple(combinations(range(n_features), 2))
    raise ValueError(
        f"`interaction_cst={value!r}` is unknown; choose 'no_interactions' or 'pairwise', or give "
        "groups of features, such as [[0, 1], [2]]"
    )


def _check_group(members: list[Any], n_features: int) -> tuple[int, ...]:
    wrong = [i for i in members if not is_count(i, least=0) or i >= n_features]
    if wrong:
        raise ValueError(
            f"`interaction_cst` names the feature {wrong[0]!r} in {members!r:.100}; positions are "
            f"whole numbers from 0 to {n_features - 1}: correct it"
        )
    return tuple(sorted({int(i) for i in members}))


def simplify(groups: Groups) -> Groups:
    """The groups without those that lie within another, which add nothing to a sum.

    >>> simplify(((0, 1), (1,), (2,), (1, 0)))
    ((0, 1), (2,))
    """
    distinct = list(dict.fromkeys(tuple(sorted(set(group))) for group in groups))
    return tuple(a for a in distinct if not any(set(a) < set(b) for b in distinct))


def make_masks(
    groups: Groups, widths: Sequence[int], group_size: int | None
) -> list[Tensor | None]:
    """For every layer the weights that it may have, (n_out, n_in); None for all of them.

    Sorts of `group_size` units are dealt to the groups as evenly as possible.

    Parameters
    ----------
    widths : of the features, the hidden layers and the outputs
    """
    if len(groups) == 1:
        return [None] * (len(widths) - 1)
    reads = torch.zeros(len(groups), widths[0], dtype=torch.bool)
    for k, group in enumerate(groups):
        reads[k, list(group)] = True
    masks: list[Tensor | None] = []
    for width in widths[1:-1]:
        owners = _deal(width, group_size, len(groups))
        masks.append(reads[owners])
        reads = torch.arange(len(groups))[:, None] == owners
    return [*masks, None]


def _deal(width: int, group_size: int | None, n_groups: int) -> Tensor:
    """The group that every unit of a layer belongs to."""
    size = group_size or width
    n_sorts = width // size
    if n_sorts < n_groups:
        sorts = "one sort" if n_sorts == 1 else f"{n_sorts} sorts"
        raise ValueError(
            f"a layer of {width} units has {sorts} of {size} units but there are {n_groups} "
            "groups of features, and no sort may mix two of them; make it at least "
            f"{n_groups * (group_size or 2)} wide with `group_size={group_size or 2}`, or choose "
            "a smaller `group_size`"
        )
    more, each = n_sorts % n_groups, n_sorts // n_groups
    counts = torch.tensor([each + (k < more) for k in range(n_groups)])
    return torch.repeat_interleave(torch.arange(n_groups), counts * size)
