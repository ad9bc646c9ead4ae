"""Verdicts: no candidate exceeds the promised posterior, and sets fit their mechanism.

Two verdicts on each protected attribute:

- `posterior`: from the channel in the manifest, the largest `P(v | R)` under the declared prior, against 1/l;
- `mechanism`: whether the published sets can have come from that channel, see `evidence`, and whether candidates stand
  in the order of the domain and rows in random order, see `arrangement`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyseme.designs.feasibility import heaviest_crowd
from polyseme.inference.base import Reports
from polyseme.kernel.errors import ImpossibleError, ReleaseError
from polyseme.models.base import Verdict, unchecked
from polyseme.privacy.calibration import UNBALANCED
from polyseme.release import Release, Sets
from polyseme.release.release import SetCounts, stratum_column
from polyseme.scrutiny.verification import Evidence, examine, impossible, level_of, nothing, repeats_of, together
from polyseme.scrutiny.verification.set_tests import order_evidence
from polyseme.strata import Stratum, by_stratum
from polyseme.tables.groups import Grouped
from polyseme.tables.published import RowOrder

__all__ = ["mechanism_verdict", "posterior_verdict", "sets_by_stratum"]

_FITS = "p-value of the published sets and their order under the channel in the manifest"
_MISFIT = "the published sets cannot have come from the mechanism in the manifest"
_ARRANGED = "rows or candidates are in an order that can tell true values"
_REMARK = f"{_ARRANGED}: publish candidates in the domain's order and rows in random order"
_ALMOST_CERTAIN = 1.0 - 1e-5
"""The weights of a least-risk design may be anything, but no set of several candidates may give one of them away."""
_POSTERIOR_ROUNDING = 1e-6
"""Designs are fitted to their inclusion probabilities with an error of 1e-9."""


def sets_by_stratum(counts: SetCounts, item: Sets) -> Grouped | None:
    """The distinct sets of each stratum; None if a cell has a wrong number of candidates."""
    try:
        return counts.of(item)
    except ReleaseError:
        return None


def posterior_verdict(item: Sets) -> Verdict:
    """The highest posterior for an attacker who knows the channel and has the declared prior."""
    members = item.strata.members
    l = max(member.mechanism.l for member in members)
    each = [_worst_posterior(member) for member in members]
    reached = max(each, key=lambda found: (math.isnan(found), found))
    prior = _expected(members)
    bound, asked = _promised_posterior(item, l), {"l": l}
    if bound is None:
        known = "is too costly to compute" if math.isnan(reached) else f"is {reached:.4g}"
        design = item.strata.members[0].mechanism.design.name
        note = f"1/l = {1 / l:.4g} is not promised by the {design} design: the worst posterior under {prior} {known}"
        worst = None if math.isnan(reached) else reached
        return Verdict("posterior", item.name, asked, True, worst, None, None, checked=len(members), note=note)
    if math.isnan(reached):
        return unchecked("posterior", item.name, asked, "the channel in the manifest gives no posterior")
    # Where a balanced design exists, a group whose values are crowded is no excuse for another one.
    limits = [bound if member.mechanism.design.name in UNBALANCED else min(bound, 1.0 / l) for member in members]
    holds = all(found <= limit + _POSTERIOR_ROUNDING for found, limit in zip(each, limits, strict=True))
    margin = max(bound - reached, 0.0) if holds else bound - reached
    note = f"from the channel in the manifest, for {prior}"
    return Verdict("posterior", item.name, asked, holds, reached, bound, margin, checked=len(members), note=note)


def _expected(members: Sequence[Stratum]) -> str:
    """For whom the posterior is computed."""
    if any(member.distributions.stated is not None for member in members):
        return (
            "an attacker with the prior that the sets are balanced for; not for the declared distribution (see learner)"
        )
    return "a uniform prior" if all(member.prior is None for member in members) else "the declared prior"


def _worst_posterior(member: Stratum) -> float:
    """The largest posterior in a stratum; not a number where it is too costly."""
    try:
        with np.errstate(all="ignore"):
            reached = member.mechanism.worst_posterior(member.prior)
    except ImpossibleError:
        return math.nan
    # A certain value is a certain value, whatever rounding makes of it.
    return min(reached, 1.0) if math.isfinite(reached) else math.nan


def _promised_posterior(item: Sets, l: int) -> float | None:
    """1/l, unless the promises name another design and the manifest says what that stands for; None for nothing."""
    designs = {member.mechanism.design.name for member in item.strata.members}
    spacing = item.attribute.promises.spacing
    named = spacing.design if spacing is not None else "balanced"
    stated = item.posterior
    if named not in UNBALANCED and "least-risk" in designs and item.attribute.conditional and stated is not None:
        due = designs <= {named, "least-risk"} and all(map(_crowded, item.strata.members))
        return min(_ALMOST_CERTAIN, stated) if due else min(1.0 / l, stated)
    if named not in UNBALANCED or designs != {named}:
        return 1.0 / l if stated is None else min(1.0 / l, stated)
    if named == "least-risk":
        return min(_ALMOST_CERTAIN if l > 1 else 1.0, math.inf if stated is None else stated)
    # An old manifest says nothing more than the name of the design, and that is open enough: its channel is known.
    return None if stated is None or not math.isfinite(stated) else stated


def _crowded(member: Stratum) -> bool:
    """Whether a stratum has the design that is its due: least-risk only where a crowd of values rules 1/l out."""
    design, prior = member.mechanism.design, member.prior
    if design.name != "least-risk":
        return True
    return (
        prior is not None
        and heaviest_crowd(design.structure, prior / prior.sum()).mass * design.l > 1.0 + _POSTERIOR_ROUNDING
    )


def mechanism_verdict(release: Release, item: Sets, grouped: Grouped | None, counts: SetCounts) -> Verdict:
    """Whether the published sets fit the channel in the manifest, and stand in random order."""
    level, repeats = level_of(release.manifest), repeats_of(release.manifest, item)
    asked: dict[str, Any] = {"level": level} | ({"repeats": repeats} if repeats > 1.0 else {})
    if grouped is None:
        return unchecked(
            "mechanism", item.name, asked, "not every cell holds as many candidates as the mechanism draws"
        )
    with np.errstate(all="ignore"):  # weights may be anything; what is no probability is found
        drawn = together(_evidence(release, item, grouped, repeats))
    arranged = _arranged(release, counts.order(item), level)
    p_value = min(2.0 * min(drawn.p_value, arranged.p_value), 1.0)
    holds = p_value >= level
    wrong = [text for found, text in ((drawn, _MISFIT), (arranged, _ARRANGED)) if 2.0 * found.p_value < level]
    notes = [*(wrong or [_FITS]), drawn.note, arranged.note]
    return Verdict(
        "mechanism",
        item.name,
        {**asked, **drawn.parameters(), **arranged.parameters()},
        holds,
        p_value,
        level,
        p_value - level,
        checked=round(drawn.records),
        violations=0 if holds else 1,
        note="; ".join(text for text in notes if text),
    )


def _arranged(release: Release, order: RowOrder, level: float) -> Evidence:
    """The evidence of the order in which sets and rows stand; only a remark on a table of another program."""
    found = order_evidence(order)
    if release.manifest.seeded is not None or 2.0 * found.p_value >= level:
        return found
    return nothing(found.records, "; ".join(text for text in (_REMARK, found.note) if text))


def _evidence(release: Release, item: Sets, grouped: Grouped, repeats: float) -> list[Evidence]:
    """Of each stratum that has records."""
    sets, counts, paired = grouped.sets[0], grouped.counts, release.manifest.form == "set"
    if not paired:
        # A candidate of one attribute stands in a row for every combination of the others' candidates.
        others = [other.l for other in release.manifest.sets if other is not item]
        counts = counts // math.prod(others)
    places = np.zeros_like(grouped.cell)
    if item.stratified:
        places = grouped.cells[stratum_column(item)].to_numpy()[grouped.cell]
    found = []
    for place, rows in by_stratum(places):
        member = item.strata.members[place]
        if member.forbids[sets[rows]].any():
            found.append(impossible(counts[rows].sum(), "some sets hold a value that is impossible for their record"))
            continue
        narrow = member.narrow(sets[rows])
        reports = Reports((narrow,), np.zeros(len(narrow), dtype=np.int64), counts[rows], 1, paired)
        found.append(examine(reports, member.mechanism, repeats=repeats))
    return found or [nothing(0.0, "there are no records")]
