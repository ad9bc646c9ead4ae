"""All models by the policy's names, their specifications, and what they need to know.

Beside a table, models need facts from the attributes of a schema, such as the ground on which closeness moves
probability.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from polyseme.kernel.arrays import Bools
from polyseme.kernel.errors import PolicyError, Problem, nearest
from polyseme.kernel.parameters import MOST, Parameter, validated
from polyseme.kernel.plugins import Registry
from polyseme.kernel.spelling import Label, spellings, written
from polyseme.models import (
    closeness,
    diversity,
    k_anonymity,
    le_diversity,
    semantic_diversity,
    semantic_rules,
)
from polyseme.models.base import Background, Merging, Model, Score, Spec, Verdict, unchecked
from polyseme.schema import Attribute
from polyseme.semantics.distances.base import Distance
from polyseme.semantics.distances.ground import GROUNDS, Ground, ground_from
from polyseme.semantics.distances.tree import TreeDistance
from polyseme.tables.codes import label_array
from polyseme.tables.equivalence_classes import Counts, PublishedSets

__all__ = ["MODELS", "background_of", "ground_of", "is_about", "read_spec", "spec_of"]


def ground_of(counts: Counts, background: Background, name: str) -> Ground | None:
    """The ground that closeness names, for one attribute.

    None where it needs a hierarchy and there is none.
    """
    if name != "hierarchical":
        return ground_from(name)
    hierarchy = _hierarchy(counts, background)
    return None if hierarchy is None else ground_from(name, hierarchy)


def _hierarchy(counts: Counts, background: Background) -> Distance | None:
    """A hierarchy of the values; None without one that covers every value.

    A declared one comes first; otherwise that of the semantic distance.
    """
    if counts.attribute not in background.hierarchies:
        distance = background.distances.get(counts.attribute)
        return distance if distance is not None and distance.size == counts.domain_size else None
    paths = _paths(background.hierarchies[counts.attribute], f"hierarchies.{counts.attribute}")
    labels = [label for label in counts.labels if label is not None]
    rows = [paths.get(name, []) for name in spellings(labels)]
    if len(labels) < len(counts.labels) or not rows or not all(rows):
        return None
    if len({len(row) for row in rows}) != 1 or len(rows[0]) < 2 or len(set(spellings(row[-1] for row in rows))) != 1:
        raise PolicyError(
            Problem(
                f"hierarchies.{counts.attribute}",
                "the paths are not equally long, or do not all end in one root",
                "write leaf first, root last, and repeat a node to fill a path",
            )
        )
    return TreeDistance.from_paths(rows, beyond=list(paths.values()))


def _paths(declared: Sequence[Sequence[Label]], where: str) -> dict[str, list[str]]:
    """The path of each value by its spelling; a repeated value must have the same path."""
    rows = [[written(node) for node in path] for path in declared]
    labels = list(dict.fromkeys(chain.from_iterable(rows)))
    spelled = dict(zip(labels, spellings(labels)))
    first: dict[str, int] = {}
    for place, row in enumerate(rows):
        before = first.setdefault(spelled[row[0]], place)
        if [spelled[label] for label in rows[before]] != [spelled[label] for label in row]:
            what = f"paths {before + 1} and {place + 1} are of one value, and differ"
            raise PolicyError(Problem(where, what, "each value has one place in a hierarchy"))
    return {name: rows[place] for name, place in first.items()}


_L = Parameter("l", "whole", low=1, high=MOST, example=3)
_REAL_L = Parameter("l", low=1, high=MOST, example=3)
_K = Parameter("k", "whole", low=1, high=MOST, example=5)


def _closeness(counts: Counts, background: Background, parameters: dict[str, Any]) -> Verdict:
    ground = ground_of(counts, background, parameters["ground"])
    if ground is None:
        return unchecked("closeness", counts.attribute, parameters, "no hierarchy of the values was given")
    verdict = replace(closeness.check(counts, parameters["t"], ground), parameters=parameters)
    undeclared = counts.attribute not in background.domains and any(isinstance(label, str) for label in counts.labels)
    if parameters["ground"] == "ordered" and undeclared and not verdict.note:
        return replace(verdict, note="no order was declared (domain: [...]), so alphabetical order is used")
    return verdict


def _semantic_sets(sets: PublishedSets, background: Background, parameters: dict[str, Any]) -> Verdict:
    # A published set is taken at its word: strict is the only reading there is.
    return semantic_diversity.check_sets(sets, background.distances[sets.attribute], parameters["l"], parameters["d"])


def _closeness_score(counts: Counts, background: Background, parameters: dict[str, Any]) -> Score:
    return closeness.score(counts, parameters["t"], _required_ground(counts, background, parameters))


def _closeness_relaxed(counts: Counts, background: Background, parameters: dict[str, Any]) -> Bools:
    return closeness.relaxed(counts, parameters["t"], _required_ground(counts, background, parameters))


def _required_ground(counts: Counts, background: Background, parameters: dict[str, Any]) -> Ground:
    ground = ground_of(counts, background, parameters["ground"])
    if ground is None:
        raise PolicyError(
            Problem(f"hierarchies.{counts.attribute}", "no hierarchy of the values was given", "or use ground: equal")
        )
    return ground


_Answer = TypeVar("_Answer")
_Function: TypeAlias = Callable[[Counts, Background, dict[str, Any]], _Answer]


def _plain(function: Callable[..., _Answer]) -> _Function[_Answer]:
    return lambda counts, background, parameters: function(counts, **parameters)


def _distant(function: Callable[..., _Answer]) -> _Function[_Answer]:
    """For a model that needs the attribute's distance."""
    return lambda counts, background, parameters: function(counts, background.distances[counts.attribute], **parameters)


