"""From a campaign document to the columns and the manifest of a release.

The parameters of each design are made from its sampling document, so that analysts estimate with the weights from which
devices drew.

A record's codes lead to its stratum by the tables of `polyseme.strata`, by code instead of by spelling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, cast

import numpy as np

from polyseme.designs.distribution import restrict
from polyseme.designs.stored import described
from polyseme.device.campaign import Campaign
from polyseme.device.protected import OnePerPerson, channel_of
from polyseme.device.sampler import ONE
from polyseme.kernel.errors import CampaignError, InvalidInput, Problem
from polyseme.kernel.spelling import spelling
from polyseme.release.codec import columns_from
from polyseme.release.columns import AsIs, Column, Sets
from polyseme.release.data import MANIFEST, check_entries
from polyseme.release.facts import LONGEST, LONGEST_CONTACT, About, Collected
from polyseme.release.manifest import Manifest
from polyseme.schema import Domain
from polyseme.semantics.distances import distance_from
from polyseme.semantics.distances.base import Clusters, Structure
from polyseme.strata import Strata

__all__ = ["columns_of", "manifest_of", "placing_of"]


def placing_of(strata: Strata, opened: Mapping[str, Domain]) -> dict[str, Any]:
    """The entry `placing` of a campaign document."""
    placing = strata.placing
    steps = [
        {
            "column": step.name,
            "classes": [step.classes.get(spelling(label), 0) for label in opened[step.name].values],
            "next": step.table.tolist(),
        }
        for step in placing.steps
    ]
    return {"steps": steps, "strata": strata.numbers.tolist()}


def columns_of(campaign: Campaign) -> tuple[Column, ...]:
    """The columns of a release; open ones with the domain whose codes are sent.

    Raises `CampaignError` where the document does not say the same to devices and to a release.
    """
    entries = deepcopy(list(campaign.document["columns"]))
    try:
        check_entries([_with_parameters(entry) for entry in entries])
        for entry in entries:
            _complete(entry, campaign.document)
        columns = columns_from(entries)
    except InvalidInput as error:
        raise CampaignError(
            Problem(f"columns{item.where.removeprefix(MANIFEST)}", item.what, item.hint) for item in error.problems
        ) from None
    _require_same(campaign, columns)
    return columns


def manifest_of(
    campaign: Campaign,
    records: int,
    data: Mapping[str, Any] | None = None,
    dropped: int = 0,
    k: int | None = None,
    date: str = "",
) -> Manifest:
    """The manifest of a release of so many reports.

    k     how many records share their open values at least, where others were dropped
    date  of the release, as 2026-11-17
    """
    settings = campaign.collection
    repeats = float(max(min(settings.reports or 1, records), 1)) if settings.sticky else 1.0
    return Manifest(
        tuple(_published(column, repeats) for column in columns_of(campaign)),
        records,
        records,
        dropped=dropped,
        sticky=settings.sticky,
        # An older document does not say how often a device may report.
        uncounted=settings.sticky and settings.reports is None,
        models=tuple(campaign.document["models"]),
        data=data or {},
        about=About(title=_line(_in_english(campaign.title), LONGEST), date=date),
        collected=_collected(campaign, k),
    )


def _collected(campaign: Campaign, k: int | None) -> Collected:
    settings = campaign.collection
    return Collected(
        campaign.id,
        settings.wave,
        channel_of(settings.relay),
        cast("OnePerPerson", settings.tokens),
        settings.minimum,
        _line(settings.contact, LONGEST_CONTACT) or "not stated",
        settings.opens,
        settings.closes,
        k,
        settings.reports,
    )


def _in_english(texts: Mapping[str, str]) -> str:
    """The text that goes best with the rest of a report, which is in English."""
    return next(
        (text for language, text in texts.items() if language.split("-")[0] == "en"), next(iter(texts.values()))
    )


def _line(text: str, most: int) -> str:
    """A text of a campaign as one printable line of at most so many letters."""
    words = "".join(letter if letter.isprintable() else " " for letter in text).split()
    line = " ".join(words)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _published(column: Column, repeats: float) -> Column:
    """An open column as in any release: values in the data, and sets with the reports per draw.

    repeats  at most so many: that all devices send as many as they may is the worst there can be
    """
    if isinstance(column, Sets):
        return replace(column, repeats=repeats)
    return replace(column, attribute=replace(column.attribute, domain=None)) if isinstance(column, AsIs) else column


def _mechanisms(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The mechanisms of all strata of a protected column, in order; none for another column."""
    strata = entry.get("strata", ())
    found = [entry.get("mechanism"), *(item.get("mechanism") for item in strata if isinstance(item, dict))]
    return [item for item in found if isinstance(item, dict)]


def _with_parameters(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry as a manifest has it, the parameters of its designs still to come."""
    for mechanism in _mechanisms(entry) if isinstance(entry.get("strata", []), list) else ():
        mechanism["parameters"] = {}
    return entry


def _complete(entry: dict[str, Any], document: Mapping[str, Any]) -> None:
    """Put in what devices draw from and what they check; it stands nowhere else in the document."""
    if entry["published"] != "sets":
        return
    structure, strata = _structure(entry), document["sampling"][entry["name"]]["strata"]
    entry["posterior"] = document["promises"][entry["name"]]["posterior"]
    if len(_mechanisms(entry)) != len(strata):
        raise CampaignError("as many strata as sampling documents are expected")
    for mechanism, stratum in zip(_mechanisms(entry), strata, strict=True):
        allowed = np.delete(np.arange(structure.size), np.array(stratum["excluded"], dtype=np.int64))
        left = restrict(structure, allowed)[0] if stratum["excluded"] else structure
        design = described(stratum["document"], left, mechanism["design"])
        mechanism |= {"l": design.l, "p": stratum["document"]["p53"] / ONE, "parameters": dict(design.parameters())}


def _require_same(campaign: Campaign, columns: Sequence[Column]) -> None:
    """Refuse where devices would find other strata than those who estimate."""
    opened = {item.name: item.attribute.domain for item in columns if isinstance(item, AsIs) and item.attribute.domain}
    for column in columns:
        if not isinstance(column, Sets):
            continue
        sampling = campaign.document["sampling"][column.name]
        excluded = [list(member.excluded) for member in column.strata.members]
        same = excluded == [stratum["excluded"] for stratum in sampling["strata"]]
        if column.stratified:
            same = same and placing_of(column.strata, opened) == sampling.get("placing")
        if not same:
            raise CampaignError(
                Problem(f"sampling.{column.name}", "other strata than those of the column's own conditions")
            )


def _structure(entry: Mapping[str, Any]) -> Structure:
    """Which values may stand together; without a distance, all of them."""
    size, threshold = len(entry["domain"]["values"]), entry["mechanism"]["d"]
    if "distance" not in entry or threshold is None:
        return Clusters(np.arange(size, dtype=np.int64))
    return distance_from(entry["distance"], size).structure(threshold)
