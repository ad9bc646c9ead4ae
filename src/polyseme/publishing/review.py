"""The final review of a release, when all rows are written and not visible yet.

Models that do not hold on these rows stop it. Quasi-identifiers that go out as they are do not, since that may be what
the owner wants, but the review counts and reports what that means.

It also looks at columns that are declared insensitive and single out records, such as a telephone number. What is
published as it is can be known to others, whatever the policy calls it. A column that alone distinguishes nearly every
record from all others is refused. A column that does so for some records is named in a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.grouping.application import unreached
from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import Problem, RiskError
from polyseme.models import Verdict
from polyseme.publishing.prospect import Prospect
from polyseme.release import AsIs, Column, Generalized, Manifest, Release, Sets
from polyseme.release.classes import verdicts_on
from polyseme.schema import Role
from polyseme.tables.codes import as_series
from polyseme.tables.distinct import Fingerprints, all_counts, class_sizes, fingerprints, mixed
from polyseme.tables.io.source import CountedRows, Source
from polyseme.tables.readings import plain_text

__all__ = ["Exposure", "Review", "SingledOut", "refused_models", "singled_out"]

_HELD = 4_000_000
"""Fingerprints that are held (32 MB); of more rows, a share of the classes is looked at."""
_SAFE = 5
"""Records that should share a combination; what a policy is advised to ask for."""
_NAMED = 6
"""Columns that a warning names; the rest is meant by two dots."""
_SETS_HINT = "what is promised for sets stands under protect: remove the model, or publish with --accept-risk"
_HINT = (
    "generalize the quasi-identifiers (hierarchy: ..., method: {full-domain: {suppression: 0.05}}), ask for less, or "
    "publish all the same with --accept-risk"
)


@dataclass
class Exposure:
    """How many records can be distinguished by columns that are published as they are.

    Only fingerprints up to `limit` are held. Whole classes are kept or left out like this, so that what is said of
    those that are kept holds for all, but for chance.
    """

    names: tuple[str, ...]
    missing_values: tuple[str, ...] = ("",)
    held: int = _HELD
    rows: int = 0
    limit: int = (1 << 64) - 1
    small: Mapping[int, int] | None = None
    """Where an engine has counted: how many classes have each number of rows that is small."""
    _parts: list[tuple[Fingerprints, Ints | None]] = field(default_factory=list, repr=False)

    def add(self, table: pa.Table, counts: Ints | None = None) -> None:
        """Some more published rows, each once or as often as `counts` says."""
        self.rows += int(table.num_rows if counts is None else counts.sum())
        done = 0
        for batch in table.select(list(self.names)).to_batches():
            first, *others = (_prints(column, self.missing_values) for column in batch.columns)
            found = mixed(first, np.stack(others, axis=1).view(np.int64)) if others else first
            number = None if counts is None else counts[done : done + batch.num_rows]
            done += batch.num_rows
            self._parts.append(_up_to(self.limit, found, number))
        while sum(len(part) for part, _ in self._parts) > self.held and self.limit > 1:
            self.limit //= 2
            self._parts = [_up_to(self.limit, *part) for part in self._parts]

    @property
    def sampled(self) -> bool:
        return self.limit < (1 << 64) - 1

    def records_in_classes_below(self, size: int, rows_per_record: int = 1) -> int:
        """How many records are in classes below `size`; an estimate where not all were held.

        rows_per_record  in the long form, rows of one record are alike
        """
        if self.small is not None:
            sized = ((rows // rows_per_record, classes) for rows, classes in self.small.items())
            return sum(records * classes for records, classes in sized if records < size)
        prints = np.concatenate([np.zeros(0, dtype=np.uint64), *(part for part, _ in self._parts)])
        counts = all_counts([(len(part), number) for part, number in self._parts])
        sizes = class_sizes(prints, counts) // rows_per_record
        share = (self.limit + 1) / float(1 << 64)
        return round(int(sizes[sizes < size].sum()) / share)


def _up_to(limit: int, prints: Fingerprints, counts: Ints | None) -> tuple[Fingerprints, Ints | None]:
    kept = prints <= np.uint64(limit)
    return prints[kept], None if counts is None else counts[kept]


def _prints(column: pa.Array, missing_values: Sequence[str]) -> Fingerprints:
    """Fingerprints of a column's values as text: (n,). Each distinct value is written once."""
    if pa.types.is_nested(column.type):
        return fingerprints(plain_text(as_series(column), missing_values).to_frame())
    coded = column.dictionary_encode()
    # Behind all others stands what is missing: its place may be one more than the type of indices can hold.
    values = pa.concat_arrays([coded.dictionary, pa.nulls(1, coded.dictionary.type)])
    prints = fingerprints(plain_text(as_series(values), missing_values).to_frame())
    indices = pl.Series(coded.indices)
    if indices.null_count():
        indices = indices.cast(pl.Int64).fill_null(len(coded.dictionary))
    places: Ints = indices.to_numpy()
    return prints.take(places)


