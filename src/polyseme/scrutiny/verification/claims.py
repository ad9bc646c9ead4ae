"""The publisher's claim on how many people there are, and where models are violated.

A release holds no key, so that its rows say how many records a class has, but not of how many people. With
the original, whose rows say that, the records of each class are found by what its labels may stand for.

Violations of a policy's models are located by line for the verdicts, and by value for the owner of the table only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Bools, Ints
from polyseme.kernel.errors import Problem, QuestionError, TableError, nearest, numbered, people_words
from polyseme.kernel.marks import UNSEEN
from polyseme.kernel.sightings import Sightings
from polyseme.kernel.spelling import spelled
from polyseme.models import MODELS, Verdict, background_of, check_models
from polyseme.models.base import unchecked
from polyseme.policy.foreign import ForeignTable
from polyseme.release import AsIs, Generalized, Manifest, People, Release
from polyseme.results.verification import Verification
from polyseme.schema import Domain
from polyseme.scrutiny.attacks.audit.seen import Reading
from polyseme.semantics.hierarchies import TOP
from polyseme.semantics.hierarchies.leaves import held_by
from polyseme.tables.codes import as_series, encode, label_array
from polyseme.tables.distinct import all_counts, distinct_rows
from polyseme.tables.equivalence_classes import people_in
from polyseme.tables.io.source import Source
from polyseme.tables.readings import KeyReader, numbered_people, sighted

__all__ = ["claimed", "compared", "located", "noted"]

_MODEL = "people"
_COUNT = "\0count"
_CELLS = 4_000_000_000
"""Comparisons of records with classes that are made at the most: some minutes."""


def claimed(release: Release) -> Verdict | None:
    """The manifest's claim on people, as far as rows can contradict it; None without a claim."""
    people = release.manifest.people
    if people is None:
        return None
    smallest = int(_classes(release)[_COUNT].to_numpy().min(initial=release.manifest.records))
    k = _promised_k(release.manifest)
    holds = k <= people.smallest_class and (people.smallest_class <= smallest or not release.manifest.links)
    note = f"claimed by the publisher: {people_words(people.total)}, at least {people.smallest_class:,} in a class; "
    unchecked_note = "no key is published, so that --original is needed to check it"
    wrong = f"but {k:,} are promised, and a class has only {smallest:,} rows"
    worst, bound = float(people.smallest_class), float(k)
    return Verdict(
        _MODEL, None, {}, holds, worst, bound, worst - bound, note=note + (unchecked_note if holds else wrong)
    )


def _promised_k(manifest: Manifest) -> int:
    """The least class size of the models, unless it was not reached and accepted."""
    promised = [model["k-anonymity"]["k"] for model in manifest.models if "k-anonymity" in model]
    return max([1, *promised]) if "k-anonymity" not in manifest.accepted else 1


def noted(verdicts: Sequence[Verdict], people: People | None) -> list[Verdict]:
    """Verdicts on models that say what was counted where the publisher claims more."""
    if people is None:
        return list(verdicts)
    return [_noted(verdict) if verdict.model == "k-anonymity" else verdict for verdict in verdicts]


def _noted(verdict: Verdict) -> Verdict:
    note = "rows were counted; that they are of as many people is claimed by the publisher"
    return replace(verdict, note="; ".join(text for text in (verdict.note, note) if text))


def compared(release: Release, original: Source, person: str | None) -> list[Verdict]:
    """The claim, and the models about classes, counted by the people of the original.

    person  the column of the original that says whose each record is; found by the claim where that is possible
    """
    people = release.manifest.people
    if people is None:
        what = "the release does not say that people were counted, so that there is nothing to check by the original"
        raise QuestionError(Problem("original", what, "polyseme attack RELEASE --original DATA measures risks"))
    table = _Original.read(release, original, person)
    found = _Found.of(release, table)
    if isinstance(found, str):
        return [unchecked(_MODEL, None, {}, found)]
    return [_verdict(people, found, table), *_on_models(release, found, table)]


