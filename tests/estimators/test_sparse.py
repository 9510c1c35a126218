"""Sparse tables of SciPy are the dense tables that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from isotone.estimators import validation
from people import classifier, regressor

RNG = np.random.default_rng(0)
X = np.where(RNG.random((120, 5)) < 0.6, 0.0, RNG.normal(size=(120, 5)))
Y = X @ [2.0, -1.0, 0.0, 1.0, 0.5]


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_every_format_gives_the_bits_of_the_dense_table(form: str, kind: str) -> None:
    table = getattr(sparse, f"{form}_{kind}")(X)
    dense, model = regressor([1, -1, 0, 1, 0]).fit(X, Y), regressor([1, -1, 0, 1, 0]).fit(table, Y)
    assert model.network_.fingerprint == dense.network_.fingerprint
    np.testing.assert_array_equal(model.predict(table), dense.predict(X))
    assert model.score(table, Y) == dense.score(X, Y)
    np.testing.assert_array_equal(
        model.certified_radius(table).down, dense.certified_radius(X).down
    )


def test_large_tables_are_scored_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier().fit(X, Y > 0)
    expected = model.predict_proba(X)
    monkeypatch.setattr(validation, "_CELLS", 35)  # 7 rows at a time
    table = sparse.csr_array(X)
    sizes = [len(batch) for batch in validation.SparseTable(table, list("abcde")).to_batches()]
    assert sizes == [7] * 17 + [1]
    np.testing.assert_array_equal(model.predict_proba(table), expected)


def test_rows_of_pieces_are_counted_from_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    model = regressor().fit(X, Y)
    monkeypatch.setattr(validation, "_CELLS", 35)
    strange = X.copy()
    strange[[50, 100], 2] = np.nan
    with pytest.raises(ValueError, match="column 'x2' is missing in row 50"):
        model.predict(sparse.csr_array(strange))
    model.set_params(on_unseen="skip")
    with pytest.warns(UserWarning, match="2 of 120 rows contain values never seen"):
        scores = model.predict(sparse.csr_array(strange))
    assert np.flatnonzero(np.isnan(scores)).tolist() == [50, 100]


def test_what_is_not_finite_is_refused() -> None:
    strange = X.copy()
    strange[3, 1] = np.inf
    table = sparse.csr_array(strange)
    with pytest.raises(ValueError, match="contains infinity"):
        regressor().fit(table, Y)
    with pytest.raises(ValueError, match="contains infinity"):
        regressor().fit(X, Y).predict(table)


def test_missing_values_and_categories_are_learned_from_sparse_tables() -> None:
    codes = np.column_stack([RNG.integers(0, 3, 120), np.where(X[:, 0] > 1, np.nan, X[:, 0])])
    options: dict[str, Any] = {"categorical_features": [0], "missing": "indicator"}
    dense, model = regressor(**options).fit(codes, Y), regressor(**options)
    model.fit(sparse.csr_array(codes), Y)
    np.testing.assert_array_equal(model.predict(sparse.csc_array(codes)), dense.predict(codes))


def test_the_number_of_columns_must_be_that_of_training() -> None:
    model = regressor().fit(X, Y)
    with pytest.raises(ValueError, match=r"X has 4 features, but Monotonic.* is expecting 5"):
        model.predict(sparse.csr_array(X[:, :4]))


def test_a_table_too_large_to_be_dense_is_refused_before_it_is() -> None:
    table = sparse.csr_array((1_000_000, 10_000))
    with pytest.raises(
        ValueError, match=r"shape \(1000000, 10000\); .* 74.5 GiB of memory .* at most 2 GiB are"
    ):
        regressor().fit(table, np.zeros(1_000_000))


def test_words_of_a_text() -> None:
    texts = ["good wine", "bad wine", "good bread", "bad bread", "very good", "very bad"] * 10
    labels = ["good" in text for text in texts]
    model = make_pipeline(TfidfVectorizer(), classifier())
    assert model.fit(texts, labels).score(texts, labels) == 1.0
