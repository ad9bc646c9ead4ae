"""From a campaign document to the columns and the manifest of a release of what was collected.

The parameters of each design are made from its sampling document, so that whoever estimates uses the weights from which
devices drew.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from polyseme.designs.described import described
from polyseme.designs.restriction import restrict
from polyseme.device.campaign import Campaign
from polyseme.distances import distance_from
from polyseme.distances.structure import Clusters, Structure
from polyseme.errors import CampaignError, InvalidInput, Problem
from polyseme.release.codec import columns_from
from polyseme.release.columns import AsIs, Column
from polyseme.release.manifest import Manifest

__all__ = ["columns_of", "manifest_of"]


def columns_of(campaign: Campaign) -> tuple[Column, ...]:
    """The columns of a release; open ones with the domain whose codes are sent."""
    entries = []
    for entry in campaign.document["columns"]:
        try:
            entries.append(_whole(entry, campaign.document["sampling"].get(entry["name"])))
        except (KeyError, TypeError, AttributeError):
            raise CampaignError(Problem(f"columns.{entry['name']}", "not an entry of a manifest")) from None
        except InvalidInput as error:
            where = f"columns.{entry['name']}"
            raise CampaignError(Problem(where, item.what, item.hint) for item in error.problems) from None
    return columns_from(entries)


def manifest_of(campaign: Campaign, records: int, data: Mapping[str, Any] | None = None, dropped: int = 0) -> Manifest:
    """The manifest of a release of so many reports."""
    return Manifest(
        tuple(_published(column) for column in columns_of(campaign)),
        records,
        records,
        dropped=dropped,
        sticky=campaign.collection.sticky,
        models=tuple(campaign.document["models"]),
        data=data or {},
    )


def _published(column: Column) -> Column:
    """An open column as any other release has it: its values are in the data."""
    return replace(column, attribute=replace(column.attribute, domain=None)) if isinstance(column, AsIs) else column


def _whole(entry: Mapping[str, Any], sampling: Mapping[str, Any] | None) -> dict[str, Any]:
    """The entry with the parameters of its designs."""
    whole: dict[str, Any] = deepcopy(dict(entry))
    if sampling is None:
        return whole
    structure = _structure(whole)
    mechanisms = [whole["mechanism"], *(item["mechanism"] for item in whole.get("strata", ()))]
    if len(mechanisms) != len(sampling["strata"]):
        raise CampaignError("as many strata as sampling documents are expected")
    for mechanism, stratum in zip(mechanisms, sampling["strata"], strict=True):
        allowed = np.delete(np.arange(structure.size), stratum["excluded"])
        left = restrict(structure, allowed)[0] if stratum["excluded"] else structure
        design = described(stratum["document"], left, mechanism["design"])
        mechanism["parameters"] = dict(design.parameters())
    return whole


def _structure(entry: Mapping[str, Any]) -> Structure:
    """Which values may stand together; without a distance, all of them."""
    size, threshold = len(entry["domain"]["values"]), entry["mechanism"]["d"]
    if "distance" not in entry or threshold is None:
        return Clusters(np.arange(size, dtype=np.int64))
    return distance_from(entry["distance"], size).structure(threshold)
