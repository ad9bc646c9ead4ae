"""Can a device of this campaign have sent that? Asked for whole batches before they are stored.

A report is possible when each of its sets can be drawn by the design of the stratum that its open columns put it into.
Fakes that are possible cannot be told from honest reports, one by one; impossible ones would do far more harm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from polyseme.arrays import Bools, Ints
from polyseme.collection.store.base import Entry
from polyseme.collection.survey import Survey
from polyseme.release import Sets
from polyseme.strata import Placing, by_stratum
from polyseme.tables.coding.codes import as_series, label_array

__all__ = ["Checker", "possible_entries"]


@dataclass(frozen=True, eq=False)
class Checker:
    """Checks the reports of one campaign."""

    survey: Survey

    def possible(self, payloads: Sequence[bytes]) -> Bools:
        """Which of the reports some device can have sent: (n,)."""
        codes = self.survey.matrix(payloads)
        shown, well = len(self.survey.open), np.ones(len(codes), dtype=bool)
        start = shown
        for column in self.survey.sets:
            sets = codes[:, start : start + column.l]
            well &= _drawable(column, sets, self.places(column, codes[:, :shown]))
            start += column.l
        return well

    def places(self, column: Sets, shown: Ints) -> Ints:
        """The stratum of each report, from the codes of its open columns: (n,)."""
        states = np.zeros(len(shown), dtype=np.int64)
        for place, table in self._steps[column.name]:
            states = table[states, shown[:, place]]
        return self._members[column.name][states]

    @cached_property
    def _steps(self) -> Mapping[str, list[tuple[int, Ints]]]:
        """For each attribute, column by column: the next state for each state and code."""
        return {column.name: self._tables(column.strata.placing) for column in self.survey.sets}

    @cached_property
    def _members(self) -> Mapping[str, Ints]:
        """For each attribute the stratum of each state that is left in the end."""
        found = {}
        for column in self.survey.sets:
            number = {member.key: index for index, member in enumerate(column.strata.members)}
            placing = column.strata.placing
            found[column.name] = np.array([number[placing.keys[place]] for place in placing.places], dtype=np.int64)
        return found

    def _tables(self, placing: Placing) -> list[tuple[int, Ints]]:
        places = {column.name: place for place, column in enumerate(self.survey.open)}
        return [
            (places[step.name], step.table[:, step.read(self._labels(places[step.name]))[0]]) for step in placing.steps
        ]

    def _labels(self, place: int) -> pl.Series:
        """The values of an open column, as a release will show them."""
        domain = self.survey.open[place].attribute.domain
        return as_series(label_array(domain.values if domain is not None else ()))


def _drawable(column: Sets, sets: Ints, places: Ints) -> Bools:
    """Which sets the design of their stratum can draw."""
    well = np.zeros(len(sets), dtype=bool)
    for number, rows in by_stratum(places):
        member = column.strata.members[number]
        allowed = rows[~member.forbids[sets[rows]].any(axis=1)]
        if len(allowed):
            well[allowed] = member.mechanism.design.can_draw(member.narrow(sets[allowed]))
    return well


def possible_entries(entries: Sequence[Entry], checkers: Mapping[str, Checker]) -> list[bool]:
    """Which entries of several campaigns are possible; a withdrawal always is."""
    possible = [True] * len(entries)
    by_campaign: dict[str, list[int]] = {}
    for place, entry in enumerate(entries):
        if entry.payload is not None:
            by_campaign.setdefault(entry.campaign, []).append(place)
    for campaign, places in by_campaign.items():
        payloads = [entries[place].payload or b"" for place in places]
        for place, well in zip(places, checkers[campaign].possible(payloads).tolist()):
            possible[place] = well
    return possible
