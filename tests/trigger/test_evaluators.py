"""What to train for LHCb's evaluators: it fits, and what does not is refused before training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotone
from isotone import Log, MonotonicClassifier, export, trigger
from isotone.export.lhcb.evaluator import evaluate
from isotone.files.untrusted import read_json
from isotone.frozen.lhcb import parse


def two_classes(n_rows: int = 3000) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, 2.0, (n_rows, 4)).astype(np.float32)
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=n_rows) > 8).astype(int)


@pytest.mark.parametrize(
    ("evaluator", "options"),
    [
        ("allen", {"lipschitz": 2.0}),
        ("allen", {"lipschitz": [1.0, 2.0, 0.5, 1.0], "scaling": "standard"}),
        ("hlt2", {"lipschitz": 1.0, "hidden_layer_sizes": (64, 64)}),
    ],
    ids=str,
)
def test_train_export_load_certify_decide(
    evaluator: str, options: dict[str, Any], tmp_path: Path
) -> None:
    """The whole way: decisions of the evaluator and of the network read back are the model's."""
    X, y = two_classes()
    chosen = trigger.parameters_for(evaluator, **options)
    signs = [1, 1, 0, 1]
    model = MonotonicClassifier(signs, max_iter=5, random_state=0, **chosen).fit(X, y)
    frozen, path = model.network_, tmp_path / "f.json"
    score = frozen.score(X.astype(np.float64))
    threshold = float(np.quantile(score, 0.8))
    export.write(frozen, evaluator, path, check=False, threshold=threshold, reach=64.0)
    data = read_json(path)
    undecided = data["isotone"]["undecided"]
    back = isotone.load(path)
    assert isotone.certify(back).holds
    clear = np.abs(score - threshold) > undecided
    passes = score >= threshold
    assert np.array_equal(evaluate(parse(data), X).passes[clear], passes[clear])
    error = 4 * isotone.certify(back).rounding_errors[0]
    clear = np.abs(score - threshold) > undecided + error
    assert np.array_equal((back.score(X.astype(np.float64)) >= threshold)[clear], passes[clear])
    assert 0.1 < passes.mean() < 0.3


@pytest.mark.parametrize(
    ("evaluator", "given", "message"),
    [
        ("l0", {}, "`evaluator='l0'`"),
        ("allen", {}, "`lipschitz=None` does not fit; .* give a number, such as 2"),
        ("allen", {"lipschitz": "auto"}, "needs a known λ"),
        ("hlt2", {"lipschitz": {"a": 1.0, "b": 2.0}}, "has one λ: give one number"),
        ("hlt2", {"lipschitz": 1.0, "scaling": "standard"}, "`scaling='standard'` does not fit"),
        ("allen", {"lipschitz": 1.0, "scaling": ["log"]}, "`scaling='log'` .* logarithms before"),
        ("allen", {"lipschitz": 1.0, "scaling": Log()}, r"`scaling=Log\("),
        ("allen", {"lipschitz": 1.0, "scaling": "auto"}, "identity, standard, robust"),
        ("allen", {"lipschitz": 1.0, "group_size": 8}, "`group_size=8` .* sorts pairs: leave it"),
        ("allen", {"lipschitz": 1.0, "group_size": None}, "sorts pairs"),
        ("allen", {"lipschitz": 1.0, "knots": 32}, "has no knots"),
        ("allen", {"lipschitz": 1.0, "n_members": 4}, "computes one network"),
        ("allen", {"lipschitz": 1.0, "missing": "indicator"}, "takes no missing values"),
        ("allen", {"lipschitz": 1.0, "categorical_features": [1]}, "takes numbers alone"),
        ("allen", {"lipschitz": 1.0, "hidden_layer_sizes": (21,)}, "takes even widths of at most"),
        ("allen", {"lipschitz": 1.0, "hidden_layer_sizes": 64}, r"at most 32.*choose \(20, 20\)"),
        ("hlt2", {"lipschitz": 1.0, "hidden_layer_sizes": (8,) * 8}, "in fewer than 8 hidden"),
    ],
)
def test_what_does_not_fit_is_refused(evaluator: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trigger.parameters_for(evaluator, **given)