@dataclass
class Review:
    """What must be looked at in a release before it appears.

    columns          as they are published
    grouped          whether a method put the records into classes or groups
    checked          whether that method has checked the models about them
    rows_per_record  in the long form
    accept_risk      whether models may be missed
    accepted         what else does not hold, and was accepted before anything was written
    prospect         what was counted before anything was written, where it was known whose rows they are
    tell             called with what the owner should know, when all else is well
    population       reads the population, where models count people of one
    """

    columns: tuple[Column, ...]
    missing_values: tuple[str, ...] = ("",)
    grouped: bool = False
    checked: bool = True
    rows_per_record: int = 1
    accept_risk: bool = False
    accepted: tuple[str, ...] = ()
    prospect: Prospect | None = None
    tell: Callable[[Sequence[str]], None] = lambda texts: None
    population: Callable[[], pl.DataFrame | None] = lambda: None
    exposure: Exposure | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        names = tuple(item.name for item in self.columns if _as_it_is(item))
        if names and not self.grouped:
            self.exposure = Exposure(names, self.missing_values)

    @property
    def _weight(self) -> str | None:
        """The column of survey weights, which distinguish records within a class."""
        return next((item.name for item in self.columns if item.attribute.role is Role.WEIGHT), None)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are looked at."""
        return () if self.exposure is None else self.exposure.names

    @property
    def safe(self) -> int:
        return _SAFE

    def seen(self, table: pa.Table) -> None:
        """Rows on their way out."""
        if self.exposure is not None:
            self.exposure.add(table)

    def counted(self, rows: int, small: Mapping[int, int]) -> None:
        """In place of rows, an engine's counts: how many small combinations have how many rows."""
        if self.exposure is not None:
            self.exposure.rows, self.exposure.small = rows, dict(small)

    def passed(self, written: Release) -> Manifest:
        """The manifest of a release that may appear; `RiskError` for one that may not."""
        broken = self._broken(written)
        self._require_reached(written, broken)
        if broken and not self.accept_risk:
            raise RiskError(refused_models(broken, self.columns))
        texts = [f"{_broken(verdict)}. It is published all the same, as --accept-risk says." for verdict in broken]
        if broken or not written.manifest.models:
            texts += self.exposed()
        self.tell(texts)
        accepted = tuple(dict.fromkeys([*(verdict.model for verdict in broken), *self.accepted]))
        manifest, seen = replace(written.manifest, accepted=accepted), self.prospect
        if seen is None:
            return manifest
        applied = None if manifest.applied is None else seen.counted(manifest.applied, self.columns)
        return replace(manifest, people=seen.people, applied=applied)

    def _broken(self, written: Release) -> list[Verdict]:
        """Models that fail, counted by people where known, and by rows, as every reader counts."""
        known = () if self.prospect is None else self.prospect.broken
        named = {(verdict.model, verdict.attribute) for verdict in known}
        rows = [verdict for verdict in self._verdicts(written) if not verdict.holds]
        return [*known, *(verdict for verdict in rows if (verdict.model, verdict.attribute) not in named)]

    def _require_reached(self, written: Release, broken: Sequence[Verdict]) -> None:
        """Refuse groups whose models could only be checked on their rows; no risk is accepted."""
        missed = [verdict for verdict in broken if verdict.attribute not in self._drawn]
        if missed and not self.checked and written.manifest.applied is not None:
            raise unreached(written.manifest.applied.name, missed)

    def _verdicts(self, written: Release) -> tuple[Verdict, ...]:
        """Verdicts of all models except those of classes that a method already checked.

        A survey weight splits these classes, and no method knows of that.
        """
        drawn = self._drawn
        models = [
            model
            for model in written.manifest.models
            if not (self.grouped and self.checked)
            or self._weight is not None
            or any(parameters.get("attribute") in drawn for parameters in model.values())
        ]
        mapped = any("k-map" in model for model in models)
        return verdicts_on(written, models, self.population() if mapped else None) if models else ()

    @property
    def _drawn(self) -> set[str]:
        return {item.name for item in self.columns if isinstance(item, Sets)}

    def exposed(self) -> list[str]:
        """What it means that quasi-identifiers are published as they are; nothing where none is."""
        if self.exposure is None:
            return []
        alone, few, whole, units = self._exposed()
        about = "about " if self.exposure.sampled else ""
        shares = (
            f"{about}{alone:,} of {whole:,} {units} ({alone / max(whole, 1):.1%}) are unique in these "
            f"values, and {about}{few:,} in all share them with at most {_SAFE - 2} others"
            if few
            else f"every combination of values is shared by at least {_SAFE} {units}"
        )
        names = self.exposure.names
        said = (
            f"{_listed(names)} {'is' if len(names) == 1 else 'are'} published as in the table, value by value: "
            f"{shares}. An attacker who knows these values of a person finds "
            f"{'the record' if alone else 'the records'} with {self._found()}. "
        )
        if self._weight is not None:
            said += f"A survey weight tells people apart like any other column: {_coarser(self._weight)}. "
        names = tuple(name for name in names if name != self._weight)
        if not names:
            return [said.rstrip()]
        return [
            f"{said}To generalize them, say in the policy:\n"
            f"  attributes: {{{names[0]}: {{role: quasi-identifier, hierarchy: ...}}}}   "
            "# intervals: [5, 10, 20], dates: [month, year], prefix: 5, taxonomy: NAME, a file, or suppress\n"
            f"  models: [{{k-anonymity: {{k: {_SAFE}}}}}]\n"
            "  method: {full-domain: {suppression: 0.05}}"
        ]

    def _exposed(self) -> tuple[int, int, int, str]:
        """How many records (or people) are unique, how many share with few, and how many there are."""
        seen = None if self.prospect is None else self.prospect.classes
        if seen is not None and seen.people is not None:
            alone, few = (int(seen.sizes[seen.sizes < size].sum()) for size in (2, _SAFE))
            return alone, few, seen.people, "people"
        if self.exposure is None:
            return 0, 0, 0, "records"
        alone, few = (self.exposure.records_in_classes_below(size, self.rows_per_record) for size in (2, _SAFE))
        return alone, few, self.exposure.rows // self.rows_per_record, "records"

    def _found(self) -> str:
        """What stands in a record beside what was known."""
        sets = [f"{item.l} candidates for {item.name}" for item in self.columns if isinstance(item, Sets)]
        others = sum(isinstance(item, AsIs) and not _as_it_is(item) for item in self.columns)
        more = [f"{others} other {'column' if others == 1 else 'columns'} as in the table"] if others else []
        return " and ".join([_listed(sets), *more])


