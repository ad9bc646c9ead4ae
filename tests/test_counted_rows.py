"""Distinct rows with counts, as another engine hands them over, tell exactly what all the rows tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polyseme as ps
from polyseme.estimators.estimate import Estimate
from polyseme.release import Release
from polyseme.testing.compressed import Compressed

pytestmark = pytest.mark.filterwarnings("ignore::polyseme.errors.PrivacyWarning")

SETS = """
attributes:
  sex: {role: quasi-identifier}
  town: {role: quasi-identifier}
  ill:
    role: sensitive
    domain: [a, b, c, d, e, f]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 2, d: 2}}
  pay:
    role: sensitive
    domain: [1, 2, 3, 4, 5]
    protect: {diversity: {l: 2}}
  weight: {role: insensitive}
"""
STRATA = SETS + "impossible: [{when: {sex: M}, attribute: ill, values: [a]}]\n"
WEIGHTED = SETS.replace("role: insensitive", "role: weight")


def compressed(release: Release, seed: int) -> Release:
    return replace(release, reader=Compressed(release.source, seed))


def people(seed: int, records: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], records)
    return pl.DataFrame(
        {
            "sex": sex,
            "town": pl.Series(rng.choice(["x", "y", ""], records)).replace("", None),
            "ill": [rng.choice(list("bcdef" if one == "M" else "abcdef")) for one in sex],
            "pay": rng.integers(1, 6, records),
            "weight": rng.choice([0.1, 1.7, 2.3], records),
        }
    )


def made(text: str, seed: int, records: int, **options: object) -> Release:
    return ps.anonymize(people(seed, records), ps.Policy.loads(text), seed=seed, **options)


def same(found: Estimate, expected: Estimate) -> None:
    """To the last bit: every number, every interval and everything that is said."""
    assert (found.estimator, found.by, found.labels, found.notes) == (
        expected.estimator,
        expected.by,
        expected.labels,
        expected.notes,
    )
    for name in ("values", "stderr", "low", "high", "totals"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


QUESTIONS = [
    (["ill"], [], []),
    (["ill"], ["sex", "town"], []),
    (["ill", "pay"], ["sex"], []),
    (["ill"], [], ["town", "pay"]),
]


@pytest.mark.parametrize("text", [SETS, STRATA, WEIGHTED])
@given(seed=st.integers(0, 10_000), records=st.integers(30, 200))
@settings(max_examples=5)
def test_estimates_from_counted_rows(text: str, seed: int, records: int) -> None:
    release = made(text, seed, records)
    counted = compressed(release, seed)
    for of, by, using in QUESTIONS:
        if not (using and text is WEIGHTED):
            same(ps.estimate(counted, of, by, using), ps.estimate(release, of, by, using))