def _verdict(people: People, found: _Found, table: _Original) -> Verdict:
    """The fewest people of a class, and all of them, as claimed?"""
    fewest, total = found.fewest(table.people), found.total(table.people)
    holds = fewest == people.smallest_class and total == people.total
    same = f"{people_words(total)}, at least {fewest:,} in a class"
    note = (
        f"as claimed: {same}" if holds else f"claimed: {people_words(people.total)}, at least {people.smallest_class:,}"
    )
    note = note if holds else f"{note} in a class; in the original: {same}"
    margin = float(fewest - people.smallest_class)
    bound = float(people.smallest_class)
    return Verdict(_MODEL, None, {}, holds, float(fewest), bound, margin, (), len(found.rows), 0, note, counts="people")


def _on_models(release: Release, found: _Found, table: _Original) -> list[Verdict]:
    """Verdicts of class models by people of the original; of values where these are published."""
    changed = release.manifest.applied is not None and bool(release.manifest.applied.actions)
    unchanged = {name for name in table.values if not changed}
    checkable = []
    for spec in release.manifest.models:
        ((name, parameters),) = spec.items()
        known = parameters.get("attribute") in unchanged if "attribute" in parameters else bool(unchanged)
        if name == "k-anonymity" or (MODELS[name].about and known):
            checkable.append(spec)
    kept = found.owner >= 0
    rows = pl.DataFrame({"\0place": found.owner, **table.values}).filter(pl.Series(kept))
    background = background_of([item.attribute for item in release.manifest.columns])
    return list(
        check_models(
            rows, ["\0place"], checkable, sensitive=sorted(unchanged), background=background, people=table.people[kept]
        )
    )


# -- the classes of a release --------------------------------------------------------------------------------------


def _classes(release: Release) -> pl.DataFrame:
    """The classes by the values of their labels, without suppressed records, and their rows."""
    links = list(release.manifest.links)
    reading, frames, numbers = Reading.by(release, links), [], []
    for batch, counts in release.counted(links or list(release.manifest.names[:1])):
        frames.append(reading.texts(reading.columns(batch)) if links else pl.DataFrame({_MODEL: [""] * batch.num_rows}))
        numbers.append((batch.num_rows, counts))
    found = distinct_rows(pl.concat(frames), all_counts(numbers), _COUNT)
    nothing = pl.all_horizontal((pl.col(name) == TOP).fill_null(False) for name in links) if links else pl.lit(False)
    shown = found.filter(~nothing)
    return shown if shown.height else found


# -- the original --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Original:
    """The records of the original.

    links   for each column that forms classes, its values as a release shows them, or as leaves of its hierarchy
    values  of sensitive columns that are published as they are, in labels of the domain
    people  whose each record is
    """

    links: pl.DataFrame = field(repr=False)
    values: dict[str, pl.Series] = field(repr=False)
    people: Ints = field(repr=False)

    @classmethod
    def read(cls, release: Release, original: Source, person: str | None) -> _Original:
        manifest, words = release.manifest, release.manifest.missing_values
        secret = [item for item in manifest.columns if item.attribute.role.is_secret]
        plain = {item.name: item for item in secret if isinstance(item, AsIs) and item.attribute.domain is not None}
        dropping = [
            item.name for item in secret if (domain := item.attribute.domain) and domain.missing.action == "drop"
        ]
        shown = [name for name in manifest.links if isinstance(manifest[name], AsIs)]
        candidates = [person] if person is not None else _unpublished(original, manifest)
        needed = list(dict.fromkeys([*manifest.links, *plain, *dropping, *candidates]))
        _require(original, needed)
        reading = Reading.by(release, shown)
        keys = {name: KeyReader(name, words) for name in candidates}
        links: list[pl.DataFrame] = []
        values: dict[str, list[pl.Series]] = {name: [] for name in plain}
        prints: dict[str, list[Ints]] = {name: [] for name in candidates}
        for batch in original.batches(needed):
            kept = np.ones(batch.num_rows, dtype=np.bool_)
            for name in dropping:
                kept &= as_series(batch.column(name), words).is_not_null().to_numpy()
            rows = pl.Series(kept)
            same = reading.texts(reading.columns(batch)) if shown else pl.DataFrame()
            leaves = {name: spelled(as_series(batch.column(name), words)) for name in manifest.links}
            columns = {name: same[name] if name in shown else leaf for name, leaf in leaves.items()}
            links.append(pl.DataFrame(columns or {_MODEL: [""] * batch.num_rows}).filter(rows))
            for name, item in plain.items():
                values[name].append(_labels(item, as_series(batch.column(name), words)).filter(rows))
            for name, reader in keys.items():
                prints[name].append(reader.read(batch.column(name))[kept])
        people = {name: numbered_people(np.concatenate(found)) for name, found in prints.items()}
        found = person if person is not None else _named(release, people)
        keys[found].refuse()
        return cls(pl.concat(links), {name: pl.concat(parts) for name, parts in values.items()}, people[found])