def refused_models(broken: Sequence[Verdict], columns: Sequence[Column]) -> list[Problem]:
    """Why rows are not published on which models do not hold, and what can be done."""
    drawn = {item.name for item in columns if isinstance(item, Sets)}
    weight = next((item.name for item in columns if item.attribute.role is Role.WEIGHT), None)
    hint = _HINT if weight is None else f"{_weight_hint(weight)}; or drop it (role: identifier); {_HINT}"
    return [
        Problem("$.models", _broken(verdict), _SETS_HINT if verdict.attribute in drawn else hint) for verdict in broken
    ]


def _as_it_is(column: Column) -> bool:
    return isinstance(column, AsIs) and column.attribute.role.tells_apart


def _weight_hint(weight: str) -> str:
    return f"the survey weight '{weight}' tells records apart too: {_coarser(weight)}"


def _coarser(weight: str) -> str:
    return (
        "round and trim it (more), so that more records share each weight: "
        f"attributes: {{{weight}: {{role: weight, round: ..., trim: ...}}}}"
    )


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:_NAMED])}{', ...' if len(names) > _NAMED else ''}"


def _broken(verdict: Verdict) -> str:
    """Which model does not hold, and by how much."""
    about = f" of {verdict.attribute}" if verdict.attribute else ""
    parameters = ", ".join(f"{name} = {value}" for name, value in verdict.parameters.items() if name != "attribute")
    worst = verdict.note or f"the worst class has {verdict.worst:.4g}, required is {verdict.bound:.4g}"
    worst += ", counted by people" if verdict.counts == "people" else ""
    return f"{verdict.model}{about} ({parameters}) does not hold on the rows that would be published: {worst}"


