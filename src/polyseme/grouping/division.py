"""Grouping methods for tables that no machine holds, decided from counts or in workers.

*Mondrian in workers* is for tables of which no machine holds even the different records. First cuts come from a sample,
the rest is done in the workers.

    made = divide(policy, resolved, source, workers, rows, different)   # as `treat` gives it for smaller tables

    each column by itself   counted                         how rows become codes
    a sample                brought here                    the first cuts: boxes with about equally many records
    part, sensitive values  counted, exactly                parts that do not reach the goal are joined
    part, all codes         counted, and put together by    the cuts of each part, and how far its classes reach
                            part: workers finish the parts
    all cuts                brought here                    one tree, which is a rule for any record

No worker sends a record, or writes one: what comes back is a tree of cuts. Every class reaches the goal, whatever the
sample was, since each part does before it is cut, and is compared with the whole table where models do that.

Workers hold the rows of a table. A verb gives them small functions that can be pickled. Any of these may run again, or
twice at the same time, so that nothing is drawn there but the sample, which is drawn once and brought here.

Other grouping methods decide from counts and are applied batch by batch:

    made = treat_counted(policy, resolved, source)    # source.counted(columns) yields different rows and their counts
    made.columns, made.applied, made.models           # for the job and the manifest, as `treat` gives them
    made.apply(batch)                                 # what a batch shows: in any task, of any rows, in any order
    made.rule.recode(batch)                           # the same, and which of the batch's rows are kept

`treat` of a table on this machine is the same code: it reads the rows that differ and how often each occurs, decides,
and recodes batch by batch. So both decide alike from the same records. `made.rule` is a frozen object of some
kilobytes that can be pickled (`made.apply` is its method); it looks at the columns `made.rule.needs`, replaces those in
`made.recoded`, leaves out records that lack a value or are withheld, and passes every other column through.

    full-domain       from counts of records that are alike; nothing is lost
    mondrian          the same in the strict mode. Where more than `HELD` rows differ and the engine has workers, the
                      table is cut in parts by a sample, and workers finish them: see above. What
                      comes of it is the same kind of rule. The relaxed mode is refused
    anatomy, buckets  from counts of sensitive values. Which record is in which group is drawn, and needs two aggregates
                      and a join: `made` is then a `Assigned`, see `polyseme.grouping.groups`
    rules             needs single records, and is refused
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.grouping.application import no_levels, promised, required_of_classes, treat
from polyseme.grouping.base_table import Coding, ReadColumns, columns_read, read_columns
from polyseme.grouping.columns import Treated, domain_labels, ruled
from polyseme.grouping.groups import Assigned, deal_counted
from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import ImpossibleError, Problem, TableError
from polyseme.kernel.randomness import SystemStream
from polyseme.kernel.spelling import Label
from polyseme.kernel.work import Cancellation, current_cancellation, stage
from polyseme.methods import grouping_named
from polyseme.methods.goal import DealingMethod, Goal, require_goal
from polyseme.methods.microdata import Ladder, Microdata, Sensitive
from polyseme.methods.mondrian import Branch, Division, Grafted, cut_part, divided, grafted, settled
from polyseme.methods.mondrian.parts import SAMPLE
from polyseme.models import Background, background_of
from polyseme.policy import MethodSpec, Policy
from polyseme.policy.resolution import match_columns
from polyseme.release import Applied, Manifest
from polyseme.schema import Resolved
from polyseme.tables.equivalence_classes import Counts
from polyseme.tables.io.source import Source

__all__ = ["CLASSES", "HELD", "PART_ROWS", "Hire", "Work", "Workers", "divide", "require_treated", "treat_counted"]

Found = TypeVar("Found")


class Work(Protocol):
    """What becomes of any batch of a table: rows of whole numbers, the last one a count."""

    @property
    def names(self) -> Sequence[str]:
        """Of the columns that come of it."""

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch: ...


class Workers(Protocol):
    """Some columns of a table, read where its rows are."""

    def different(self) -> int:
        """How many different rows there are."""

    def sample(self, share: float, seed: int) -> Iterable[pa.RecordBatch]:
        """About this share of the rows, each drawn for itself; all of them from 1 on."""

    def summed(self, work: Work) -> Iterable[pa.RecordBatch]:
        """What comes of all batches; rows that are alike are put together, and their counts summed."""

    def finished(self, work: Work, finish: Callable[[pa.RecordBatch], Found], parts: int) -> Iterable[Found]:
        """The same rows by their first column, and what a function makes of the rows of each value.

        parts  how many values there are, about
        """


Hire: TypeAlias = Callable[[Sequence[str]], Workers | None]
"""Finds workers for some columns of a table; None where there are none that could read them."""


PART_ROWS = 1_000_000
"""Different rows of a part, about: a worker cuts them in some ten seconds, in some hundred megabytes."""
CLASSES = 5_000_000
"""Classes beyond which no tree is made: it is held here and by every worker that recodes records, at about 60 bytes for
each class, and goes with every task at about 15; a Spark Connect server takes no message beyond 128 MB."""
_UNEVEN = 4
"""How many times its share of all classes a part may have before it only says how many."""
_SAMPLED = 500
"""Records of the sample that each part has at least, about."""
_PART, _COUNT = "part", "count"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class _Counted:
    """The rows of a batch as codes: part, leaves where needed, and sensitive values."""

    coding: Coding
    division: Division
    leaves: bool

    @property
    def names(self) -> list[str]:
        leaves = _leaves(len(self.coding.hierarchies)) if self.leaves else []
        return [_PART, *leaves, *_values(len(self.coding.domains)), _COUNT]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        _, leaves, secret = self.coding.coded(batch)
        columns = [self.division.parts_of(leaves), *(leaves.T if self.leaves else ()), *secret.values()]
        keys = self.names[:-1]
        rows = pl.DataFrame({name: codes.astype(np.int64) for name, codes in zip(keys, columns, strict=True)})
        summed = rows.group_by(keys).agg(pl.len().cast(pl.Int64).alias(_COUNT))
        return pa.RecordBatch.from_arrays([series.rechunk().to_arrow() for series in summed], names=summed.columns)


def _leaves(count: int) -> list[str]:
    return [f"q{place}" for place in range(count)]


def _values(count: int) -> list[str]:
    return [f"s{place}" for place in range(count)]


@dataclass(frozen=True, eq=False)
class _Finish:
    """Cuts a part. It can be pickled.

    ladders     of the quasi-identifiers
    domains     the values of each sensitive attribute
    models      what classes must reach, and what is known beside the table
    totals      the whole table as one class for each sensitive attribute
    room        classes for each record beyond which only their number is returned
    """

    ladders: tuple[Ladder, ...] = field(repr=False)
    domains: Mapping[str, tuple[Label, ...]] = field(repr=False)
    models: tuple[Mapping[str, Any], ...]
    background: Background = field(repr=False)
    totals: Mapping[str, Counts] = field(default_factory=dict, repr=False)
    room: float = np.inf

    def __call__(self, batch: pa.RecordBatch) -> _Piece:
        part = int(batch.column(_PART)[0].as_py())
        data = self.data(batch, self.ladders)
        try:
            branch = cut_part(data, self.goal(data), self.totals)
        except ImpossibleError:
            # It did before, so the table is another one now.
            return _Piece(part, data.records, 0, None)
        classes = len(branch.ends)
        return _Piece(part, data.records, classes, branch if classes <= self.room * data.records else None)

    def data(self, rows: pa.RecordBatch, ladders: tuple[Ladder, ...] = ()) -> Microdata:
        """Counted rows; without ladders, of their sensitive values only."""
        read = {name: pl.Series(rows.column(name)).to_numpy() for name in rows.schema.names}
        codes = np.empty((rows.num_rows, len(ladders)), dtype=np.int32)
        for place, name in enumerate(_leaves(len(ladders))):
            codes[:, place] = read[name]
        secret = {name: read[column] for name, column in zip(self.domains, _values(len(self.domains)))}
        return Microdata(ladders, codes, self.sensitive(secret), counts=read[_COUNT])

    def sensitive(self, codes: Mapping[str, Ints]) -> dict[str, Sensitive]:
        """The sensitive attributes of some records, from their codes."""
        return {name: Sensitive(name, codes[name], values) for name, values in self.domains.items()}

    def goal(self, data: Microdata) -> Goal:
        """What classes of some records must reach."""
        return Goal.of(self.models, data, self.background)


@dataclass(frozen=True)
class _Piece:
    """A worker's result for its part; no branch if it has too many classes, or none was formed."""

    part: int
    records: int
    classes: int
    branch: Branch | None = field(repr=False)


