"""The laws that every distance, design, estimator and model obeys, to test plugins by.

    check_distance(distance)        symmetric, agrees with its structure at every threshold, survives JSON ...
    check_design(design)            probabilities against enumeration, samples against probabilities ...
    check_estimator(estimator)      totals, order of the records, names of the values, odd cells ...
    check_model(model, ladder)      order of the rows, names of the values, monotone, fails closed ...

Each raises `AssertionError` with the law that was broken. The package's own tests call the same functions, law by law:
they are in the modules of this room. Nothing here needs a test framework.
"""

from __future__ import annotations

from polyseme.testing.designs import check_design
from polyseme.testing.distances import check_distance
from polyseme.testing.estimators import Traits, check_estimator
from polyseme.testing.models import check_model

__all__ = ["Traits", "check_design", "check_distance", "check_estimator", "check_model"]
