"""`prior`: a distribution of values by other columns, from a release or a table.

What sets are balanced for is published with a release. So it may come from what is public anyway, such as the estimate
of an earlier release; from a table of people only with noise that hides each of them (differential privacy), or where
the data holder says that the table's own distribution may be published.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Floats
from polyseme.kernel.errors import PolicyError, Problem, QuestionError, nearest
from polyseme.kernel.randomness import SystemStream, discrete_laplace
from polyseme.kernel.spelling import spelled, spellings
from polyseme.kernel.work import verb
from polyseme.policy import Policy
from polyseme.policy.attributes import ConditionalShares
from polyseme.policy.resolution import resolve
from polyseme.privacy.analysis.learner import pooled
from polyseme.publishing.inputs import names_given, policy_given, release_given, require_table, source_given
from polyseme.release import Release
from polyseme.results.prior import Prior
from polyseme.strata import STRATA_LIMIT
from polyseme.tables.codes import as_series, encode
from polyseme.tables.distinct import distinct_rows
from polyseme.tables.io.readers import open_table
from polyseme.tables.io.source import Source

__all__ = ["prior_from_release", "prior_from_table", "with_earlier_releases"]

_SENSITIVITY = 2
"""Another record in the place of one changes two numbers by one each."""
_FINEST = 10**6
_RECORDS = "records"
"""Epsilons are taken as fractions with at most this denominator, rounded down, so that noise is drawn exactly."""


@verb()
def prior_from_release(release: Release | str | Path, of: str, by: str | Sequence[str] = ()) -> Prior:
    """The estimated distribution of a protected attribute by untouched ones, as a prior.

    Every reader can compute it from the release, so it reveals nothing new.
    """
    from polyseme.verbs.estimate import estimate

    opened, columns = release_given(release), names_given(by)
    table = estimate(opened, [of], columns, unweighted=True)
    numbers = pooled(table.values, table.stderr**2)
    groups = list(zip(*(spellings(table.by[name]) for name in columns))) if columns else [()]
    some = np.flatnonzero(numbers.sum(axis=1) > 0.0)
    return Prior(
        of,
        columns,
        tuple(groups[group] for group in some.tolist()),
        tuple(spellings(table.labels[0])),
        numbers[some],
        "release",
        remarks=(
            f"the estimate from a release of {opened.manifest.records} records, which every reader can make",
            "groups are shrunk toward the whole as far as chance explains that they differ",
        ),
    )


@verb()
def prior_from_table(
    table: Any,
    of: str,
    by: str | Sequence[str] = (),
    *,
    epsilon: float | None = None,
    publish_exact: bool = False,
    policy: Policy | str | Path | None = None,
) -> Prior:
    """The distribution of a column by others in a table of people, with differential privacy.

    epsilon        whatever a record says, no outcome is more than e^epsilon times likelier than with another record in
                   its place; the values that occur in each column are taken as public
    publish_exact  take the numbers as they are: the table's own distribution is published with every release
    policy         says what the values are (bins, periods, missing ones) and how the table is written
    """
    columns, share = names_given(by), _epsilon(epsilon, publish_exact)
    rules = None if policy is None else policy_given(policy)
    require_table(table)
    source = open_table(table, by_policy=True) if rules is None else source_given(table, rules)
    frame, values = _coded(source, of, columns, rules)
    groups, counts = _counts(frame, columns, len(values))
    exact = share is None
    noise = np.zeros_like(counts) if share is None else _noise(share, counts.shape)
    numbers = pooled(counts + noise, np.full(counts.shape, 0.0 if share is None else _noise_variance(share)))
    some = np.flatnonzero(numbers.sum(axis=1) > 0.0)
    how = (
        "the exact distribution of a table of people: readers of this learn it exactly"
        if exact
        else f"the distribution of a table of people with differential privacy: epsilon {float(share or 0):g}"
    )
    return Prior(
        of,
        columns,
        tuple(groups[group] for group in some.tolist()),
        values,
        numbers[some],
        "table",
        None if share is None else float(share),
        (how, "groups are shrunk toward the whole table as far as chance explains that they differ"),
    )


def _epsilon(epsilon: float | None, publish_exact: bool) -> Fraction | None:
    if (epsilon is None) is not publish_exact:
        raise QuestionError(
            Problem(
                "epsilon",
                "no epsilon" if epsilon is None else "an epsilon, and the exact distribution",
                "--epsilon 1 adds noise that hides each person; --publish-exact says that the table's own distribution "
                "is published with every release that is made for it",
            )
        )
    if epsilon is None:
        return None
    if not 0.0 < epsilon < math.inf:
        raise QuestionError(Problem("epsilon", "expected a number above 0"))
    share = Fraction(math.floor(Fraction(epsilon) * _FINEST), _FINEST)
    if share == 0:
        raise QuestionError(Problem("epsilon", f"expected at least {1 / _FINEST:g}"))
    return share


def _noise(epsilon: Fraction, shape: tuple[int, ...]) -> Floats:
    drawn = discrete_laplace(Fraction(_SENSITIVITY) / epsilon, math.prod(shape), SystemStream())
    return drawn.reshape(shape).astype(np.float64)


def _noise_variance(epsilon: Fraction) -> float:
    """`2 a / (1 - a)^2` with `a = e^(-epsilon / 2)`."""
    fall = math.exp(-float(epsilon) / _SENSITIVITY)
    return 2.0 * fall / (1.0 - fall) ** 2


def _coded(source: Source, of: str, by: Sequence[str], policy: Policy | None) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The columns of `by`, the codes of the values and their counts; rows with a value only."""
    absent = [name for name in (of, *by) if name not in source.schema.names]
    if absent:
        raise QuestionError(
            Problem(name, f"no such column in {source.name}", nearest(name, source.schema.names)) for name in absent
        )
    domain = None if policy is None else resolve(policy, source).schema[of].domain
    if policy is not None and domain is None:
        raise QuestionError(
            Problem(of, "the policy does not say what its values are", "protect it, or leave --policy out")
        )
    parts, words = [], () if policy is None else policy.table.missing_values
    for batch, number in source.counted([*by, of]):
        column = as_series(batch.column(len(by)), words)
        codes = spelled(column) if domain is None else pl.Series(encode(column, domain).codes)
        cells = {f"by {i}": spelled(as_series(batch.column(i))) for i in range(len(by))}
        parts.append(distinct_rows(pl.DataFrame({**cells, "of": codes}), number, _RECORDS))
    frame = pl.concat(parts).drop_nulls()
    if domain is not None:
        return frame.filter(pl.col("of") >= 0), tuple(spellings(domain.values))
    labels = frame["of"].unique().sort()
    return frame.with_columns(pl.col("of").replace_strict(labels, range(len(labels)), return_dtype=pl.Int64)), tuple(
        labels
    )