def _labels(item: AsIs, series: pl.Series) -> pl.Series:
    domain = item.attribute.domain
    assert domain is not None  # noqa: S101 - seen to before
    codes = encode(series, domain).codes
    labels = pl.Series(label_array(domain.values).to_pylist(), strict=False)
    return labels.gather(np.maximum(codes, 0)).set(pl.Series(codes < 0), None).alias(item.name)


def _unpublished(original: Source, manifest: Manifest) -> list[str]:
    """The columns that may say whose a record is: those that were left out."""
    return [name for name in original.schema.names if name not in manifest.names]


def _named(release: Release, people: dict[str, Ints]) -> str:
    """The column that has as many people as the manifest claims."""
    claim = release.manifest.people
    total = 0 if claim is None else claim.total
    fitting = [name for name, codes in people.items() if len(codes) and int(codes.max()) + 1 >= total]
    if len(fitting) == 1:
        return fitting[0]
    several = "several columns may" if fitting else "no column that was left out can"
    raise QuestionError(Problem("person", f"{several} say whose each record is", "name it: --person COLUMN"))


def _require(original: Source, names: Sequence[str]) -> None:
    absent = [name for name in names if name not in original.schema.names]
    if absent:
        raise TableError(
            Problem(name, "the original has no such column", nearest(name, original.schema.names)) for name in absent
        )


# -- both ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Found:
    """The class of each record of the original.

    owner  -1 for one that is in none: suppressed
    rows   of each class of the release
    """

    owner: Ints = field(repr=False)
    rows: Ints = field(repr=False)

    def fewest(self, people: Ints) -> int:
        kept = self.owner >= 0
        return int(people_in(self.owner[kept], people[kept], len(self.rows)).min(initial=len(people)))

    def total(self, people: Ints) -> int:
        return len(np.unique(people[self.owner >= 0]))

    @classmethod
    def of(cls, release: Release, table: _Original) -> _Found | str:
        """What was found, or why nothing could be."""
        classes = _classes(release)
        names = [name for name in classes.columns if name != _COUNT]
        different = table.links.unique(maintain_order=True)
        if classes.height * different.height * len(names) > _CELLS:
            return f"{classes.height:,} classes and {different.height:,} different records are too many to compare"
        owner = np.full(different.height, -1, dtype=np.int64)
        width = np.full(different.height, different.height + 1)
        twice = 0
        for place, here in enumerate(_fitting(release.manifest, classes, different, names)):
            # Where a class lies within another, as in a local recoding, a record that fits both is in the narrower one.
            twice += int((owner[here] >= 0).sum())
            narrower = here & (width > here.sum())
            owner[narrower], width[narrower] = place, here.sum()
        each = different.with_columns(pl.Series("\0owner", owner))
        found = table.links.join(each, on=names, how="left", nulls_equal=True, maintain_order="left")
        rows, owners = classes[_COUNT].to_numpy(), found["\0owner"].to_numpy()
        other = int((np.bincount(owners[owners >= 0], minlength=len(rows)) != rows).sum())
        if other and twice:
            return "records of the original fit several classes, so that their class is not known"
        if other:
            have = numbered(other, "classes have")
            return f"{have} other numbers of records than in the original: is this the original?"
        return cls(owners, rows)


def _fitting(
    manifest: Manifest, classes: pl.DataFrame, different: pl.DataFrame, names: Sequence[str]
) -> Iterator[Bools]:
    """For each class, which of the different records fit it."""
    fits, labels, codes = [], [], []
    for name in names:
        shown, values = classes[name].unique(maintain_order=True), different[name].unique(maintain_order=True)
        column = manifest[name] if name in manifest.names else None
        listed = column.stands_for if isinstance(column, Generalized) else None
        fits.append(np.stack([_held(label, values, listed) for label in shown.to_list()]))
        labels.append(_places(classes[name], shown))
        codes.append(_places(different[name], values))
    for place in range(classes.height):
        here = np.ones(different.height, dtype=np.bool_)
        for fit, label, code in zip(fits, labels, codes, strict=True):
            here &= fit[label[place]][code]
        yield here


