"""What the metrics of a comparison with the original mean, and their units."""

from __future__ import annotations

from collections.abc import Mapping

from polyseme.results.views.formats import NOTHING, points, quantity

__all__ = ["metric_words", "metric_written"]

_WORDS: Mapping[str, tuple[str, str]] = {
    "mse": ("Typical error of a cell, of all records", "{} percentage points"),
    "l1": ("Sum of the errors of all cells", "{} records"),
    "l2": ("Root of the sum of squared errors", "{} records"),
    "hellinger": ("Hellinger distance of the counts", "{} √records"),
    "emd": ("Share of records that would have to change their cell", "{}%"),
    "kl": ("Information lost (Kullback-Leibler)", "{} nats"),
    "chi2": ("Squared errors over true numbers, summed", "{} records"),
}


def metric_words(name: str) -> str:
    """What a metric measures; one that is not known here keeps its name."""
    return _WORDS[name][0] if name in _WORDS else name


def metric_written(name: str, number: float | None) -> str:
    """Its value with the unit.

    >>> metric_written("mse", 4e-6), metric_written("l1", 660.0), metric_written("l1", None)
    ('0.2 percentage points', '660 records', '–')
    """
    if number is None:
        return NOTHING
    shown = {"mse": points(number), "emd": quantity(100 * number)}.get(name, quantity(number))
    return (_WORDS[name][1] if name in _WORDS else "{}").format(shown)
