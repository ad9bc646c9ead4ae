"""Checking a list of models on a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import ImpossibleError, PolicyError, Problem
from polyseme.models import k_anonymity, semantic_rules
from polyseme.models.base import Background, Spec, Verdict, unchecked
from polyseme.models.registry import read_spec
from polyseme.tables.equivalence_classes import Classes, Counts, classes_of, published_sets

__all__ = ["check_models"]


def check_models(
    frame: pl.DataFrame,
    quasi_identifiers: Sequence[str],
    specs: Iterable[Spec | Mapping[str, Mapping[str, Any]]],
    *,
    sensitive: Sequence[str] = (),
    background: Background | None = None,
    counts: Ints | None = None,
    people: Ints | None = None,
    first: Ints | None = None,
) -> tuple[Verdict, ...]:
    """Check every model of `specs` on a table, in order.

    A model without an attribute is checked for each sensitive one. An attribute that is itself a quasi-identifier is
    checked in the classes formed by all the others: the classes of the sensitive-QID models. A column of lists holds
    published sets. Whatever cannot be checked does not hold; only a malformed request raises.
    `counts` says how many records each row stands for, where equal ones were counted before; verdicts then name no row,
    unless `first` says in which row of the table each occurs first.
    `people` says whose each row is, as a number from 0: then people are counted in place of records.

    >>> table = pl.DataFrame({"zip": ["1", "1", "2", "2"], "ill": ["flu", "cold", "flu", "flu"]})
    >>> found = check_models(
    ...     table, ["zip"], [{"k-anonymity": {"k": 2}}, {"distinct-diversity": {"l": 2}}], sensitive=["ill"]
    ... )
    >>> [verdict.holds for verdict in found]
    [True, False]
    """
    parsed = _read_all(specs)
    background = background or Background()
    verdicts: list[Verdict] = []
    about = any(spec.model.about for spec in parsed)
    named = sorted({*(sensitive if about else ()), *(spec.attribute for spec in parsed if spec.attribute)})
    grouped: dict[tuple[str, ...], Classes] = {}
    for spec in parsed:
        if spec.model.name == "semantic-rules":
            verdicts += semantic_rules.check(frame, quasi_identifiers, spec.parameters["rules"], counts)
            continue
        attributes = (spec.attribute,) if spec.attribute or not spec.model.about else tuple(sensitive)
        if not attributes:
            verdicts.append(unchecked(spec.model.name, None, spec.parameters, "no sensitive attribute was named"))
        verdicts += [
            _check_one(frame, (counts, first), people, quasi_identifiers, spec, attribute, named, background, grouped)
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
    counted: tuple[Ints | None, Ints | None],
    people: Ints | None,
    quasi_identifiers: Sequence[str],
    spec: Spec,
    attribute: str | None,
    named: Sequence[str],
    background: Background,
    grouped: dict[tuple[str, ...], Classes],
) -> Verdict:
    (counts, first), name, parameters = counted, spec.model.name, spec.parameters
    if name == "k-map":
        # Where the population is kept is no part of what was promised.
        parameters = {"k": parameters["k"]}
    keys = tuple(column for column in quasi_identifiers if column != attribute)
    obstacle = _obstacle(frame, keys, spec, attribute, background)
    if obstacle:
        return unchecked(name, attribute, parameters, obstacle)
    if name == "k-map" and background.reference is not None:
        people_of, meanings = background.reference, background.meanings
        return k_anonymity.check_k_map(frame, people_of, keys, parameters["k"], counts, meanings, first)
    if attribute is not None and _holds_sets(frame, attribute):
        return _check_sets(frame, counts, spec, attribute, background)
    if keys not in grouped:
        # One grouping serves every attribute of these classes.
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
            people=people,
            first=first,
        )
    if attribute is None:
        return k_anonymity.check(grouped[keys], parameters["k"])
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
            return "no reference table was given to count people in: --population FILE"
        unknown = [column for column in keys if column not in background.reference.columns]
        return f"the reference table has no column {', '.join(map(repr, unknown))}" if unknown else ""
    return ""


def _check_counts(counts: Counts, spec: Spec, background: Background) -> Verdict:
    name, attribute, parameters = spec.model.name, counts.attribute, spec.parameters
    if spec.model.semantic and not counts.flaw and background.distances[attribute].size != counts.domain_size:
        return unchecked(name, attribute, parameters, "the distance and the domain of the attribute differ in size")
    assert spec.model.check is not None  # noqa: S101 - every model about an attribute has one
    try:
        return replace(spec.model.check(counts, background, parameters), model=name)
    except ImpossibleError as error:
        return unchecked(name, attribute, parameters, f"cannot be checked: {error.problems[0].what}")


def _check_sets(
    frame: pl.DataFrame, counts: Ints | None, spec: Spec, attribute: str, background: Background
) -> Verdict:
    assert spec.model.on_sets is not None  # noqa: S101 - seen to before
    sets = published_sets(frame, attribute, background.domains[attribute], counts)
    return replace(spec.model.on_sets(sets, background, spec.parameters), parameters=spec.parameters)