def _held(label: str | None, values: pl.Series, listed: Mapping[str, Collection[str]] | None) -> Bools:
    """Whether each value is covered by its label; an unchanged value only by itself."""
    if listed is None:
        return np.asarray(values.eq_missing(label).to_numpy(), dtype=np.bool_)
    return held_by(label, values, listed)


def _places(series: pl.Series, among: pl.Series) -> Ints:
    """Where each value stands among the different ones."""
    there = among.to_frame("value").with_row_index("place")
    found = series.to_frame("value").join(there, on="value", how="left", nulls_equal=True, maintain_order="left")
    return found["place"].cast(pl.Int64).to_numpy()


_FLAW = "records have"
"""What a verdict says of an attribute that it could not judge because of some of its values."""


def names_rows(verdicts: Sequence[Verdict]) -> bool:
    """Whether some verdict names records one by one: those whose values could not be judged."""
    return any(_FLAW in verdict.note for verdict in verdicts)


def located(verdicts: Sequence[Verdict], table: ForeignTable, source: Source) -> Verification:
    """The verdicts with the places of violations; rows that were only counted have no place."""
    if table.counts is not None and table.first is None:
        return Verification(tuple(verdicts))
    found = [_located(verdict, table, source) for verdict in verdicts]
    return Verification(
        tuple(verdict for verdict, _ in found), offending=tuple(problem for _, problem in found if problem is not None)
    )


def _located(verdict: Verdict, table: ForeignTable, source: Source) -> tuple[Verdict, Problem | None]:
    seen = None if verdict.holds else _outside(verdict, table) or _worst(verdict, table)
    if seen is None or not seen.rows:
        return verdict, None
    problem = Problem.in_rows(_title(verdict), _what(verdict), "", seen, source.row_numbers)
    place = _place_text(verdict, problem.seen) if problem.seen is not None else ""
    return replace(verdict, note="; ".join(text for text in (verdict.note, place) if text)), problem


def _place_text(verdict: Verdict, seen: Sightings) -> str:
    if not verdict.worst_classes:
        return seen.words()
    named = ", ".join(map(str, seen.rows))
    return f"a record of each of the worst classes: {seen.unit}{'s' if len(seen.rows) > 1 else ''} {named}"


def _title(verdict: Verdict) -> str:
    return verdict.model if verdict.attribute is None else f"{verdict.model} of {verdict.attribute}"


def _what(verdict: Verdict) -> str:
    return "the worst classes" if verdict.worst_classes else "values that are not in the declared domain, or missing"


def _outside(verdict: Verdict, table: ForeignTable) -> Sightings | None:
    """The values of an attribute that a model could not judge."""
    if verdict.attribute not in table.frame.columns or _FLAW not in verdict.note:
        return None
    series, values = table.frame[verdict.attribute], table.background.domains.get(verdict.attribute)
    wrong = series.is_null().to_numpy()
    if values is not None and not isinstance(series.dtype, pl.List):
        wrong = wrong | (encode(series, Domain(tuple(values))).codes == UNSEEN)
    return sighted(series, np.flatnonzero(wrong)) if wrong.any() else None


def _worst(verdict: Verdict, table: ForeignTable) -> Sightings | None:
    """The worst classes: what their records agree in, how many there are, and one of them."""
    known = [(place.row, place.size) for place in verdict.worst_classes if place.row is not None]
    places = [(row, size) for row, size in known if _place(table, row) < table.frame.height]
    names = [name for name in table.quasi_identifiers if name in table.frame.columns]
    values = {_shared(table.frame, names, _place(table, row)): (size, row) for row, size in places}
    return Sightings.of(values, sorted(row for row, _ in places), sum(size for _, size in places)) if places else None


def _place(table: ForeignTable, row: int) -> int:
    """Where in the frame a row of the table is, the first of its kind."""
    return row if table.first is None else int(np.searchsorted(table.first, row))


def _shared(frame: pl.DataFrame, names: Iterable[str], row: int) -> str:
    return ", ".join(f"{name} = {frame[name][row]}" for name in names)
