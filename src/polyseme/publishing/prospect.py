"""What will stand in a release, known before anything is drawn: its classes and people.

    seen = prospect(job, source, models)
    seen.verdicts     models about classes, on the rows as they will be published: weights rounded, values as declared
    seen.people       where the policy names a record key, how many people there are, and in the smallest class

`plan` asks it, so that it says what `anonymize` will say; and `anonymize` does where people are counted: afterwards
it is not known whose a row is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.engines.batch import Job, shown_batch
from polyseme.engines.checks import BatchTally, Problems
from polyseme.kernel.arrays import Ints
from polyseme.kernel.randomness import SystemStream
from polyseme.models import MODELS, Verdict, background_of, read_spec
from polyseme.models.base import unchecked
from polyseme.release import Applied, Column, Grouped, People, Sets
from polyseme.release.classes import looked_at, model_verdicts
from polyseme.tables.codes import as_series
from polyseme.tables.distinct import all_counts
from polyseme.tables.equivalence_classes import Classes, PublishedSets, classes_of
from polyseme.tables.io.source import Source
from polyseme.tables.readings import KeyReader, numbered_people

__all__ = ["LOOKED_AT", "Prospect", "prospect", "set_verdicts"]

Spec = Mapping[str, Mapping[str, Any]]
LOOKED_AT = 4_000_000
"""Rows up to which it is counted how many people are alone with their values, though no model asks for it."""
_VALUES, _SETS = 500, 20
"""Values of a domain of which sets are drawn to look at, and how many of each."""


@dataclass(frozen=True, eq=False)
class Prospect:
    """What was seen.

    verdicts  each model about classes, counted by rows and, where that is known, by people
    classes   of the rows, by what their publisher knows: people where there is a record key
    people    what the manifest says of them; None without a record key
    """

    verdicts: tuple[Verdict, ...] = ()
    classes: Classes | None = field(default=None, repr=False)
    people: People | None = None

    @property
    def broken(self) -> tuple[Verdict, ...]:
        """Models that will not hold; one that fails either way is reported by people."""
        first: dict[tuple[str, str | None], Verdict] = {}
        for verdict in self.verdicts:
            if not verdict.holds:
                first.setdefault((verdict.model, verdict.attribute), verdict)
        return tuple(first.values())

    def counted(self, applied: Applied, columns: Sequence[Column]) -> Applied:
        """What a method did, with the classes that readers see: survey weights split some of them."""
        if self.classes is None or any(isinstance(item, Grouped) for item in columns):
            return applied
        return replace(applied, classes=self.classes.count)


def prospect(
    job: Job, source: Source, models: Sequence[Spec], population: Callable[[], pl.DataFrame | None] = lambda: None
) -> Prospect:
    """The rows of a source as the job will publish them; refuses values that it will refuse.

    models  those about sets, and about groups, are left out: they are not known yet. Where there are models, every
            record must have a key; without, those that have none count as one person
    population  reads the people among whom k-map counts
    """
    unknown = {item.name for item in job.columns if isinstance(item, Sets | Grouped)}
    secret = [item.name for item in job.untouched if item.attribute.role.is_secret and item.name not in unknown]
    known = [spec for spec in models if _known(spec, unknown, secret)]
    columns = [item for item in looked_at(job.untouched, known) if item.name not in unknown]
    some = replace(job, columns=_needed(job, columns), key=None)
    rows = _read(some, source, [item.name for item in columns], strict=bool(models))
    people = rows.people if job.record_key is not None else None
    among = population() if any("k-map" in spec for spec in known) else None
    verdicts = () if people is None else model_verdicts(rows.frame, columns, known, rows.counts, people, among)
    verdicts += model_verdicts(rows.frame, columns, known, rows.counts, None, among)
    links = [item.name for item in columns if item.attribute.role.tells_apart]
    classes = classes_of(rows.frame, links, counts=rows.counts, people=people)
    return Prospect(verdicts, classes, _claimed(classes))


def _needed(job: Job, columns: Sequence[Column]) -> tuple[Column, ...]:
    """These columns, and those by which rows are dropped or refused."""
    dropping = [item for item in job.sets if item.domain.missing.action == "drop"]
    named = {item.name for item in columns} | set(job.types)
    named |= {name for item in dropping for name in item.strata.columns}
    return (*(item for item in job.untouched if item.name in named), *dropping)


def set_verdicts(job: Job, models: Sequence[Spec]) -> tuple[Verdict, ...]:
    """Models about values that are published as sets, on some sets as they will be drawn."""
    background = background_of([item.attribute for item in job.columns])
    found = []
    for item in job.sets:
        for spec in map(read_spec, models):
            if not spec.model.about or spec.attribute not in (None, item.name):
                continue
            if spec.model.on_sets is None:
                why = "the model says nothing about published sets"
                found.append(unchecked(spec.model.name, item.name, spec.parameters, why))
            else:
                drawn = spec.model.on_sets(_drawn(item), background, spec.parameters)
                found.append(replace(drawn, model=spec.model.name, parameters=spec.parameters))
    return tuple(found)


def _drawn(item: Sets) -> PublishedSets:
    """Some sets of each value, of every stratum."""
    stream, parts = SystemStream.seeded("prospect"), []
    for stratum in item.strata.members:
        size = stratum.mechanism.size
        codes = np.repeat(np.arange(size)[:: -(-size // _VALUES)], _SETS)
        parts.append(stratum.allowed[stratum.mechanism.sample(codes, stream)])
    width = max(part.shape[1] for part in parts)
    kept = [part for part in parts if part.shape[1] == width]
    return PublishedSets.from_codes(np.concatenate(kept), item.domain.size, item.name)


def _known(spec: Spec, unknown: Set[str], secret: Sequence[str]) -> bool:
    """Whether a model is about classes, or about values that stand in them."""
    ((name, parameters),) = spec.items()
    if not MODELS[name].about:
        return True
    return parameters["attribute"] not in unknown if "attribute" in parameters else bool(secret)


def _claimed(classes: Classes) -> People | None:
    if classes.people is None or not classes.count:
        return None
    return People(classes.people, int(classes.sizes.min()))


@dataclass(frozen=True, eq=False)
class _Rows:
    frame: pl.DataFrame
    counts: Ints | None
    people: Ints


def _read(job: Job, source: Source, names: Sequence[str], strict: bool) -> _Rows:
    """The columns as they will be published, and whose each row is."""
    frames, numbers, prints = [], [], []
    keys = None if job.record_key is None else KeyReader(job.record_key, job.missing_values)
    total = BatchTally()
    for batch, counts in source.counted(job.needed or source.lightest):
        shown, tally = shown_batch(job, batch)
        total += tally.counts
        frames.append(pl.DataFrame({name: _plain(shown.columns[name], name, job) for name in names}))
        numbers.append((len(shown.rows), None if counts is None else counts[shown.rows]))
        if keys is not None:
            prints.append(keys.read(batch.column(keys.name), None, counts)[shown.rows])
    Problems(total.problems, total.seen).raise_any(source)
    if keys is not None and strict:
        keys.refuse()
    whole = pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    none = np.zeros(0, dtype=np.int64)
    return _Rows(whole, all_counts(numbers), numbered_people(np.concatenate([none, *prints])))


def _plain(column: pa.Array, name: str, job: Job) -> pl.Series:
    """A column as a reader takes it: every word for a missing value is one."""
    return as_series(column, job.missing_values).alias(name)
