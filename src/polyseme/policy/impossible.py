"""Declared impossible combinations, as constraints of the attributes they are about."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

from polyseme.errors import PolicyError, Problem, nearest
from polyseme.policy import Exclusion
from polyseme.policy.reading import Reader, kind_of
from polyseme.schema import Condition, Constraint, Role, Schema
from polyseme.spelling import spelling, spellings

__all__ = ["matching", "with_constraints"]


def with_constraints(
    schema: Schema,
    exclusions: Sequence[Exclusion],
    from_data: Sequence[str],
    unspoken: Sequence[str] = (),
    elsewhere: Container[int] = (),
) -> tuple[Schema, tuple[str, ...]]:
    """The schema with its constraints, and remarks; every problem of the policy's `impossible` at once.

    from_data  attributes whose domain was found in the table: a value that does not occur there needs no exclusion, but
               may be one that is written otherwise
    unspoken   attributes whose values must not appear in a message
    elsewhere  the places of exclusions that are no constraints on records
    """
    if not exclusions:
        return schema, ()
    problems: list[Problem] = []
    remarks: list[str] = []
    found: dict[str, list[Constraint]] = {}
    for index, exclusion in enumerate(exclusions):
        if index in elsewhere:
            continue
        reader = Reader(None, f"$.impossible[{index}]", problems)
        when = _when(exclusion, schema, reader.at("when", None))
        excluded = _excluded(exclusion, schema, exclusion.attribute in from_data, reader, remarks, unspoken)
        if excluded:
            constraint = Constraint(when, excluded, reader.where, exclusion.may_be_empty)
            found.setdefault(exclusion.attribute, []).append(constraint)
    if problems:
        raise PolicyError(problems)
    constrained = Schema(
        tuple(replace(item, constraints=tuple(found.get(item.name, ()))) for item in schema.attributes)
    )
    return constrained, tuple(remarks)


def _when(exclusion: Exclusion, schema: Schema, reader: Reader) -> Condition:
    """The condition in texts; it must be about columns published as they are, or strata could not be told apart."""
    for name, values in exclusion.when.items():
        inner = reader.at(name, None)
        attribute = schema.by_name.get(name)
        if attribute is None:
            inner.problem(f"no attribute '{name}'", nearest(name, _untouched(schema)))
        elif attribute.protected or attribute.role is Role.IDENTIFIER:
            published = "published as sets" if attribute.protected else "not published"
            inner.problem(f"'{name}' is {published}", f"conditions are about: {', '.join(_untouched(schema))}")
        if not values:
            inner.problem("no values")
        for value in values:
            if value is None or isinstance(value, list | dict):
                inner.problem(f"expected a value, found {kind_of(value)}")
    return Condition({name: tuple(dict.fromkeys(spellings(values))) for name, values in exclusion.when.items()})


def _untouched(schema: Schema) -> list[str]:
    return [item.name for item in schema.attributes if not item.protected and item.role is not Role.IDENTIFIER]


def _excluded(
    exclusion: Exclusion,
    schema: Schema,
    from_data: bool,
    reader: Reader,
    remarks: list[str],
    unspoken: Sequence[str],
) -> tuple[int, ...]:
    attribute = schema.by_name.get(exclusion.attribute)
    protected = [item.name for item in schema.protected]
    if attribute is None or attribute.domain is None or not attribute.protected:
        what = f"no attribute '{exclusion.attribute}'" if attribute is None else "published as it is: it has no decoys"
        hint = nearest(exclusion.attribute, protected) if protected else "give the table with --data"
        reader.at("attribute", None).problem(what, hint)
        return ()
    labels = {label: code for code, label in enumerate(spellings(attribute.domain.values))}
    codes: set[int] = set()
    for index, value in enumerate(exclusion.values):
        found_codes = matching(value, labels)
        codes.update(found_codes)
        inner = reader.at("values", None).at(index, None)
        if not found_codes and from_data:
            remarks.append(f"{inner.where}: '{value}' does not occur in the table; check its spelling there")
        elif not found_codes:
            hint = nearest(str(value), labels) if attribute.name not in unspoken else ""
            inner.problem(f"'{value}' is not in the domain of '{attribute.name}'", hint)
    if len(codes) == attribute.domain.size:
        reader.at("values", None).problem("every value of the domain is impossible")
    return tuple(sorted(codes))


def matching(value: Any, labels: Mapping[str, int]) -> list[int]:
    """The code of a value, or the codes of all that begin with it when it ends in a star: `O8*`."""
    text = spelling(value)
    if text in labels:
        return [labels[text]]
    return [code for label, code in labels.items() if label.startswith(text[:-1])] if text.endswith("*") else []
