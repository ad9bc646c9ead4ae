"""The records of a release as the variables of a formula, and the regression on them.

Protected attributes have a number or category for each value of their domain, open columns one for each record. So
everything in a formula is an array over records and protected values, of which the contributions of the sets take
the expectation (see `scores`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Never, get_args

import numpy as np
import polars as pl
from scipy import special

from polyseme.inference.base import refuse_unknown
from polyseme.inference.questions.classes import suppression_notes
from polyseme.inference.questions.counts import WEIGHT, Mark, Weights, check_drawn, coarser_weights, grouped_sets
from polyseme.inference.regression.formula import (
    Expression,
    Factor,
    Formula,
    Frame,
    Variable,
    parse_condition,
    parse_formula,
)
from polyseme.inference.regression.scores import FAMILIES, Family, Fitted, NoRoot, ScoreData, fit_scores
from polyseme.inference.regression.working import SetScores, fitted_shares, folds_of, given_shares
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import Problem, QuestionError, ReleaseError, nearest
from polyseme.kernel.spelling import written
from polyseme.kernel.work import stage, verb
from polyseme.publishing.inputs import release_given
from polyseme.release import Column, Generalized, Grouped, Manifest, Release, Sets
from polyseme.release.release import stratum_column
from polyseme.results.regression import Regression
from polyseme.results.table import Population
from polyseme.schema import Bins, Domain
from polyseme.semantics.distances import LineDistance
from polyseme.tables.codes import without_words

__all__ = ["FormulaDesign", "Positions", "RegressOptions", "regress", "regression_of"]

_log = logging.getLogger(__name__)

Positions = Mapping[str, Sequence[float] | Mapping[str, float]]
"""Numbers for the values of attributes, in the order of their domain or by label."""

_EACH = 5
"""Effective records that a parameter needs at least. A judgment: the look at the Hessian refuses what is left."""
_SINGLE = 10_000
"""Records up to which each has a row of its own."""
_VALUES = 20_000
"""Most combinations of protected values in one formula."""
_LEVELS = 20
"""Most levels of an open column that the working distribution distinguishes; the rarer ones are one."""


@dataclass(frozen=True)
class RegressOptions:
    """How a regression is to be fitted.

    family      of the outcome
    where       the records to use; None for all
    positions   numbers for the values of attributes
    population  "super": the population the records were drawn from; "finite": the people in the table
    level       of the intervals
    cluster     a column of people with several records, whose errors are counted by person
    unweighted  whether records are counted also where the release has survey weights
    working     "fitted": working distributions given the other columns; "reference": the one that the design is
                balanced for, with which contributions are those of `inverse`
    """

    family: Family = "linear"
    where: str | None = None
    positions: Positions | None = None
    population: Population = "super"
    level: float = 0.95
    cluster: str | None = None
    unweighted: bool = False
    working: str = "fitted"

    def problems(self) -> Iterator[Problem]:
        """What is wrong with them."""
        level: Any = self.level
        if not isinstance(level, int | float) or not 0.0 < level < 1.0:
            yield Problem("level", f"a level lies between 0 and 1, not {level!r}")
        for word, given, choices in (
            ("family", self.family, FAMILIES),
            ("population", self.population, get_args(Population)),
            ("working", self.working, ("fitted", "reference")),
        ):
            if given not in choices:
                yield Problem(word, f"'{given}' is not a choice", nearest(str(given), choices))


def regression_of(release: Release, text: str, options: RegressOptions) -> Regression:
    """The coefficients of a formula."""
    problems, formula, condition = list(options.problems()), None, None
    try:
        formula, flaws = parse_formula(text)
        problems += flaws
    except QuestionError as error:
        problems += error.problems
    try:
        condition = None if options.where is None else parse_condition(options.where)
    except QuestionError as error:
        problems += error.problems
    if formula is None:
        raise QuestionError(problems)
    if release.manifest.form == "long":
        raise QuestionError(
            "the long form does not show which candidates belong together",
            "publish the set form: polyseme anonymize --form set",
        )
    with stage("read", "Reading the records"):
        records = _Records.read(release, formula, condition, options, problems)
    with stage("fit", "Fitting the regression"):
        return _Question(release, formula, records, options).answer()


@dataclass(frozen=True, eq=False)
class _Records:
    """Distinct records with their sets.

    open     the open columns that the formula or the filter names
    dropped  records without a value in one of them
    """

    frame: Frame
    items: tuple[Sets, ...]
    sets: tuple[Ints, ...]
    places: tuple[Ints, ...]
    counts: Ints
    weights: Floats | None
    cluster: Ints | None
    filters: tuple[Expression, ...]
    absent: tuple[tuple[int, Bools], ...]
    dropped: int
    notes: tuple[str, ...]

    @classmethod
    def read(
        cls,
        release: Release,
        formula: Formula,
        condition: Expression | None,
        options: RegressOptions,
        problems: Sequence[Problem] = (),
    ) -> _Records:
        """What a formula and a filter name; everything that is wrong with them at once."""
        manifest = release.manifest
        names = dict.fromkeys([*formula.names, *(() if condition is None else condition.names)])
        homes = _homes(manifest)
        problems = [*problems, *_unusable(manifest, names, options)]
        used = [name for name in names if name in homes]
        items = tuple(dict.fromkeys(homes[name][0] for name in used))
        open_names = [name for name in names if name not in homes and _is_open(manifest, name)]
        extra = [options.cluster] if options.cluster is not None and _is_open(manifest, options.cluster) else []
        weight = None if options.unweighted else manifest.weight
        marks: dict[str, Mark] = {stratum_column(item): item.strata for item in items if item.stratified}
        if weight is not None:
            marks[WEIGHT] = Weights(weight)
        grouped = grouped_sets(release, items, list(dict.fromkeys([*open_names, *extra])), marks)
        cells = grouped.cells
        for name in (*open_names, *extra):
            cells = cells.with_columns(without_words(cells[name], manifest.missing_values).alias(name))
        whole = cells.select(open_names).null_count().sum_horizontal().to_list() if open_names else [0]
        kept, cell = np.ones(len(grouped.counts), dtype=np.bool_), grouped.cell
        if any(whole):
            present = cells.select(~pl.any_horizontal(pl.col(name).is_null() for name in open_names)).to_series()
            kept = present.to_numpy()[cell]
        dropped = int(grouped.counts[~kept].sum())
        rows = np.flatnonzero(kept)
        data = cells[cell[rows]] if cells.width else cells
        variables = {name: _open_variable(manifest[name], data[name], options.positions) for name in open_names}
        notes, absent = list[str](), list[tuple[int, Bools]]()
        for name in used:
            item, domain, codes = homes[name]
            variable, said = _protected_variable(name, items.index(item), item, domain, codes, options.positions)
            if variable.numbers is not None and np.isnan(variable.numbers).any():
                absent.append((variable.axis or 0, np.isnan(variable.numbers)))
                variable = replace(variable, numbers=np.nan_to_num(variable.numbers))
            variables[name] = variable
            notes += said
        frame = Frame(
            variables,
            tuple(item.domain.size for item in items),
            (*homes, *filter(lambda name: name not in homes, manifest.names)),
        )
        for expression in formula.expressions:
            problems += expression.problems(frame, "formula")
        if condition is not None:
            problems += condition.problems(frame, "where", "truth")
        if problems:
            raise QuestionError(problems)
        numeric = {name for each in formula.expressions for name in each.numeric_names()}
        numeric |= set() if condition is None else set(condition.numeric_names())
        found = cls(
            frame,
            items,
            tuple(sets[rows] for sets in grouped.sets),
            tuple(_place(item, data, len(rows)) for item in items),
            grouped.counts[rows],
            data[WEIGHT].to_numpy().astype(np.float64) if weight is not None else None,
            _people(data, options.cluster),
            (),
            tuple(
                (axis, gone)
                for axis, gone in absent
                if any(variables[name].axis == axis for name in numeric & set(used))
            ),
            dropped,
            tuple(dict.fromkeys(notes)),
        )
        found._check_sets()
        found = found if condition is None else found._filtered(condition)
        return found._among(np.repeat(np.arange(len(found.counts)), found.counts)) if found._is_small() else found

    def _is_small(self) -> bool:
        """Whether each record has a row of its own, so that folds can be drawn by records."""
        return int(self.counts.sum()) <= _SINGLE

    def _check_sets(self) -> None:
        for item, sets, place in zip(self.items, self.sets, self.places):
            for number in np.unique(place):
                stratum, mine = item.strata.members[number], sets[place == number]
                if stratum.forbids[mine].any():
                    raise ReleaseError(
                        f"column '{item.name}': some sets hold a value that is impossible for their record",
                        "run polyseme verify to see how many",
                    )
                check_drawn(item, stratum.mechanism, stratum.narrow(mine))

    def _filtered(self, condition: Expression) -> _Records:
        """Records that fulfill what is said about open columns; the rest is left for later."""
        kept, later = np.ones(len(self.counts), dtype=np.bool_), []
        for part in condition.parts():
            if any(self.frame.variables[name].axis is not None for name in part.names):
                later.append(part)
            else:
                held = part.values(self.frame, slice(None))[:, 0] != 0
                kept &= np.broadcast_to(held, kept.shape)
        if not kept.any():
            raise QuestionError(Problem("where", "no record fulfills the condition", "widen it"))
        return replace(self, filters=tuple(later))._among(np.flatnonzero(kept))

    def _among(self, rows: Ints) -> _Records:
        """Some rows; one that comes several times is a record each time."""
        times = np.bincount(rows, minlength=len(self.counts))
        variables = {name: _among(variable, rows) for name, variable in self.frame.variables.items()}
        return replace(
            self,
            frame=replace(self.frame, variables=variables),
            sets=tuple(sets[rows] for sets in self.sets),
            places=tuple(place[rows] for place in self.places),
            counts=(self.counts // np.maximum(times, 1))[rows],
            weights=None if self.weights is None else self.weights[rows],
            cluster=None if self.cluster is None else np.unique(self.cluster[rows], return_inverse=True)[1],
        )

    def features(self) -> Floats:
        """The open columns as numbers, for the working distributions."""
        columns = []
        for variable in self.frame.variables.values():
            if variable.axis is not None:
                continue
            if variable.numbers is not None:
                columns.append(variable.numbers)
            else:
                codes, labels = variable.categories
                often = np.argsort(-np.bincount(codes, weights=self.counts, minlength=len(labels)), kind="stable")
                columns += [(codes == code).astype(np.float64) for code in often[: _LEVELS - 1]]
        return np.column_stack(columns) if columns else np.zeros((len(self.counts), 0))


def _homes(manifest: Manifest) -> dict[str, tuple[Sets, Domain, Ints]]:
    """Every protected name: its column, its values, and what each published value means."""
    homes = {}
    for item in manifest.sets:
        homes[item.name] = (item, item.domain, np.arange(item.domain.size))
        for member in item.attribute.members:
            homes[member.name] = (item, member.domain, np.array(member.codes))
    return homes


def _is_open(manifest: Manifest, name: str) -> bool:
    return name in manifest.names and not isinstance(manifest[name], Sets | Grouped)


def _unusable(manifest: Manifest, names: Iterable[str], options: RegressOptions) -> Iterator[Problem]:
    """Columns that no regression can use, and options about columns that are not there."""
    for name in names:
        if name in manifest.names and isinstance(manifest[name], Grouped):
            yield Problem(
                "formula",
                f"'{name}' is published by group: it is not known which record has which value",
                "estimate a cross-tabulation: polyseme estimate --of " + name,
            )
    homes = _homes(manifest)
    for name, given in (options.positions or {}).items():
        if name not in homes and not _is_open(manifest, name):
            yield Problem("positions", f"no column '{name}' in this release", nearest(name, [*homes, *manifest.names]))
        elif not isinstance(given, Mapping) and name not in homes:
            yield Problem("positions", f"'{name}' has no listed order", f"name its labels: {name}=LABEL:5,LABEL:15")
        elif not isinstance(given, Mapping) and len(given) != homes[name][1].size:
            size = homes[name][1].size
            yield Problem("positions", f"{len(given)} numbers for the {size} values of '{name}'", "one each, in order")
        elif not all(np.isfinite(number) for number in (given.values() if isinstance(given, Mapping) else given)):
            yield Problem("positions", f"a position of '{name}' is not a finite number")
    if options.cluster is not None and not _is_open(manifest, options.cluster):
        open_names = [name for name in manifest.names if _is_open(manifest, name)]
        yield Problem(
            "cluster", f"no open column '{options.cluster}' in this release", nearest(options.cluster, open_names)
        )


def _open_variable(column: Column, series: pl.Series, positions: Positions | None) -> Variable:
    """An unchanged or generalized column; texts that are numbers enter as numbers."""
    name, given = column.name, (positions or {}).get(column.name)
    if isinstance(given, Mapping):
        texts = series.cast(pl.String)
        missing = sorted(set(texts.unique().to_list()) - set(given))
        if missing:
            raise QuestionError(
                Problem("positions", f"{len(missing)} labels of '{name}' have none", "give one to each")
            )
        numbers = texts.replace_strict(list(given), list(given.values()), return_dtype=pl.Float64).to_numpy()
        return Variable(name, None, numbers)
    if series.dtype.is_numeric() or series.dtype == pl.Boolean:
        return Variable(name, None, series.cast(pl.Float64).to_numpy())
    if series.dtype == pl.String and not series.str.contains(r"^\s*[+-]?0\d").any():
        parsed = series.str.strip_chars().cast(pl.Float64, strict=False)
        if not parsed.null_count() and parsed.is_finite().all():
            return Variable(name, None, parsed.to_numpy())
    why = ("its values are texts", "compare it with a text, or write C({name})")
    if isinstance(column, Generalized):
        why = (
            "it is published as ranges or branches",
            "give numbers: --positions {name}=LABEL:25,LABEL:35, or use C({name})",
        )
    elif series.dtype.is_temporal():
        why = ("its values are dates", "write C({name})")
    return _categories(name, series.cast(pl.String), why)


def _categories(name: str, series: pl.Series, why: tuple[str, str]) -> Variable:
    labels = series.unique().sort()
    codes = series.replace_strict(labels, np.arange(len(labels)), return_dtype=pl.Int64).to_numpy()
    return Variable(name, None, None, codes, tuple(labels.to_list()), why_not=why)


def _protected_variable(
    name: str, axis: int, item: Sets, domain: Domain, codes: Ints, positions: Positions | None
) -> tuple[Variable, list[str]]:
    """A protected attribute; what each value of its column means."""
    numbers, notes = _numbers(name, item, domain, positions)
    labels = tuple(domain.values)
    ordered = domain.ordered or domain.cut is not None or isinstance(item.attribute.distance, LineDistance)
    why = ("its labels are texts", "give numbers: --positions {name}=5,15,..., or compare it with a text")
    quiet = item.domain_from_data
    mapped = None if numbers is None else numbers[codes]
    return Variable(name, axis, mapped, codes, labels, ordered, quiet, why), notes


def _numbers(name: str, item: Sets, domain: Domain, positions: Positions | None) -> tuple[Floats | None, list[str]]:
    """The number of each value: as given, its label, its position, or the middle of its bin.

    NaN for the value that stands for missing ones.
    """
    given = (positions or {}).get(name)
    labels = [written(value) for value in domain.values]
    missing = np.array([domain.missing.action == "category" and label == domain.missing.label for label in labels])
    if isinstance(given, Mapping):
        absent = [label for label, gone in zip(labels, missing) if label not in given and not gone]
        if absent:
            raise QuestionError(Problem("positions", f"{len(absent)} values of '{name}' have none", "give one to each"))
        return np.array([float(given.get(label, np.nan)) for label in labels]), []
    if given is not None and len(given) == len(labels):
        return np.asarray(given, dtype=np.float64), []
    found = np.array([np.nan if gone else _number(label) for label, gone in zip(labels, missing)])
    if np.isfinite(found[~missing]).all() and not missing.all():
        return found, []
    if isinstance(domain.cut, Bins) and np.isfinite(domain.cut.edges).all():
        edges = np.asarray(domain.cut.edges, dtype=np.float64)
        if len(edges) == (~missing).sum() + 1:
            found[~missing] = (edges[1:] + edges[:-1]) / 2.0
            found[missing] = np.nan
            return found, [f"{name} enters by the middle of its bins"]
    distance = item.attribute.distance
    if isinstance(distance, LineDistance) and distance.size == domain.size and not _are_ranks(distance.positions):
        return np.where(missing, np.nan, distance.positions), [f"{name} enters by its positions on the line"]
    return None, []


def _number(label: str) -> float:
    try:
        return float(label)
    except ValueError:
        return np.nan


def _are_ranks(positions: Floats) -> bool:
    return bool(np.array_equal(positions, np.arange(len(positions))))


def _place(item: Sets, data: pl.DataFrame, rows: int) -> Ints:
    return data[stratum_column(item)].to_numpy().astype(np.int64) if item.stratified else np.zeros(rows, dtype=np.int64)


def _people(data: pl.DataFrame, cluster: str | None) -> Ints | None:
    if cluster is None:
        return None
    column = data[cluster]
    if column.null_count():
        raise QuestionError(Problem("cluster", f"{column.null_count():,} rows have no '{cluster}'", "drop --cluster"))
    return column.rank("dense").to_numpy().astype(np.int64) - 1


def _among(variable: Variable, rows: Ints) -> Variable:
    """An open column for some records, with the levels that are left."""
    if variable.axis is not None:
        return variable
    if variable.cells is None:
        assert variable.numbers is not None  # noqa: S101 - a variable has one of the two
        return replace(variable, numbers=variable.numbers[rows])
    left, codes = np.unique(variable.cells[rows], return_inverse=True)
    numbers = None if variable.numbers is None else variable.numbers[rows]
    return replace(
        variable, numbers=numbers, cells=codes.astype(np.int64), labels=tuple(variable.labels[k] for k in left)
    )


@dataclass(frozen=True, eq=False)
class FormulaDesign:
    """The numbers of a formula for so many records, as `scores` takes them."""

    formula: Formula
    frame: Frame
    rows: int
    filters: tuple[Expression, ...] = ()
    absent: tuple[tuple[int, Bools], ...] = ()

    @cached_property
    def columns(self) -> list[tuple[str, tuple[Factor, ...]]]:
        return self.formula.columns(self.frame)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the terms."""
        return tuple(name for name, _ in self.columns)

    def matrix(self, rows: slice) -> Floats:
        number, columns = self._length(rows), []
        for _, factors in self.columns:
            column: Any = np.ones((1, 1))
            for factor in factors:
                column = column * factor.values(self.frame, rows)
            columns.append(column)
        width = max(column.shape[1] for column in columns)
        out = np.empty((number, width, len(columns)))
        for place, column in enumerate(columns):
            out[:, :, place] = column
        return out

    def outcome(self, rows: slice) -> Floats:
        number, variable = self._length(rows), self.formula.outcome.as_categories(self.frame)
        if variable is None:
            values = self.formula.outcome.values(self.frame, rows)
        else:
            values = np.asarray(self.frame.spread(variable, variable.categories[0], rows), dtype=np.float64)
        return np.broadcast_to(values, (number, values.shape[1]))

    def kept(self, rows: slice) -> Floats | None:
        found: Floats | None = None
        for part in self.filters:
            held = (part.values(self.frame, rows) != 0).astype(np.float64)
            found = held if found is None else found * held
        for axis, gone in self.absent:
            held = (~gone[self.frame.grid[axis]]).astype(np.float64)[None, :]
            found = held if found is None else found * held
        return found

    def _length(self, rows: slice) -> int:
        return len(range(*rows.indices(self.rows)))


