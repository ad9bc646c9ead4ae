"""All models by the policy's names, and the verb that checks a list of them on a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeAlias, TypeVar

import polars as pl

from polyseme.arrays import Bools, Ints
from polyseme.distances.base import Distance
from polyseme.distances.ground import GROUNDS, Ground, ground_from
from polyseme.distances.tree import TreeDistance
from polyseme.errors import ImpossibleError, PolicyError, Problem, nearest
from polyseme.models import (
    alpha_k_anonymity,
    beta_likeness,
    closeness,
    delta_disclosure,
    distinct_diversity,
    diversity,
    entropy_diversity,
    frequency_diversity,
    k_anonymity,
    k_map,
    le_diversity,
    recursive_diversity,
    semantic_diversity,
    semantic_rules,
)
from polyseme.models.base import Merging, Score, Verdict, unchecked
from polyseme.parameters import MOST, Parameter, validated
from polyseme.plugins import Registry
from polyseme.spelling import Label, spellings, written
from polyseme.tables.classes import Classes, Counts, PublishedSets, classes_of, published_sets
from polyseme.tables.coding.labels import MissingAs

__all__ = ["MODELS", "Background", "Model", "Spec", "check_models", "ground_of", "read_spec", "spec_of"]


@dataclass(frozen=True, eq=False)
class Background:
    """What is publicly known beside the table; each mapping by attribute.

    domains      values in order of their codes
    distances    semantic distance between codes
    hierarchies  paths of labels, leaf first and root last, one for each value
    reference    a table of the population, for k-map
    missing      whether a missing sensitive value is declared to be a category; for all attributes, or for each
    wildcard     whether a missing quasi-identifier matches anything
    """

    domains: Mapping[str, Sequence[Label]] = field(default_factory=dict)
    distances: Mapping[str, Distance] = field(default_factory=dict)
    hierarchies: Mapping[str, Sequence[Sequence[Label]]] = field(default_factory=dict)
    reference: pl.DataFrame | None = None
    missing: MissingAs | Mapping[str, MissingAs] = "refuse"
    wildcard: bool = False


@dataclass(frozen=True)
class Model:
    """A model's name, parameters and how it is checked.

    about    whether it looks at a sensitive attribute
    semantic whether it needs a distance
    check    on the classes of a table: (counts, background, parameters)
    on_sets  on published sets, where the model says something about them

    What a search for classes needs to know; a plugin may leave it out, and can then only be checked:

    score     the number that `check` judges: (counts, background, parameters)
    merging   what becomes of classes that are merged, while the whole table stays the same: (attribute, background,
              parameters); with "additive" and "neither", `relaxed` may help
    relaxed   which classes meet a condition that the model implies, and that a class keeps whatever is merged with it
    relative  whether classes are compared with the whole table
    """

    name: str
    parameters: tuple[Parameter, ...]
    about: bool = True
    semantic: bool = False
    check: Callable[[Counts, Background, dict[str, Any]], Verdict] | None = None
    on_sets: Callable[[PublishedSets, Background, dict[str, Any]], Verdict] | None = None
    score: Callable[[Counts, Background, dict[str, Any]], Score] | None = None
    merging: Callable[[str, Background, dict[str, Any]], Merging] = lambda attribute, background, asked: "neither"
    relaxed: Callable[[Counts, Background, dict[str, Any]], Bools] | None = None
    relative: bool = False


@dataclass(frozen=True)
class Spec:
    """A model that was asked for."""

    model: Model
    parameters: dict[str, Any]
    attribute: str | None = None


_L = Parameter("l", "whole", low=1, high=MOST, example=3)
_REAL_L = Parameter("l", low=1, high=MOST, example=3)
_K = Parameter("k", "whole", low=1, high=MOST, example=5)


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
    return TreeDistance.from_paths(rows)


def _paths(declared: Sequence[Sequence[Label]], where: str) -> dict[str, list[str]]:
    """The path of each value by its spelling; a value may be there twice only if both paths are the same."""
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


def ground_of(counts: Counts, background: Background, name: str) -> Ground | None:
    """The ground that closeness names, for one attribute; None where it needs a hierarchy and there is none."""
    if name != "hierarchical":
        return ground_from(name)
    hierarchy = _hierarchy(counts, background)
    return None if hierarchy is None else ground_from(name, hierarchy)


def _closeness(counts: Counts, background: Background, asked: dict[str, Any]) -> Verdict:
    ground = ground_of(counts, background, asked["ground"])
    if ground is None:
        return unchecked("closeness", counts.attribute, asked, "no hierarchy of the values was given")
    verdict = replace(closeness.check(counts, asked["t"], ground), parameters=asked)
    undeclared = counts.attribute not in background.domains and any(isinstance(label, str) for label in counts.labels)
    if asked["ground"] == "ordered" and undeclared and not verdict.note:
        return replace(verdict, note="no order was declared (domain: [..]), so alphabetical order is used")
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
        check=_plain(alpha_k_anonymity.check),
        score=_plain(alpha_k_anonymity.score),
        merging=_always("additive"),
        relaxed=_plain(alpha_k_anonymity.relaxed),
    ),
    Model(
        "distinct-diversity",
        (_L,),
        check=_plain(distinct_diversity.check),
        score=_plain(distinct_diversity.score),
        merging=_always("absorbing"),
    ),
    Model(
        "frequency-diversity",
        (_REAL_L,),
        check=_plain(frequency_diversity.check),
        score=_plain(frequency_diversity.score),
        merging=_always("additive"),
        relaxed=_values,
    ),
    Model(
        "entropy-diversity",
        (_REAL_L,),
        check=_plain(entropy_diversity.check),
        score=_plain(entropy_diversity.score),
        merging=_always("additive"),
        relaxed=_values,
    ),
    Model(
        "recursive-diversity",
        (Parameter("c", low=0, high=MOST, above=True, example=3), _L),
        check=_plain(recursive_diversity.check),
        score=_plain(recursive_diversity.score),
        merging=_always("additive"),
        relaxed=_values,
    ),
    Model(
        "diversity",
        (_L,),
        check=_plain(frequency_diversity.check),
        on_sets=lambda sets, background, asked: diversity.check(sets, **asked),
        score=_plain(frequency_diversity.score),
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
        check=_plain(beta_likeness.check),
        score=_plain(beta_likeness.score),
        merging=_always("additive"),
        relaxed=_plain(beta_likeness.relaxed),
        relative=True,
    ),
    Model(
        "delta-disclosure",
        (
            Parameter("delta", low=0, above=True, example=1),
            Parameter("absent", "choice", choices=("violates", "ignored"), default="violates", required=False),
        ),
        check=_plain(delta_disclosure.check),
        score=_plain(delta_disclosure.score),
        merging=_delta_merging,
        relaxed=_plain(delta_disclosure.relaxed),
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


def check_models(
    frame: pl.DataFrame,
    quasi_identifiers: Sequence[str],
    specs: Iterable[Spec | Mapping[str, Mapping[str, Any]]],
    *,
    sensitive: Sequence[str] = (),
    background: Background | None = None,
    counts: Ints | None = None,
) -> tuple[Verdict, ...]:
    """Check every model of `specs` on a table, in order.

    A model without an attribute is checked for each sensitive one. An attribute that is itself a quasi-identifier is
    checked in the classes formed by all the others: the classes of the sensitive-QID models. A column of lists holds
    published sets. Whatever cannot be checked does not hold; only a malformed request raises.
    `counts` says how many records each row stands for, where equal ones were counted before; verdicts then name no row.

    >>> table = pl.DataFrame({"zip": ["1", "1", "2", "2"], "ill": ["flu", "cold", "flu", "flu"]})
    >>> found = check_models(
    ...     table, ["zip"], [{"k-anonymity": {"k": 2}}, {"distinct-diversity": {"l": 2}}], sensitive=["ill"]
    ... )
    >>> [verdict.holds for verdict in found]
    [True, False]
    """
    asked = _read_all(specs)
    background = background or Background()
    verdicts: list[Verdict] = []
    about = any(spec.model.about for spec in asked)
    named = sorted({*(sensitive if about else ()), *(spec.attribute for spec in asked if spec.attribute)})
    grouped: dict[tuple[str, ...], Classes] = {}
    for spec in asked:
        if spec.model.name == "semantic-rules":
            verdicts += semantic_rules.check(frame, quasi_identifiers, spec.parameters["rules"], counts)
            continue
        attributes = (spec.attribute,) if spec.attribute or not spec.model.about else tuple(sensitive)
        if not attributes:
            verdicts.append(unchecked(spec.model.name, None, spec.parameters, "no sensitive attribute was named"))
        verdicts += [
            _check_one(frame, counts, quasi_identifiers, spec, attribute, named, background, grouped)
            for attribute in attributes
        ]
    return tuple(verdicts)


def _read_all(specs: Iterable[Spec | Mapping[str, Mapping[str, Any]]]) -> list[Spec]:
    read: list[Spec] = []
    problems: list[Problem] = []
    for number, spec in enumerate(specs):
        try:
            read.append(spec if isinstance(spec, Spec) else read_spec(spec, f"models[{number}]"))
        except PolicyError as error:
            problems += error.problems
    if problems:
        raise PolicyError(problems)
    return read


def _check_one(
    frame: pl.DataFrame,
    counts: Ints | None,
    quasi_identifiers: Sequence[str],
    spec: Spec,
    attribute: str | None,
    named: Sequence[str],
    background: Background,
    grouped: dict[tuple[str, ...], Classes],
) -> Verdict:
    name, asked = spec.model.name, spec.parameters
    keys = tuple(column for column in quasi_identifiers if column != attribute)
    obstacle = _obstacle(frame, keys, spec, attribute, background)
    if obstacle:
        return unchecked(name, attribute, asked, obstacle)
    if name == "k-map" and background.reference is not None:
        return k_map.check(frame, background.reference, keys, asked["k"], counts)
    if attribute is not None and _holds_sets(frame, attribute):
        return _check_sets(frame, counts, spec, attribute, background)
    if keys not in grouped:
        # One grouping serves every attribute that these classes may be asked about.
        plain = [n for n in named if n in frame.columns and n not in keys and not _holds_sets(frame, n)]
        domains, missing, wildcard = dict(background.domains), background.missing, background.wildcard
        grouped[keys] = classes_of(
            frame,
            keys,
            plain,
            domains=domains,
            missing=missing,
            wildcard=wildcard,
            generalized=quasi_identifiers,
            counts=counts,
        )
    if attribute is None:
        return k_anonymity.check(grouped[keys], asked["k"])
    return _check_counts(grouped[keys].attributes[attribute], spec, background)


def _holds_sets(frame: pl.DataFrame, column: str) -> bool:
    return isinstance(frame.schema[column], (pl.List, pl.Array))


def _obstacle(
    frame: pl.DataFrame, keys: Sequence[str], spec: Spec, attribute: str | None, background: Background
) -> str:
    """Why this model cannot be checked on this table; empty when it can."""
    absent = [column for column in (*keys, attribute) if column and column not in frame.columns]
    if absent:
        return f"the table has no column {', '.join(map(repr, absent))}"
    if spec.model.semantic and attribute not in background.distances:
        return "no semantic distance was given for the attribute"
    if attribute is not None and _holds_sets(frame, attribute):
        if spec.model.on_sets is None:
            return "the model says nothing about published sets"
        return "" if attribute in background.domains else "no domain was given for the attribute"
    lists = [column for column in keys if _holds_sets(frame, column)]
    if lists:
        return f"classes cannot be formed by published sets: {', '.join(map(repr, lists))}"
    if spec.model.name == "k-map":
        if background.reference is None:
            return "no reference table was given"
        unknown = [column for column in keys if column not in background.reference.columns]
        return f"the reference table has no column {', '.join(map(repr, unknown))}" if unknown else ""
    return ""


def _check_counts(counts: Counts, spec: Spec, background: Background) -> Verdict:
    name, attribute, asked = spec.model.name, counts.attribute, spec.parameters
    if spec.model.semantic and not counts.flaw and background.distances[attribute].size != counts.domain_size:
        return unchecked(name, attribute, asked, "the distance and the domain of the attribute differ in size")
    assert spec.model.check is not None  # noqa: S101 - every model about an attribute has one
    try:
        return replace(spec.model.check(counts, background, asked), model=name)
    except ImpossibleError as error:
        return unchecked(name, attribute, asked, f"cannot be checked: {error.problems[0].what}")


def _check_sets(
    frame: pl.DataFrame, counts: Ints | None, spec: Spec, attribute: str, background: Background
) -> Verdict:
    assert spec.model.on_sets is not None  # noqa: S101 - seen to before
    sets = published_sets(frame, attribute, background.domains[attribute], counts)
    return replace(spec.model.on_sets(sets, background, spec.parameters), parameters=spec.parameters)