def _values(counts: Counts, background: Background, parameters: dict[str, Any]) -> Bools:
    return diversity.at_least(counts, parameters["l"])


def _always(merging: Merging) -> Callable[[str, Background, dict[str, Any]], Merging]:
    return lambda attribute, background, parameters: merging


def _delta_merging(attribute: str, background: Background, parameters: dict[str, Any]) -> Merging:
    # A value that one class lacks, and is let off, can become too rare by being diluted.
    return "additive" if parameters["absent"] == "violates" else "neither"


def _semantic_merging(attribute: str, background: Background, parameters: dict[str, Any]) -> Merging:
    return semantic_diversity.merging(background.distances.get(attribute), parameters["d"], parameters["reading"])


_ALL = (
    Model("k-anonymity", (_K,), about=False, merging=_always("absorbing")),
    Model("k-map", (_K, Parameter("reference", "file", required=False)), about=False, merging=_always("absorbing")),
    Model(
        "alpha-k-anonymity",
        (Parameter("alpha", low=0, high=1, above=True, example=0.5), _K),
        check=_plain(k_anonymity.check_alpha_k),
        score=_plain(k_anonymity.score_alpha_k),
        merging=_always("additive"),
        relaxed=_plain(k_anonymity.relaxed_alpha_k),
    ),
    Model(
        "distinct-diversity",
        (_L,),
        check=_plain(diversity.check_distinct),
        score=_plain(diversity.score_distinct),
        merging=_always("absorbing"),
    ),
    Model(
        "frequency-diversity",
        (_REAL_L,),
        check=_plain(diversity.check_frequency),
        score=_plain(diversity.score_frequency),
        merging=_always("additive"),
        relaxed=_values,
    ),
    Model(
        "entropy-diversity",
        (_REAL_L,),
        check=_plain(diversity.check_entropy),
        score=_plain(diversity.score_entropy),
        merging=_always("additive"),
        relaxed=_values,
    ),
    Model(
        "recursive-diversity",
        (Parameter("c", low=0, high=MOST, above=True, example=3), _L),
        check=_plain(diversity.check_recursive),
        score=_plain(diversity.score_recursive),
        merging=_always("additive"),
        relaxed=_values,
    ),
    Model(
        "diversity",
        (_L,),
        check=_plain(diversity.check_frequency),
        on_sets=lambda sets, background, parameters: diversity.check(sets, **parameters),
        score=_plain(diversity.score_frequency),
        merging=_always("additive"),
        relaxed=_values,
    ),
    Model(
        "closeness",
        (
            Parameter("t", low=0, high=1, example=0.2),
            Parameter("ground", "choice", choices=GROUNDS, default="equal", required=False),
        ),
        check=_closeness,
        score=_closeness_score,
        merging=_always("additive"),
        relaxed=_closeness_relaxed,
        relative=True,
    ),
    Model(
        "beta-likeness",
        (
            Parameter("beta", low=0, above=True, example=1),
            Parameter("enhanced", "switch", default=False, required=False),
        ),
        check=_plain(closeness.check_beta_likeness),
        score=_plain(closeness.score_beta_likeness),
        merging=_always("additive"),
        relaxed=_plain(closeness.relaxed_beta_likeness),
        relative=True,
    ),
    Model(
        "delta-disclosure",
        (
            Parameter("delta", low=0, above=True, example=1),
            Parameter("absent", "choice", choices=("violates", "ignored"), default="violates", required=False),
        ),
        check=_plain(closeness.check_delta_disclosure),
        score=_plain(closeness.score_delta_disclosure),
        merging=_delta_merging,
        relaxed=_plain(closeness.relaxed_delta_disclosure),
        relative=True,
    ),
    Model(
        "le-diversity",
        (
            _L,
            Parameter("e", low=0, example=2),
            Parameter("represented", "choice", choices=("distinct", "frequency"), default="distinct", required=False),
        ),
        semantic=True,
        check=_distant(le_diversity.check),
        score=_distant(le_diversity.score),
        relaxed=_values,
    ),
    Model(
        "semantic-diversity",
        (
            _L,
            Parameter("d", low=0, example=2),
            Parameter("reading", "choice", choices=("strict", "exists", "frequency"), default="strict", required=False),
        ),
        semantic=True,
        check=_distant(semantic_diversity.check),
        score=_distant(semantic_diversity.score),
        merging=_semantic_merging,
        relaxed=_distant(semantic_diversity.relaxed),
        on_sets=_semantic_sets,
    ),
    Model("semantic-rules", (Parameter("rules", "rules"),), about=False),
)


