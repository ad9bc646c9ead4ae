"""What the models need to know beside a table, from the attributes of a schema; and what a model is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from polyseme.models.model import Background
from polyseme.models.registry import MODELS
from polyseme.schema import Attribute
from polyseme.tables.coding.codes import label_array

__all__ = ["background_of", "is_about"]


def background_of(attributes: Iterable[Attribute]) -> Background:
    """Domains and distances of the attributes that have them."""
    known = [attribute for attribute in attributes if attribute.domain is not None]
    return Background(
        domains={item.name: label_array(item.domain.values).to_pylist() for item in known if item.domain},
        distances={item.name: item.distance for item in known if item.distance is not None},
    )


def is_about(model: Mapping[str, Mapping[str, Any]], attribute: str) -> bool:
    """Whether a model, as a policy or a manifest writes it, limits what is learned about an attribute.

    >>> is_about({"distinct-diversity": {"l": 3}}, "disease"), is_about({"k-anonymity": {"k": 5}}, "disease")
    (True, False)
    """
    ((name, parameters),) = model.items()
    if name == "semantic-rules":
        return any(attribute in rule.get("never-all", ()) for rule in parameters.get("rules", ()))
    return MODELS[name].about and parameters.get("attribute", attribute) == attribute
