"""The rows of the reference protocol, as the public experiment code picks and scales them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from studies.tabular.contest import Table
from studies.tabular.datasets import BLOG_QUANTILE, PARTS, Dataset, blog_dataset, load
from studies.tabular.files import find
from studies.tabular.protocols.clean import split

_COMPAS_SEED = 78712

Rows = tuple[Dataset, Table, Table, Table]


def reference_rows(name: str, seed: int) -> Rows:
    """Data, training and test rows, and the rows that columns are scaled by."""
    if name in _REFERENCE:
        return _REFERENCE[name](seed)
    data = load(name)
    parts = split(data, 0)
    train = parts.train + parts.validation
    return data, train, parts.test, train


def _compas(seed: int) -> Rows:
    """One split for all seeds."""
    data = load("compas")
    order = np.arange(len(data.y))
    np.random.RandomState(_COMPAS_SEED).shuffle(order)
    train, test = (Table(data.X[i], data.y[i]) for i in np.split(order, [int(0.8 * len(order))]))
    return data, train, test, train


def _auto_mpg(seed: int) -> Rows:
    """Permutations on top of each other; scaled by all rows."""
    data = load("auto_mpg")
    order = torch.arange(len(data.y))
    for k in range(seed + 1):
        torch.manual_seed(k)
        order = order[torch.randperm(len(order))]
    parts = np.split(order.numpy(), [int(0.8 * len(order))])
    train, test = (Table(data.X[i], data.y[i]) for i in parts)
    return data, train, test, Table(data.X, data.y)


def _heart(seed: int) -> Rows:
    """The row number is a feature, and test rows are standardized by themselves."""
    parts = [pd.read_csv(find(f"heart_disease/heart_{part}.csv")) for part in PARTS]
    tables = []
    for part in parts:
        X = part.drop(columns="target").to_numpy(dtype=np.float64)
        y = part["target"].to_numpy(dtype=np.float64)
        tables.append(Table((X - X.mean(axis=0)) / X.std(axis=0), y))
    data = load("heart")
    numbered = replace(
        data, features=("row", *data.features), directions=np.insert(data.directions, 0, 0)
    )
    return numbered, tables[0], tables[1], tables[0]


def _blog(seed: int) -> Rows:
    """Without the first row of every file; targets in 8 bits; filtered and scaled by all rows."""
    train, test = (
        pd.read_csv(find(f"blog_feedback/blogData_{part}.csv.gz"), header=None).to_numpy()
        for part in PARTS
    )
    first = pd.read_csv(find("blog_feedback/blogData_test_index.csv"))["first_row"]
    parts = [train[1:], np.delete(test, first, axis=0)]
    for part in parts:
        part[:, -1] = part[:, -1].astype(np.int64) % 256
    everything = np.vstack(parts)
    most = np.quantile(everything[:, -1], BLOG_QUANTILE)
    parts = [part[part[:, -1] <= most] for part in parts]
    data = blog_dataset(parts[0], parts[1], scale_by=np.vstack(parts))
    assert data.test is not None
    rows = [Table(data.X[mask], data.y[mask]) for mask in (~data.test, data.test)]
    return data, rows[0], rows[1], rows[0]


_REFERENCE = {"compas": _compas, "auto_mpg": _auto_mpg, "heart": _heart, "blog": _blog}
