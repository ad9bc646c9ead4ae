"""What can still be learned: predictors trained on the estimated and on the true table.

    T, T^   true and estimated numbers of records, (cells, F): a cell is a combination of features
    f, f^   the same kind of predictor, trained on T and on T^, each (cell, value) being an example of weight T or T^
    s       a score on the original records, that is on T

Reported are s(f), s(f^) and s(f^) - s(f), and the score of the best constant, which knows T but no feature.

| score      | predictor                                            | definition                                    |
|------------|------------------------------------------------------|-----------------------------------------------|
| `accuracy` | logistic regression                                  | share of records whose value is predicted     |
| `log_loss` | the same                                             | mean of -ln(probability given to the truth)   |
| `r2`       | linear regression of the positions of ordered values | 1 - squared error / variance                  |
| `mae`      | the same                                             | mean of |position - prediction|               |

Numbers are scaled, everything else is one column for each value. A weight cannot be negative: negative estimates are
taken as zero, here and nowhere else. Probabilities below 1e-15 count as 1e-15. Both predictors are judged on the
records that `f` was trained on: `s(f)` is the mark to compare with, not what new records would give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyseme.kernel.arrays import Floats
from polyseme.kernel.errors import Problem, QuestionError
from polyseme.kernel.plugins import require
from polyseme.results.verification import Preserved

__all__ = ["learning"]

_FLOOR = 1e-15
"""A guess of zero would cost an infinite log-loss; with this floor it costs 34.5."""
_ITERATIONS = 1_000
"""Ten times the default of scikit-learn, at which fits with many features end before they converge. A judgment."""
_CLASSES = 500
"""More values than this are too many for a classifier of this kind. A judgment."""


def learning(
    truth: Floats, estimate: Floats, features: Mapping[str, Sequence[Any]], positions: Floats | None = None
) -> dict[str, Preserved]:
    """Scores by name; those of regression only with `positions`.

    truth, estimate  (cells, F)
    features         for each feature, its value in every cell
    positions        places of the F values on a line
    """
    truth, estimate = np.asarray(truth, dtype=np.float64), np.asarray(estimate, dtype=np.float64)
    _check(truth, estimate, features, positions)
    weights = np.maximum(estimate, 0.0)
    inputs = _inputs(features)
    scores = {}
    if truth.shape[1] <= _CLASSES:
        constant = np.tile(truth.sum(axis=0) / truth.sum(), (len(truth), 1))
        guesses = [_probabilities(inputs, table) for table in (truth, weights)]
        for name, score in (("accuracy", _accuracy), ("log_loss", _log_loss)):
            scores[name] = _preserved(*(score(truth, guess) for guess in (*guesses, constant)))
    if positions is not None:
        places = np.asarray(positions, dtype=np.float64)
        lines = [_line(inputs, table, places) for table in (truth, weights)]
        shares = truth.sum(axis=0)
        mean = np.full(len(truth), shares @ places / shares.sum())
        middle = np.full(len(truth), places[_median(shares, places)])
        scores["r2"] = _preserved(*(_r2(truth, places, line) for line in (*lines, mean)))
        scores["mae"] = _preserved(*(_mae(truth, places, line) for line in (*lines, middle)))
    return scores


def _check(truth: Floats, estimate: Floats, features: Mapping[str, Sequence[Any]], positions: Floats | None) -> None:
    problems = []
    if truth.ndim != 2 or truth.shape != estimate.shape:
        problems.append(
            Problem("", "only one attribute can be predicted at a time", "--of TARGET --by FEATURE,FEATURE")
        )
    if not features:
        problems.append(Problem("by", "nothing to predict from", "name untouched attributes: --by age,sex"))
    if not truth.sum() > 0 or not np.maximum(estimate, 0.0).sum() > 0:
        problems.append(Problem("", "there are no records to learn from"))
    if not problems and positions is None and truth.shape[1] > _CLASSES:
        problems.append(
            Problem("", f"{truth.shape[1]:,} values are too many to predict", f"at most {_CLASSES}, or ordered values")
        )
    if problems:
        raise QuestionError(problems)


def _needs(module: str) -> Any:
    """A module of scikit-learn, which is an extra."""
    from importlib import import_module

    require("learn", "training predictors")
    return import_module(f"sklearn.{module}")


def _inputs(features: Mapping[str, Sequence[Any]]) -> Floats:
    """The cells as numbers: (cells, columns)."""
    columns = []
    for values in features.values():
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            numbers = np.asarray(values, dtype=np.float64)[:, None]
            columns.append((numbers - numbers.mean()) / (numbers.std() or 1.0))
        else:
            _, codes = np.unique([f"{type(value).__name__} {value}" for value in values], return_inverse=True)
            columns.append(np.eye(int(codes.max()) + 1)[codes])
    return np.hstack(columns)


def _probabilities(inputs: Floats, weights: Floats) -> Floats:
    """Logistic regression: the probability of each value in each cell, (cells, F)."""
    predictor = _needs("linear_model").LogisticRegression(max_iter=_ITERATIONS)
    cell, value = np.nonzero(weights)
    result = np.zeros(weights.shape)
    if len(np.unique(value)) == 1:
        result[:, value[0]] = 1.0
        return result
    predictor.fit(inputs[cell], value, sample_weight=weights[cell, value])
    result[:, predictor.classes_] = predictor.predict_proba(inputs)
    return result


def _line(inputs: Floats, weights: Floats, positions: Floats) -> Floats:
    """Linear regression: the expected position in each cell, (cells,), from the cells' means."""
    total = weights.sum(axis=1)
    known = total > 0
    means = weights[known] @ positions / total[known]
    predictor = _needs("linear_model").LinearRegression()
    predictor.fit(inputs[known], means, sample_weight=total[known])
    return np.asarray(predictor.predict(inputs), dtype=np.float64)


def _accuracy(truth: Floats, guess: Floats) -> float:
    return float(truth[np.arange(len(truth)), guess.argmax(axis=1)].sum() / truth.sum())


def _log_loss(truth: Floats, guess: Floats) -> float:
    return float(-(truth * np.log(np.maximum(guess, _FLOOR))).sum() / truth.sum())


def _r2(truth: Floats, positions: Floats, line: Floats) -> float:
    shares = truth.sum(axis=0) / truth.sum()
    variance = shares @ (positions - shares @ positions) ** 2
    error = (truth * (positions - line[:, None]) ** 2).sum() / truth.sum()
    return float(1.0 - error / variance) if variance > 0 else float(error == 0.0)


def _mae(truth: Floats, positions: Floats, line: Floats) -> float:
    return float((truth * np.abs(positions - line[:, None])).sum() / truth.sum())


def _median(shares: Floats, positions: Floats) -> int:
    order = np.argsort(positions)
    return int(order[np.searchsorted(np.cumsum(shares[order]), shares.sum() / 2.0)])


def _preserved(original: float, estimate: float, constant: float) -> Preserved:
    return Preserved(original, estimate, estimate - original, constant)
