"""Actions: merging two classes, and removing or changing sensitive values.

Merged classes show the lowest groups that hold the cells of both. This is local recoding, so other classes stay. Values
are changed only where the policy names that action.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import PolicyError, Problem, nearest
from polyseme.methods.goal import Goal
from polyseme.methods.microdata import BLANK, SUPPRESSED, Cells, Ladder, Microdata, Recoding, Sensitive
from polyseme.methods.rules.pairs import Costs, Options
from polyseme.methods.rules.state import Change, State
from polyseme.models import semantic_rules
from polyseme.models.semantic_rules import Rule
from polyseme.schema import Attribute

__all__ = ["blanked", "changed", "fewest_values", "keeps", "merged", "options_of", "shifted", "silent_attributes"]

_NEAREST = 200
"""Partners of each kind that a vulnerable class chooses from: all that can matter with up to 200 vulnerable ones."""


def options_of(state: State, vulnerable: Ints, otherwise: Floats, barred: Collection[tuple[int, int]] = ()) -> Options:
    """The pairs that leave no rule effective, with their costs.

    Of classes that are not vulnerable each vulnerable one needs to know only as many of the cheapest as there are
    vulnerable ones: the others cannot take them all. Where these are very many, `_NEAREST` must do for each.
    """
    costs, tallies = Costs.of(state.data, state.recoding), state.tallies
    at_risk = np.zeros(len(state.recoding.shown), dtype=np.bool_)
    at_risk[vulnerable] = True
    pairs: list[Ints] = [np.zeros((0, 2), dtype=np.int64)]
    found: list[Floats] = [np.zeros(0)]
    for one in vulnerable.tolist():
        fits = tallies.fitting(one)
        # A pair of two vulnerable classes is listed once.
        fits[: one + 1] &= ~at_risk[: one + 1]
        for pair in barred:
            if one in pair:
                fits[list(pair)] = False
        cost = costs.with_each(one)
        most = min(len(vulnerable), _NEAREST)
        safe = _cheapest(np.flatnonzero(fits & ~at_risk), cost, most)
        others = np.sort(np.concatenate((safe, _cheapest(np.flatnonzero(fits & at_risk), cost, most))))
        pairs.append(np.column_stack((np.full(len(others), one), others)))
        found.append(cost[others])
    return Options(vulnerable, np.concatenate(pairs), np.concatenate(found), otherwise)


def _cheapest(classes: Ints, cost: Floats, most: int) -> Ints:
    if len(classes) <= most:
        return classes
    return np.asarray(classes[np.argpartition(cost[classes], most - 1)[:most]])


def merged(data: Microdata, recoding: Recoding, pairs: Sequence[tuple[int, int]]) -> Recoding:
    """The recoding after some pairs of classes were merged.

    Classes that then show the same are one.
    """
    costs = Costs.of(data, recoding)
    number = np.arange(len(recoding.shown))
    shown = recoding.shown.copy()
    cells = list(recoding.cells)
    for place, ladder in enumerate(data.ladders):
        for one, other in pairs:
            mine, theirs = (int(recoding.shown[index, place]) for index in (one, other))
            if mine != theirs:
                level = costs.covers[place].level_of(mine, theirs)
                group = int(costs.covers[place].groups[level, mine])
                cells[place], shown[one, place] = _with_group(cells[place], ladder, level, group)
    for one, other in pairs:
        number[other] = one
    return _joined(replace(recoding, shown=shown, cells=tuple(cells), levels=()), number)


def _with_group(cells: Cells, ladder: Ladder, level: int, group: int) -> tuple[Cells, int]:
    """The cells with a group of the ladder among them, and its place."""
    label, leaves = ladder.labels[level][group], np.flatnonzero(ladder.groups[level] == group)
    if label in cells.labels:
        # What is read as the same cell is the same cell, whatever it was made from.
        place = cells.labels.index(label)
        both = np.union1d(cells.leaves[place], leaves)
        return Cells(cells.labels, (*cells.leaves[:place], both, *cells.leaves[place + 1 :])), place
    return Cells((*cells.labels, label), (*cells.leaves, leaves)), len(cells.labels)


def _joined(recoding: Recoding, number: Ints) -> Recoding:
    """Records of class i go to class `number[i]`; classes with the same cells become one."""
    left = np.unique(number)
    shown, same = np.unique(recoding.shown[left], axis=0, return_inverse=True)
    place = np.zeros(len(number), dtype=np.int64)
    place[left] = same.ravel()
    final = np.append(place[number], SUPPRESSED)
    return replace(recoding, classes=final[recoding.classes], shown=shown)


def keeps(goal: Goal, recoding: Recoding, pair: tuple[int, int]) -> bool:
    """Whether two merged classes reach the goal; an additive goal is always kept."""
    goal = goal.unmapped
    if goal.additive:
        return True
    rows = np.flatnonzero(np.isin(recoding.classes, pair))
    if goal.relative:
        inside = np.isin(recoding.classes, pair).astype(np.int64)
        return bool(goal.fine(*goal.counted(inside, 2))[1])
    return bool(goal.fine(*goal.counted(np.zeros(len(rows), dtype=np.int64), 1, rows)).all())


Blanks = Mapping[str, Bools]
"""For each attribute, which members of a class lose their value."""

_TOGETHER = 8
"""Attributes up to which every combination of them is tried."""


def silent_attributes(state: State, others: Goal) -> tuple[str, ...]:
    """The attributes whose values may be removed, because no other model counts them."""
    counted = {demand.attribute for demand in others.demands}
    named = dict.fromkeys(name for rule in state.rules for name in rule.attributes)
    return tuple(name for name in named if name not in counted)


def fewest_values(state: State, index: int, allowed: Sequence[str]) -> Blanks | None:
    """The fewest values of a class to take away so that no rule is effective on it.

    None where none will do.
    """
    effective = state.effective_on(index)
    if any(not set(rule.attributes) & set(allowed) for rule in effective):
        return None
    named = dict.fromkeys(name for rule in state.rules for name in rule.attributes)
    members = state.frame(named, state.members(index))
    tries = sorted(_tries(members, effective, allowed), key=lambda blanks: sum(int(b.sum()) for b in blanks.values()))
    return next((blanks for blanks in tries if not _any_effective(_without(members, blanks), state.rules)), None)


def _tries(members: pl.DataFrame, effective: Sequence[Rule], allowed: Sequence[str]) -> Iterator[Blanks]:
    """Combinations of attributes: values of records that meet a rule in effect, then all values."""
    met = [(rule, semantic_rules.outcomes(members, rule) == 1) for rule in effective]
    names = [name for name in allowed if name in members.columns]
    there = {name: members[name].is_not_null().to_numpy() for name in names}
    sizes = range(1, len(names) + 1) if len(names) <= _TOGETHER else (1, len(names))
    for chosen in (some for size in sizes for some in combinations(names, size)):
        yield {
            name: np.any([mask for rule, mask in met if name in rule.attributes], axis=0) & there[name]
            for name in chosen
        }
        yield {name: there[name] for name in chosen}


def _without(members: pl.DataFrame, blanks: Blanks) -> pl.DataFrame:
    return members.with_columns(members[name].set(pl.Series(lost), None) for name, lost in blanks.items())


def _any_effective(members: pl.DataFrame, rules: Sequence[Rule]) -> bool:
    for rule in rules:
        outcomes = semantic_rules.outcomes(members, rule)
        if np.any(outcomes == 1) and not np.any(outcomes == 0):
            return True
    return False


def blanked(state: State, index: int, blanks: Blanks) -> State:
    """The state after values of one class were taken away."""
    members = state.members(index)
    sensitive = dict(state.sensitive)
    for name, lost in blanks.items():
        codes = sensitive[name].codes.copy()
        codes[members[lost]] = BLANK
        sensitive[name] = replace(sensitive[name], codes=codes)
    return replace(state, sensitive=sensitive)


# -- changing ------------------------------------------------------------------------------------------------------


def shifted(item: Sensitive, change: Change) -> tuple[Sensitive, Ints]:
    """The attribute with room for changed values, and the code that each code becomes."""
    old = [value for value in item.labels if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(old) < len(item.labels):
        raise PolicyError(
            Problem(
                "$.method.rules.change-values.attribute", f"not all values of '{item.name}' are numbers", "type: number"
            )
        )
    new = [value + change.by for value in old]
    labels = sorted({*old, *new})
    place = {value: code for code, value in enumerate(labels)}
    moved = np.array([place[value] for value in old], dtype=np.int64)
    after = np.full(len(labels), BLANK, dtype=np.int64)
    after[moved] = [place[value] for value in new]
    return Sensitive(item.name, moved[item.codes], tuple(labels)), after


def changed(state: State, change: Change, sensitive: Mapping[str, Attribute]) -> tuple[State, Ints]:
    """Add a constant in every class where that makes rules ineffective; returns the classes."""
    _require_changeable(change, sensitive)
    roomy, after = shifted(state.sensitive[change.attribute], change)
    state = replace(state, sensitive={**state.sensitive, change.attribute: roomy})
    about = [place for place, rule in enumerate(state.rules) if change.attribute in rule.attributes]
    concerned = np.flatnonzero(state.tallies.effective[about].any(axis=0))
    tried = _moved(state, change.attribute, after, concerned)
    helped = concerned[~tried.tallies.effective[about][:, concerned].any(axis=0)]
    return _moved(state, change.attribute, after, helped), helped


def _moved(state: State, name: str, after: Ints, classes: Ints) -> State:
    item = state.sensitive[name]
    inside = np.isin(state.recoding.classes, classes) & ~state.recoding.suppressed
    codes = np.where(inside, after[item.codes], item.codes)
    return replace(state, sensitive={**state.sensitive, name: replace(item, codes=codes)})


def _require_changeable(change: Change, sensitive: Mapping[str, Attribute]) -> None:
    where = "$.method.rules.change-values.attribute"
    if change.attribute not in sensitive:
        raise PolicyError(Problem(where, "not a sensitive attribute", nearest(change.attribute, sensitive)))
    item = sensitive[change.attribute]
    if item.distance is not None or (item.domain is not None and item.domain.cut is not None):
        raise PolicyError(Problem(where, "changed values would lie outside its declared bins or distance"))