def divide(
    policy: Policy,
    resolved: Resolved,
    source: Source,
    workers: Workers,
    rows: int,
    different: int,
    seed: int | None = None,
) -> Treated:
    """Cut a table in parts that workers finish.

    workers    who read its quasi-identifiers and sensitive attributes
    rows       how many it has
    different  how many differ in these columns
    seed       of the sample, for experiments
    """
    spec = policy.grouping
    if spec is None or spec.name != "mondrian" or spec.parameters["mode"] != "strict":
        raise ValueError("only the strict mode of mondrian works in parts")
    read = read_columns(match_columns(policy, source), resolved.schema, source)
    models = promised(policy, grouping_named(spec.name), spec, {item.name: item for item in read.sensitive})
    parts = max(-(-different // PART_ROWS), 1)
    _log.info("mondrian: %d different rows, in about %d parts", different, parts)
    finish = _finish(read, required_of_classes(policy, resolved))
    first = _first_cuts(read, workers, finish, rows, parts, seed)
    division, goal = _settled(first, read, workers, finish)
    found = _grafted(division, goal, read, workers, finish)
    _require_apart(found, goal, spec)
    applied = Applied(spec.name, spec.parameters, classes=found.classes)
    return ruled(read, source, found.tree, found.cells, applied, _records(goal), models)


def _finish(read: ReadColumns, models: Sequence[Mapping[str, Any]]) -> _Finish:
    domains = {item.name: tuple(domain_labels(item).to_pylist()) for item in read.sensitive}
    return _Finish(read.ladders, domains, tuple(models), background_of(read.sensitive))


def _first_cuts(
    read: ReadColumns, workers: Workers, finish: _Finish, rows: int, parts: int, seed: int | None
) -> Division:
    """Parts as a sample cuts them; whether they reach anything is not known yet."""
    share = max(SAMPLE, _SAMPLED * parts) / max(rows, 1)
    stream = SystemStream() if seed is None else SystemStream.seeded(f"{seed} sample")
    with stage("sample", "Drawing a sample"):
        sample = workers.sample(share, int(stream.integers(1 << 62, 1)[0]))
        pieces = [read.coding.coded(batch)[1:] for batch in sample]
    none = np.zeros((0, len(read.ladders)), dtype=np.int64)
    leaves = np.concatenate([none, *(leaves for leaves, _ in pieces)])
    secret = {name: np.concatenate([none[:, 0], *(found[name] for _, found in pieces)]) for name in finish.domains}
    data = Microdata(read.ladders, leaves, finish.sensitive(secret))
    # Where classes that look alike may fail together, there should be few of them.
    return divided(data, parts, halved=finish.goal(data).additive)


def _settled(division: Division, read: ReadColumns, workers: Workers, finish: _Finish) -> tuple[Division, Goal]:
    """Parts that reach the goal, and the goal for the counts of all records."""
    with stage("values", "Counting values in each part"):
        tallies = list(workers.summed(_Counted(read.coding, division, leaves=False)))
    rows = pa.Table.from_batches(tallies).combine_chunks().to_batches() if tallies else []
    if not rows:
        raise TableError("no records to publish")
    data = finish.data(rows[0])
    goal = finish.goal(data)
    require_goal(goal, "mondrian")
    return settled(division, pl.Series(rows[0].column(_PART)).to_numpy(), goal), goal


def _grafted(division: Division, goal: Goal, read: ReadColumns, workers: Workers, finish: _Finish) -> Grafted:
    """All parts finished, as one tree."""
    work, records = _Counted(read.coding, division, leaves=True), _records(goal)
    finish = replace(finish, totals=goal.totals(), room=_UNEVEN * CLASSES / records)
    pieces = _pieces(division, workers, work, finish, records)
    if any(piece.branch is None for piece in pieces):
        # Together they are few enough, after all.
        pieces = _pieces(division, workers, work, replace(finish, room=np.inf), records)
    with stage("together", "Putting parts together"):
        branches = {piece.part: piece.branch for piece in pieces if piece.branch is not None}
        return grafted(division, branches, read.ladders)


def _pieces(division: Division, workers: Workers, work: _Counted, finish: _Finish, records: int) -> list[_Piece]:
    """What workers say of all parts; refuses more classes than fit into memory."""
    numbers = division.numbers
    with stage("parts", "Cutting parts", len(numbers)) as progress:
        pieces = list(workers.finished(work, finish, len(numbers)))
        progress.advance(len(pieces))
    changed = [piece for piece in pieces if not piece.classes]
    there = sorted(piece.part for piece in pieces) == numbers.tolist()
    if changed or not there or sum(piece.records for piece in pieces) != records:
        raise TableError(
            "the table changed while it was read, or the frame is not the same each time it is computed",
            "nothing was published; try again, or write the frame to files first",
        )
    classes = sum(piece.classes for piece in pieces)
    if classes > CLASSES:
        what = f"{classes:,} classes would be formed, more than the {CLASSES:,} that every worker can be told of"
        raise ImpossibleError(Problem("$.method.mondrian", what, "ask for larger classes (k), or use full-domain"))
    return pieces


def _require_apart(found: Grafted, goal: Goal, spec: MethodSpec) -> None:
    """Raise where classes of two parts look alike, and their union may not reach the goal.

    A sample does not see every branch of a hierarchy. One that it has not seen is in some part beside others, and both
    may be shown as what is above them, as those of another part are. For most models that does no harm.
    """
    if goal.additive or found.classes == found.ends:
        return
    names = ", ".join(demand.name for demand in goal.demands if demand.merging == "neither")
    what = f"classes of two parts of the table look alike, and together need not meet {names}"
    raise ImpossibleError(Problem(f"$.method.{spec.name}", what, "try again with another sample, or use full-domain"))


def _records(goal: Goal) -> int:
    return 0 if goal.weights is None else int(goal.weights.sum())


HELD = 20_000_000
"""Rows that differ up to which Mondrian cuts them here. Brought as counts and made into codes, with what the search and
the last check need beside them, two million rows of five columns took 0.9 GB more here than in parts: so many are some
10 GB, and some minutes of one core."""


def treat_counted(
    policy: Policy,
    resolved: Resolved,
    source: Source,
    cancellation: Cancellation | None = None,
    earlier: Manifest | None = None,
    hire: Hire | None = None,
    seed: int | None = None,
) -> Treated | Assigned:
    """Decide from counts what records show.

    Refuses a method that has to look at each record by itself.

    earlier  a release whose levels of generalization are taken over, so that nothing is searched
    hire     finds those who work where the rows are, for tables that are cut in parts
    seed     of the sample by which these are found, for experiments
    """
    spec = policy.grouping
    if spec is None:
        raise ValueError("the policy names no grouping method")
    method = grouping_named(spec.name)
    if isinstance(method, DealingMethod):
        if earlier is not None:
            raise no_levels()
        return deal_counted(policy, resolved, source)
    if not method.counts(spec.parameters):
        raise ImpossibleError(_needs_records(spec))
    if spec.name == "mondrian" and hire is not None and earlier is None and (rows := source.count()) > HELD:
        workers = hire(columns_read(match_columns(policy, source)))
        different = 0 if workers is None else _different(workers)
        if workers is not None and different > HELD:
            _require_one_each(policy, hire, rows)
            return divide(policy, resolved, source, workers, rows, different, seed)
    return treat(policy, resolved, source, None, cancellation or current_cancellation(), earlier)


def _require_one_each(policy: Policy, hire: Hire, rows: int) -> None:
    """Refuse to divide a table in which people have several records: parts count independently."""
    workers = None if policy.record_key is None else hire([policy.record_key])
    people = rows if workers is None else _different(workers)
    if people < rows:
        what = f"{rows:,} records are of {people:,} people, who can be counted only where one machine holds the table"
        raise ImpossibleError(
            Problem("$.method.mondrian", what, "publish one record for each person, and remove record-key")
        )


def _different(workers: Workers) -> int:
    with stage("differing", "Counting rows that differ"):
        return workers.different()


def require_treated(made: Treated | Assigned, spec: MethodSpec) -> Treated:
    """Raise for groups formed by workers, where an engine does not support that."""
    if isinstance(made, Assigned):
        what = "who is in which group follows from ranks over all records, which this engine does not work out"
        raise ImpossibleError(Problem(f"$.method.{spec.name}", what, "use --engine local, or full-domain"))
    return made


def _needs_records(spec: MethodSpec) -> Problem:
    """Why a method cannot work on counts, and what can be done."""
    where = f"$.method.{spec.name}"
    local = "run it on one machine with enough memory (--engine local)"
    if spec.name == "mondrian":
        what = "the relaxed mode separates records with equal values by lot, which needs the whole table on one machine"
        return Problem(f"{where}.mode", what, f"use mode: strict, or {local}")
    if spec.name == "rules":
        what = "its actions merge classes and take away values of single records, which needs the whole table"
        return Problem(where, f"{what} on one machine", f"{local}, or use full-domain or mondrian")
    return Problem(where, "it looks at single records, which needs the whole table on one machine", local)