def _counts(frame: pl.DataFrame, by: Sequence[str], size: int) -> tuple[list[tuple[str, ...]], Floats]:
    """Every combination of texts that occur in each column, with the count of each value."""
    texts = [frame[f"by {number}"].unique().sort() for number in range(len(by))]
    if math.prod(map(len, texts)) >= STRATA_LIMIT:
        what = f"{math.prod(map(len, texts)):,} combinations, where at most {STRATA_LIMIT - 1:,} can have a prior"
        raise QuestionError(Problem("by", what, "name fewer columns, or coarser ones"))
    place = pl.lit(0, dtype=pl.Int64)
    for number, found in enumerate(texts):
        code = pl.col(f"by {number}").replace_strict(found, range(len(found)), return_dtype=pl.Int64)
        place = place * len(found) + code
    cells = frame.select(place * size + pl.col("of")).to_series().to_numpy()
    records = frame[_RECORDS].to_numpy().astype(np.float64)
    groups: list[tuple[str, ...]] = [()]
    for found in texts:
        groups = [(*group, text) for group in groups for text in found.to_list()]
    counted = np.bincount(cells, records, minlength=len(groups) * size).astype(np.float64)
    return groups, counted.reshape(len(groups), size)


def with_earlier_releases(policy: Policy) -> Policy:
    """The policy with the distributions looked up that it takes from earlier releases."""
    problems: list[Problem] = []
    attributes = []
    for item in policy.attributes:
        prior = item.prior
        if isinstance(prior, ConditionalShares) and prior.release and prior.rows is None:
            try:
                found = prior_from_release(policy.files.release(prior.release), item.name, prior.by)
                item = replace(item, prior=replace(prior, rows=tuple(found.rows())))
            except (PolicyError, QuestionError) as error:
                where = f"$.attributes.{item.name}.prior.release"
                problems += [Problem(where, each.what, each.hint) for each in error.problems]
        attributes.append(item)
    if problems:
        raise PolicyError(problems)
    return replace(policy, attributes=tuple(attributes))