def _flaw(name: str, model: Model) -> str:
    if model.name != name:
        return f"calls itself '{model.name}'"
    if not model.about or model.check is None:
        return "is not about a sensitive attribute, or has no check; plugins cannot define such models"
    return ""


MODELS = Registry("polyseme.models", {model.name: model for model in _ALL}, Model, _flaw)
"""Every model by the policy's word for it."""


def read_spec(spec: Mapping[str, Mapping[str, Any]], where: str = "models") -> Spec:
    """A policy entry such as `{"closeness": {"t": 0.2, "attribute": "income"}}`, validated."""
    if len(spec) != 1:
        raise PolicyError(Problem(where, "expected one model", "write one entry for each model"))
    name, given = next(iter(spec.items()))
    if name not in MODELS:
        raise PolicyError(Problem(f"{where}.{name}", "unknown model", nearest(name, MODELS)))
    return spec_of(MODELS[name], given or {}, f"{where}.{name}")


def spec_of(model: Model, given: Mapping[str, Any], where: str = "") -> Spec:
    """The request for one model, validated; with `attribute` for a model about one."""
    given = dict(given)
    attribute = given.pop("attribute", None)
    if attribute is not None and not isinstance(attribute, str):
        raise PolicyError(Problem(f"{where}.attribute", "expected the name of one attribute", "one entry for each"))
    if attribute is not None and not model.about:
        raise PolicyError(Problem(f"{where}.attribute", "this model has no attribute", "leave it out"))
    if model.name == "semantic-rules":
        given["rules"] = semantic_rules.read_rules(given.get("rules"), f"{where}.rules")
    return Spec(model, validated(where, model.parameters, given), attribute)


def background_of(attributes: Iterable[Attribute]) -> Background:
    """Domains and distances of the attributes that have them."""
    known = [attribute for attribute in attributes if attribute.domain is not None]
    return Background(
        domains={item.name: label_array(item.domain.values).to_pylist() for item in known if item.domain},
        distances={item.name: item.distance for item in known if item.distance is not None},
    )


def is_about(model: Mapping[str, Mapping[str, Any]], attribute: str) -> bool:
    """Whether a model of a policy or manifest limits what attackers learn about an attribute.

    >>> is_about({"distinct-diversity": {"l": 3}}, "disease"), is_about({"k-anonymity": {"k": 5}}, "disease")
    (True, False)
    """
    ((name, parameters),) = model.items()
    if name == "semantic-rules":
        return any(attribute in rule.get("never-all", ()) for rule in parameters.get("rules", ()))
    return MODELS[name].about and parameters.get("attribute", attribute) == attribute
