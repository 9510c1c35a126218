"""What watches a fit: validation rows of one's own, and callbacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.metrics import log_loss, mean_squared_error

from isotone.training.recipe import History
from people import NAMES, classifier, people, prices, regressor

X, Y = people(200)
X_VAL, Y_VAL = people(80, seed=1)
PAIR = (X_VAL, Y_VAL)


def test_losses_on_other_rows_are_recorded_and_change_nothing() -> None:
    plain, watched = classifier().fit(X, Y), classifier().fit(X, Y, eval_set=PAIR)
    assert watched.network_.fingerprint == plain.network_.fingerprint
    assert np.shape(watched.history_.validation) == (60, 2)
    assert plain.history_.validation == []


def test_the_recorded_loss_is_that_of_the_rows() -> None:
    model = classifier(n_members=1).fit(X, Y, eval_set=PAIR)
    expected = log_loss(Y_VAL, model.predict_proba(X_VAL))
    assert model.history_.validation[-1][0] == pytest.approx(expected, rel=1e-4)
    X_price, y_price = prices(100)
    other = prices(50, seed=1)
    values = regressor(n_members=1).fit(X_price, y_price, eval_set=other)
    scale = values.history_.validation[-1][0] / mean_squared_error(
        other[1], values.predict(other[0])
    )
    assert np.log2(scale) / 2 == pytest.approx(round(np.log2(scale) / 2), abs=1e-3)  # units


def test_early_stopping_goes_by_the_given_rows_and_learns_from_all() -> None:
    options: dict[str, Any] = {"early_stopping": True, "n_iter_no_change": 5, "max_iter": 300}
    wrong = (X_VAL, ~Y_VAL)  # to learn is to become worse
    model = classifier(**options).fit(X, Y, eval_set=wrong)
    assert model.n_iter_ < 20
    assert model.history_.best_epoch == [int(k) for k in np.argmin(model.history_.validation, 0)]
    assert classifier(**options).fit(X, Y).n_iter_ > model.n_iter_
    one = classifier(early_stopping=True).fit(X[:2], [0, 1], eval_set=(X[:2], [0, 1]))
    assert one.score(X[:2], [0, 1]) == 1.0  # nothing was held out


def test_a_list_of_one_pair_is_the_pair() -> None:
    for pair in (PAIR, [PAIR], [X_VAL, Y_VAL], (X_VAL.to_dict("list"), Y_VAL.tolist())):
        history = classifier(max_iter=3).fit(X, Y, eval_set=pair).history_.validation
        assert history == classifier(max_iter=3).fit(X, Y, eval_set=PAIR).history_.validation


def test_the_positive_class_and_several_classes_are_validated_as_learned() -> None:
    words, words_val = (np.where(y, "good", "bad") for y in (Y, Y_VAL))
    turned = classifier(positive="bad", n_members=1).fit(X, words, eval_set=(X_VAL, words_val))
    expected = log_loss(words_val, turned.predict_proba(X_VAL))
    assert turned.history_.validation[-1][0] == pytest.approx(expected, rel=1e-4)
    three, three_val = (np.digitize(frame["debt"], [-3, 3]) for frame in (X, X_VAL))
    model = classifier(n_members=1).fit(X, three, eval_set=(X_VAL, three_val))
    expected = log_loss(three_val, model.predict_proba(X_VAL), labels=[0, 1, 2])
    assert model.history_.validation[-1][0] == pytest.approx(expected, rel=1e-4)


def test_raw_and_sparse_tables_are_validated_on() -> None:
    city = np.where(Y, "Rome", "Oslo")
    model = classifier(on_unseen="skip", max_iter=3)
    model.fit(X.assign(city=city), Y, eval_set=(X_VAL.assign(city="Rome"), Y_VAL))
    some = X_VAL.assign(city=["Bonn"] * 10 + ["Rome"] * 70)
    again = classifier(on_unseen="skip", max_iter=3)
    again.fit(X.assign(city=city), Y, eval_set=(some, Y_VAL))
    rest = classifier(max_iter=3)
    rest.fit(X.assign(city=city), Y, eval_set=(some[10:], Y_VAL[10:]))
    assert again.history_.validation == rest.history_.validation  # others have no score
    dense = classifier(max_iter=3).fit(X.to_numpy(), Y, eval_set=(X_VAL.to_numpy(), Y_VAL))
    table = sparse.csr_array(X_VAL.to_numpy())
    thin = classifier(max_iter=3).fit(X.to_numpy(), Y, eval_set=(table, Y_VAL))
    assert thin.history_.validation == dense.history_.validation


def test_callbacks_see_every_epoch_and_may_stop() -> None:
    seen: list[tuple[int, int]] = []

    def note(epoch: int, history: History) -> None:
        seen.append((epoch, len(history.validation)))

    def stop(epoch: int, history: History) -> bool:
        return epoch == 6

    model = classifier().fit(X, Y, eval_set=PAIR, callbacks=[stop, note])
    assert seen == [(k, k + 1) for k in range(7)]  # also those behind one that stops
    assert model.n_iter_ == 7
    assert model.certificate_.holds


def test_callbacks_that_only_look_change_nothing() -> None:
    plain = classifier(lipschitz="auto", max_iter=5).fit(X, Y)
    seen: list[int] = []
    model = classifier(lipschitz="auto", max_iter=5)
    model.fit(X, Y, callbacks=(lambda epoch, history: seen.append(epoch),))
    assert set(seen) == set(range(5))  # of candidates that may be kept
    assert model.network_.fingerprint == plain.network_.fingerprint


def test_rows_to_validate_on_are_routed() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = classifier().set_fit_request(eval_set=True, callbacks=True)
    assert model.get_metadata_routing().fit.requests["eval_set"] is True


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([PAIR, PAIR], "`eval_set` is a list of 2 pairs; it must be one pair, since one loss"),
        (X_VAL, "`eval_set` is a DataFrame; it must be one pair, .* give \\(X_val, y_val\\)"),
        ((X_VAL,), "`eval_set` is a tuple; it must be one pair"),
        ([], "`eval_set` is a list of 0 pairs; it must be one pair"),
        ((X_VAL, ["maybe"] * 80), "`eval_set` holds the class 'maybe', which was not learned"),
        ((X_VAL, Y_VAL[:5]), "inconsistent numbers of samples"),
        ((X_VAL[NAMES[:2]], Y_VAL), "feature names should match"),
        ((X_VAL.assign(age=1e300), Y_VAL), r"`eval_set` reaches 1e\+300 in 'age'; numbers up to"),
        ((X_VAL.assign(age=np.nan), Y_VAL), "column 'age' is missing in row 0"),
    ],
)
def test_pairs_that_cannot_be_used_are_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        classifier().fit(X, Y, eval_set=given)


def test_at_least_one_row_must_have_a_score() -> None:
    strange = pd.DataFrame(np.nan, index=range(4), columns=NAMES)
    with pytest.raises(ValueError, match="none of 4 rows of `eval_set` gets a score; at least"):
        classifier(on_unseen="skip").fit(X, Y, eval_set=(strange, Y[:4]))


def test_targets_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(
        ValueError, match="`eval_set` has 2 targets but the model has 1; they must be"
    ):
        regressor().fit(X, Y, eval_set=(X_VAL, np.column_stack([Y_VAL, Y_VAL])))
    with pytest.raises(ValueError, match="`eval_set` holds NaN or infinity"):
        regressor().fit(X, Y, eval_set=(X_VAL, np.full(80, np.nan)))


def test_predictions_are_of_tables() -> None:
    with pytest.raises(TypeError, match="only `fit` reads files"):
        classifier().fit(X, Y).predict("rows.parquet")


@pytest.mark.parametrize("given", [print, [1], 3])
def test_callbacks_are_a_list_of_functions(given: Any) -> None:
    with pytest.raises(ValueError, match="must be a list of functions of an epoch and"):
        classifier().fit(X, Y, callbacks=given)