_REFUSED = 0.95
"""The share of records with a value of their own from which on a column identifies them."""
_FEWEST = 100
"""Records from which on that is no accident."""
_WARNED, _TELLING = 0.05, 20
"""The share from which on a column is warned of, in a table of at least so many records; a judgment."""
_HELD_UNIQUE = 500_000
"""Fingerprints of a column that are held (4 MB); of longer tables, a share of the values is looked at."""
_ADVICE = "Drop it (role: identifier), or let it count as what others know (role: quasi-identifier)."
_UNIQUE_HINT = "drop it: role: identifier; --accept-risk publishes it all the same"


@dataclass(frozen=True)
class SingledOut:
    """Insensitive columns that single out records: refused ones, and warnings on others."""

    refused: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()

    def require_accepted(self, accept_risk: bool) -> list[str]:
        """Warnings for the data holder; `RiskError` for columns that were not accepted."""
        if self.refused and not accept_risk:
            raise RiskError(self.refused)
        accepted = (f"{found.what}. It is published all the same, as --accept-risk says." for found in self.refused)
        return [*accepted, *self.warnings]


def singled_out(columns: Sequence[Column], source: Source, missing_values: tuple[str, ...]) -> SingledOut:
    """The columns of a table that would be published as insensitive, each looked at by itself."""
    names = [item.name for item in columns if _insensitive(item)]
    head = source.head(names) if names else None
    if head is None:
        return SingledOut()
    refused: list[Problem] = []
    warnings: list[str] = []
    first = _alone(names, missing_values, [(head, None)])
    # Further rows only make values less rare: where few are alone in the first ones, nothing else is read.
    telling = [name for name, alone in first.items() if alone.share >= _WARNED]
    for name, alone in _alone(telling, missing_values, source.counted(telling) if telling else ()).items():
        if alone.identifying:
            refused.append(Problem(f"$.attributes.{name}.role", alone.in_words(name), _UNIQUE_HINT))
        elif alone.share >= _WARNED and alone.exposure.rows >= _TELLING:
            warnings.append(f"{alone.in_words(name)}. {_ADVICE}")
    return SingledOut(tuple(refused), tuple(warnings))


def _insensitive(column: Column) -> bool:
    return column.attribute.role is Role.INSENSITIVE and isinstance(column, AsIs | Generalized)


@dataclass(frozen=True)
class _Alone:
    """Records whose value of a column no other record has."""

    exposure: Exposure

    @property
    def share(self) -> float:
        return self.exposure.records_in_classes_below(2) / max(self.exposure.rows, 1)

    @property
    def identifying(self) -> bool:
        return self.exposure.rows >= _FEWEST and self.share >= _REFUSED

    def in_words(self, name: str) -> str:
        about = "about " if self.exposure.sampled else ""
        return (
            f"'{name}' is published as it is (role: insensitive), and {about}{min(self.share, 1.0):.1%} of "
            f"{self.exposure.rows:,} records have a unique value in it: an attacker who knows it finds the record"
        )


def _alone(names: Sequence[str], missing_values: tuple[str, ...], rows: Iterable[CountedRows]) -> dict[str, _Alone]:
    """Each of the columns by itself, all in one reading."""
    found = {name: _Alone(Exposure((name,), missing_values, _HELD_UNIQUE)) for name in names}
    for batch, counts in rows:
        for name, alone in found.items():
            alone.exposure.add(pa.Table.from_batches([batch.select([name])]), counts)
    return found
