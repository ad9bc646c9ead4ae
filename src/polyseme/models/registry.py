"""All models by the policy's names, and what a policy asks of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from polyseme.arrays import Bools
from polyseme.distances.ground import GROUNDS, Ground
from polyseme.errors import PolicyError, Problem, nearest
from polyseme.models import (
    alpha_k_anonymity,
    beta_likeness,
    closeness,
    delta_disclosure,
    distinct_diversity,
    diversity,
    entropy_diversity,
    frequency_diversity,
    le_diversity,
    recursive_diversity,
    semantic_diversity,
    semantic_rules,
)
from polyseme.models.base import Merging, Score, Verdict, unchecked
from polyseme.models.grounds import ground_of
from polyseme.models.model import Background, Model, Spec
from polyseme.parameters import MOST, Parameter, validated
from polyseme.plugins import Registry
from polyseme.tables.classes import Counts, PublishedSets

__all__ = ["MODELS", "read_spec", "spec_of"]

_L = Parameter("l", "whole", low=1, high=MOST, example=3)
_REAL_L = Parameter("l", low=1, high=MOST, example=3)
_K = Parameter("k", "whole", low=1, high=MOST, example=5)


def _closeness(counts: Counts, background: Background, asked: dict[str, Any]) -> Verdict:
    ground = ground_of(counts, background, asked["ground"])
    if ground is None:
        return unchecked("closeness", counts.attribute, asked, "no hierarchy of the values was given")
    verdict = replace(closeness.check(counts, asked["t"], ground), parameters=asked)
    undeclared = counts.attribute not in background.domains and any(isinstance(label, str) for label in counts.labels)
    if asked["ground"] == "ordered" and undeclared and not verdict.note:
        return replace(verdict, note="no order was declared (domain: [...]), so alphabetical order is used")
    return verdict


def _semantic_sets(sets: PublishedSets, background: Background, asked: dict[str, Any]) -> Verdict:
    # A published set is taken at its word: strict is the only reading there is.
    return semantic_diversity.check_sets(sets, background.distances[sets.attribute], asked["l"], asked["d"])


def _closeness_score(counts: Counts, background: Background, asked: dict[str, Any]) -> Score:
    return closeness.score(counts, asked["t"], _required_ground(counts, background, asked))


def _closeness_relaxed(counts: Counts, background: Background, asked: dict[str, Any]) -> Bools:
    return closeness.relaxed(counts, asked["t"], _required_ground(counts, background, asked))


def _required_ground(counts: Counts, background: Background, asked: dict[str, Any]) -> Ground:
    ground = ground_of(counts, background, asked["ground"])
    if ground is None:
        raise PolicyError(
            Problem(f"hierarchies.{counts.attribute}", "no hierarchy of the values was given", "or use ground: equal")
        )
    return ground


_Answer = TypeVar("_Answer")
_Asked: TypeAlias = Callable[[Counts, Background, dict[str, Any]], _Answer]


def _plain(function: Callable[..., _Answer]) -> _Asked[_Answer]:
    return lambda counts, background, asked: function(counts, **asked)


def _distant(function: Callable[..., _Answer]) -> _Asked[_Answer]:
    """For a model that needs the attribute's distance."""
    return lambda counts, background, asked: function(counts, background.distances[counts.attribute], **asked)


def _values(counts: Counts, background: Background, asked: dict[str, Any]) -> Bools:
    return distinct_diversity.at_least(counts, asked["l"])


def _always(merging: Merging) -> Callable[[str, Background, dict[str, Any]], Merging]:
    return lambda attribute, background, asked: merging


def _delta_merging(attribute: str, background: Background, asked: dict[str, Any]) -> Merging:
    # A value that one class lacks, and is let off, can become too rare by being diluted.
    return "additive" if asked["absent"] == "violates" else "neither"


def _semantic_merging(attribute: str, background: Background, asked: dict[str, Any]) -> Merging:
    return semantic_diversity.merging(background.distances.get(attribute), asked["d"], asked["reading"])


_ALL = (
    Model("k-anonymity", (_K,), about=False, merging=_always("absorbing")),
    Model("k-map", (_K, Parameter("reference", "file", required=False)), about=False, merging=_always("absorbing")),
    Model(
        "alpha-k-anonymity",
        (Parameter("alpha", low=0, high=1, above=True, example=0.5), _K),
        check=_plain(alpha_k_anonymity.check_alpha_k),
        score=_plain(alpha_k_anonymity.score_alpha_k),
        merging=_always("additive"),
        relaxed=_plain(alpha_k_anonymity.relaxed_alpha_k),
    ),
    Model(
        "distinct-diversity",
        (_L,),
        check=_plain(distinct_diversity.check_distinct),
        score=_plain(distinct_diversity.score_distinct),
        merging=_always("absorbing"),
    ),
    Model(
        "frequency-diversity",
        (_REAL_L,),
        check=_plain(frequency_diversity.check_frequency),
        score=_plain(frequency_diversity.score_frequency),
        merging=_always("additive"),
        relaxed=_values,
    ),
    Model(
        "entropy-diversity",
        (_REAL_L,),
        check=_plain(entropy_diversity.check_entropy),
        score=_plain(entropy_diversity.score_entropy),
        merging=_always("additive"),
        relaxed=_values,
    ),
    Model(
        "recursive-diversity",
        (Parameter("c", low=0, high=MOST, above=True, example=3), _L),
        check=_plain(recursive_diversity.check_recursive),
        score=_plain(recursive_diversity.score_recursive),
        merging=_always("additive"),
        relaxed=_values,
    ),
    Model(
        "diversity",
        (_L,),
        check=_plain(frequency_diversity.check_frequency),
        on_sets=lambda sets, background, asked: diversity.check(sets, **asked),
        score=_plain(frequency_diversity.score_frequency),
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
        check=_plain(beta_likeness.check_beta_likeness),
        score=_plain(beta_likeness.score_beta_likeness),
        merging=_always("additive"),
        relaxed=_plain(beta_likeness.relaxed_beta_likeness),
        relative=True,
    ),
    Model(
        "delta-disclosure",
        (
            Parameter("delta", low=0, above=True, example=1),
            Parameter("absent", "choice", choices=("violates", "ignored"), default="violates", required=False),
        ),
        check=_plain(delta_disclosure.check_delta_disclosure),
        score=_plain(delta_disclosure.score_delta_disclosure),
        merging=_delta_merging,
        relaxed=_plain(delta_disclosure.relaxed_delta_disclosure),
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
    """What is asked of one model, validated; with `attribute` for a model about one."""
    given = dict(given)
    attribute = given.pop("attribute", None)
    if attribute is not None and not isinstance(attribute, str):
        raise PolicyError(Problem(f"{where}.attribute", "expected the name of one attribute", "one entry for each"))
    if attribute is not None and not model.about:
        raise PolicyError(Problem(f"{where}.attribute", "this model has no attribute", "leave it out"))
    if model.name == "semantic-rules":
        given["rules"] = semantic_rules.read_rules(given.get("rules"), f"{where}.rules")
    return Spec(model, validated(where, model.parameters, given), attribute)
