"""A release beside a population: how many people fit what each class shows."""

from __future__ import annotations

import numpy as np
import polars as pl

from polyseme.arrays import Ints
from polyseme.attacks.audit.seen import quasi_identifiers
from polyseme.errors import Problem, QuestionError
from polyseme.release import Generalized, Release
from polyseme.schema import Role
from polyseme.tables.classes import SUPPRESSED, Classes
from polyseme.tables.counting.distinct import frame_of
from polyseme.tables.io.source import Source
from polyseme.tables.population import people_fitting

__all__ = ["matched_classes", "population_of_release"]

_COUNT = "\0count"


def matched_classes(release: Release, population: Source) -> tuple[Classes, Ints]:
    """The classes of a release, and how many people of the population fit each.

    Records of which nothing is shown are a class that everybody fits where a method suppressed them; otherwise they are
    set aside, as everywhere.
    """
    keys = quasi_identifiers(release)
    reference = population_of_release(release, population)
    known = list(reference.columns)
    frame, counts = frame_of(release.counted(keys), keys, release.manifest.missing_values)
    each = np.ones(frame.height, dtype=np.int64) if counts is None else counts
    classes = frame.with_columns(pl.Series(_COUNT, each)).group_by(keys).agg(pl.col(_COUNT).sum())
    nothing = pl.all_horizontal((pl.col(name).cast(pl.String) == SUPPRESSED).fill_null(False) for name in keys)
    hidden = int(classes.filter(nothing)[_COUNT].sum())
    if release.manifest.applied is None and hidden < classes[_COUNT].sum():
        classes = classes.filter(~nothing)
    sizes = classes[_COUNT].to_numpy().astype(np.int64)
    meanings = {name: column.stands_for for name in known if isinstance(column := release.manifest[name], Generalized)}
    matches = people_fitting(classes.select(known), reference, meanings)
    return Classes(sizes, np.zeros_like(sizes), int(sizes.sum()), hidden), matches


def population_of_release(release: Release, population: Source) -> pl.DataFrame:
    """The quasi-identifiers of a population, one row for each person; refuses one that lacks some."""
    manifest = release.manifest
    wanted = [name for name in quasi_identifiers(release) if manifest[name].attribute.role is Role.QUASI_IDENTIFIER]
    absent = [name for name in wanted if name not in population.schema.names]
    if absent or not wanted:
        problems = [
            Problem("population", f"{population.name}: no column '{name}'", "it needs every quasi-identifier")
            for name in absent
        ]
        raise QuestionError(problems or [Problem("population", "the release has no quasi-identifiers", "leave it out")])
    rows = ((batch, None) for batch in population.batches(wanted))
    return frame_of(rows, wanted, manifest.missing_values)[0]