class _Question:
    """A formula about the records of a release."""

    def __init__(self, release: Release, formula: Formula, records: _Records, options: RegressOptions) -> None:
        self.manifest, self.formula, self.records, self.options = release.manifest, formula, records, options
        self.design = FormulaDesign(formula, records.frame, len(records.counts), records.filters, records.absent)

    def answer(self) -> Regression:
        outcomes = self._check_outcome()
        names = self._terms()
        self._check_size(len(names))
        self._check_numbers()
        data = ScoreData(
            self.design,
            self._sets(),
            self.records.counts,
            self.records.weights,
            self.records.cluster,
            self._repeats(),
        )
        try:
            fitted = fit_scores(data, self.options.family, outcomes)
        except NoRoot as error:
            raise QuestionError(_refusal(error, names, self.options.family)) from None
        return self._result(fitted, names, data)

    def _repeats(self) -> float:
        if self.records.cluster is not None and self.options.population == "super":
            return 1.0
        return max((item.repeats for item in self.records.items), default=1.0)

    def _sets(self) -> tuple[SetScores, ...]:
        records, found = self.records, []
        features = records.features() if self.options.working == "fitted" else None
        for item, sets, place in zip(records.items, records.sets, records.places):
            if features is None:
                shares = item.mechanism.design.blind_inclusion() / item.l
                found.append(given_shares(item.strata, sets, place, shares))
            else:
                folds = folds_of(records.counts, records.cluster)
                found.append(fitted_shares(item.strata, sets, place, features, records.counts, folds))
            if not found[-1].identifiable:
                raise QuestionError(
                    f"values of '{item.name}' cannot be distinguished: several leave the same traces in its sets",
                    "run polyseme plan on the policy to see which; a larger domain or another d may help",
                )
        return tuple(found)

    def _check_outcome(self) -> int:
        """How many outcomes are modeled, after a look whether they fit the family."""
        family, variable = self.options.family, self.formula.outcome.as_categories(self.records.frame)
        place, problem = f"formula, character {self.formula.outcome.place + 1}", None
        if family == "multinomial":
            if variable is None:
                problem = (
                    "the outcome of a multinomial regression is a category",
                    f"C({self.formula.outcome.text}) ~ ...",
                )
            elif len(variable.categories[1]) < 2:
                problem = ("the outcome has one category only", "")
        elif variable is not None and not (family == "logistic" and len(variable.categories[1]) == 2):
            text = self.formula.outcome.text
            hint = f'{text} == "..." ~ ..., --family multinomial, or --positions {text}=5,15,...'
            problem = (f"the outcome has categories, and a {family} regression needs numbers", hint)
        elif variable is None:
            values = np.concatenate([self.design.outcome(rows).ravel() for rows in self._slices()])
            if family == "logistic" and not np.isin(values, (0.0, 1.0)).all():
                problem = (
                    "the outcome of a logistic regression is 0 or 1",
                    f"{self.formula.outcome.text} >= ... ~ ...",
                )
            elif family == "poisson" and (values < 0.0).any():
                problem = ("the outcome of a Poisson regression is not negative", "use --family linear")
        if problem is not None:
            raise QuestionError(Problem(place, *problem))
        return len(variable.categories[1]) - 1 if variable is not None and family == "multinomial" else 1

    def _slices(self) -> Iterator[slice]:
        step = max(1, 4_000_000 // (int(np.prod(self.records.frame.sizes)) * (len(self.design.names) + 1)))
        for start in range(0, len(self.records.counts), step):
            yield slice(start, min(start + step, len(self.records.counts)))

    def _check_numbers(self) -> None:
        """Every number of the design is finite."""
        names, wrong = self.design.names, np.zeros(len(self.design.names) + 1)
        for rows in self._slices():
            wrong[:-1] += (~np.isfinite(self.design.matrix(rows))).any(axis=1).sum(axis=0)
            wrong[-1] += (~np.isfinite(self.design.outcome(rows))).any(axis=1).sum()
        if wrong.any():
            what = [*names, self.formula.outcome.text]
            raise QuestionError(
                Problem(
                    "formula",
                    f"'{what[place]}' is not a finite number in {wrong[place]:,.0f} rows",
                    "leave them out with --where",
                )
                for place in np.flatnonzero(wrong)
            )

    def _check_size(self, parameters: int) -> None:
        values = int(np.prod(self.records.frame.sizes, dtype=np.int64))
        if values > _VALUES:
            raise QuestionError(
                f"the protected attributes of the formula have {values:,} combinations of values; at most "
                f"{_VALUES:,} are used",
                "use fewer of them at a time",
            )
        records = ScoreData(self.design, (), self.records.counts, self.records.weights, None, self._repeats())
        if records.effective < _EACH * parameters:
            raise QuestionError(
                f"{parameters} parameters for {records.effective:,.0f} effective records: each needs at least {_EACH}",
                "use fewer terms, or fewer levels",
            )

    def _terms(self) -> list[str]:
        names = list(self.design.names)
        variable = self.formula.outcome.as_categories(self.records.frame)
        if self.options.family != "multinomial" or variable is None:
            return names
        labels = [written(label) for label in variable.categories[1][1:]]
        return [f"{variable.name}={label}: {name}" for label in labels for name in names]

    def _result(self, fitted: Fitted, names: Sequence[str], data: ScoreData) -> Regression:
        options, records = self.options, self.records
        estimate = fitted.coefficients.ravel()
        finite = options.population == "finite"
        covariance = fitted.finite if finite else fitted.population
        stderr = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        reach = special.stdtrit(fitted.freedom, 0.5 + options.level / 2.0) * stderr
        ratio = np.divide(estimate, stderr, out=np.full(len(estimate), np.inf), where=stderr > 0.0)
        p = 2.0 * special.stdtr(fitted.freedom, -np.abs(ratio))
        kept = min(fitted.records, float(records.counts.sum()))
        worth = np.minimum(kept * np.diag(fitted.open) / np.diag(fitted.population), kept)
        number = int(records.counts.sum())
        return Regression(
            self.formula.text,
            options.family,
            tuple(names),
            estimate,
            stderr,
            estimate - reach,
            estimate + reach,
            np.asarray(p, dtype=np.float64),
            worth,
            covariance,
            number,
            options.level,
            options.population,
            options.where,
            None if records.weights is None else self.manifest.weight,
            tuple(self._notes(fitted, number)),
            _Predictor(self.formula, records.frame, options, fitted.coefficients, covariance, fitted.freedom),
        )

    def _notes(self, fitted: Fitted, number: int) -> Iterator[str]:
        records, family = self.records, self.options.family
        variable = self.formula.outcome.as_categories(records.frame)
        if variable is not None:
            first = written(variable.categories[1][0])
            last = written(variable.categories[1][-1])
            if family == "multinomial":
                yield f"each category of {variable.name} is compared with {first}"
            else:
                yield f"the outcome is 1 for {last} and 0 for {first}"
        if records.dropped:
            yield f"{records.dropped:,} records without a value in a column of the formula are left out"
        if records.filters or records.absent:
            yield f"about {fitted.records:,.0f} of {number:,} records are used: the condition is about protected values"
        yield from records.notes
        if self.manifest.uncounted and records.items:
            yield (
                "decoys are sticky, but the records per draw were not counted: intervals are too short where people "
                "have several records"
            )
        elif (repeats := self._repeats()) > 1.0:
            yield f"records share sets: errors are those of about {number / repeats:,.0f} records"
        yield from coarser_weights(self.manifest, None if records.weights is None else self.manifest.weight)
        yield from suppression_notes(self.manifest, ())
        if self.options.population == "super":
            yield "intervals assume that the records are a random sample of the population"


def _refusal(error: NoRoot, names: Sequence[str], family: str) -> Problem:
    term = f"'{names[error.term]}'" if error.term is not None and error.term < len(names) else "a term"
    if error.reason == "collinear":
        return Problem("formula", f"{term} is a combination of other terms", "remove one of them")
    if error.reason == "separated":
        return Problem(
            "formula", "the terms separate the outcomes: a coefficient has no bound", "use fewer terms or fewer levels"
        )
    if error.reason == "unstable":
        return Problem(
            "formula",
            f"the sets do not bear this regression: {term} is nearly unknown",
            "use fewer terms or levels, more records, or coarser categories",
        )
    return Problem(
        "formula", f"the corrected score of this {family} regression has no root", "use fewer terms, or more records"
    )


@dataclass(frozen=True, eq=False)
class _Predictor:
    """Expected outcomes of other records."""

    formula: Formula
    frame: Frame
    options: RegressOptions
    coefficients: Floats
    covariance: Floats
    freedom: Floats

    def __call__(self, values: Any, level: float) -> dict[str, Any]:
        table = pl.DataFrame(
            values if not hasattr(values, "to_dict") or isinstance(values, pl.DataFrame) else dict(values)
        )
        needed = {name for term in self.formula.terms for each in term for name in each.names}
        absent = sorted(needed - set(table.columns))
        if absent:
            raise QuestionError(
                Problem("predict", f"no column '{name}'", "give every column of the terms") for name in absent
            )
        variables = {name: self._variable(self.frame.variables[name], table[name]) for name in needed}
        design = FormulaDesign(self.formula, Frame(variables), table.height)
        # Levels are those of the fit, so the columns are the same.
        x = design.matrix(slice(None))[:, 0]
        linear = x @ self.coefficients.T
        if self.options.family == "multinomial":
            return self._shares(linear)
        spread = np.sqrt(np.maximum(np.einsum("np,pq,nq->n", x, self.covariance, x), 0.0))
        reach = float(special.stdtrit(float(self.freedom.min()), 0.5 + level / 2.0)) * spread
        found = {"estimate": linear[:, 0], "low": linear[:, 0] - reach, "high": linear[:, 0] + reach}
        if self.options.family == "linear":
            return dict(found)
        link = special.expit if self.options.family == "logistic" else np.exp
        return {name: link(column) for name, column in found.items()}

    def _shares(self, linear: Floats) -> dict[str, Any]:
        variable = self.formula.outcome.as_categories(self.frame)
        assert variable is not None  # noqa: S101 - a multinomial outcome is a category
        odds = np.exp(np.column_stack([np.zeros(len(linear)), linear]))
        shares = odds / odds.sum(axis=1, keepdims=True)
        return {written(label): shares[:, place] for place, label in enumerate(variable.categories[1])}

    def _variable(self, fitted: Variable, series: pl.Series) -> Variable:
        texts = [written(value) for value in series.to_list()]
        numbers = None
        if fitted.numbers is not None:
            known = fitted.spellings if fitted.axis is not None and fitted.cells is not None else {}
            by_code = {
                int(code): float(number)
                for code, number in zip(fitted.cells if fitted.cells is not None else (), fitted.numbers)
            }
            numbers = np.array([by_code[known[text]] if text in known else _number(text) for text in texts])
            if np.isnan(numbers).any():
                raise QuestionError(Problem("predict", f"'{fitted.name}' has values that are no numbers"))
        codes, labels = None, fitted.categories[1]
        if numbers is None or fitted.cells is not None:
            codes = np.array([fitted.spellings.get(text, -1) for text in texts], dtype=np.int64)
            if numbers is None and (codes < 0).any():
                raise QuestionError(Problem("predict", f"'{fitted.name}' has values that the regression has not"))
        else:
            codes = np.array([fitted.spellings.get(text, -1) for text in texts], dtype=np.int64)
        return replace(fitted, axis=None, numbers=numbers, cells=codes, labels=labels)


@verb(read=1, fit=4)
def regress(
    release: Release | str | Path,
    formula: str,
    *,
    family: Family = "linear",
    where: str | None = None,
    positions: Mapping[str, Sequence[float] | Mapping[str, float]] | None = None,
    population: Population = "super",
    level: float = 0.95,
    cluster: str | None = None,
    unweighted: bool = False,
    **unknown: Never,
) -> Regression:
    """The coefficients of a regression, by corrected scores.

    formula     such as "y ~ income + age*sex"
    family      "linear", "logistic", "poisson" or "multinomial"
    where       a condition such as 'age >= 30'
    positions   numbers for values, in order or by label
    population  "super": the population the records were drawn from; "finite": the people in the table
    level       of the intervals
    cluster     a column that tells people apart
    unweighted  count the records also where the release has survey weights
    """
    refuse_unknown(unknown)
    options = RegressOptions(family, where, positions, population, level, cluster, unweighted)
    found = regression_of(release_given(release), formula, options)
    _log.info("regress: %d terms, %d records", len(found.terms), found.records)
    return found
