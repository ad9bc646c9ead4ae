"""How columns were published: every kind is written to the manifest and read back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

import polyseme as ps
from polyseme.kernel.errors import ReleaseError
from polyseme.release import FORMAT, Applied, AsIs, Column, Generalized, Grouped, Manifest, Sets
from polyseme.release.data import checksum
from polyseme.schema import Attribute, Domain, Role

POLICY = """
attributes:
  age: {role: quasi-identifier}
  ill: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}}
"""


@pytest.fixture(scope="module")
def release() -> ps.Release:
    return ps.anonymize(pl.DataFrame({"age": [30, 40, 50, 60], "ill": list("abcd")}), ps.Policy.loads(POLICY))


def with_column(release: ps.Release, column: Column) -> Manifest:
    return replace(release.manifest, columns=(*release.manifest.columns, column))


def sealed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the checksum that its contents ask for."""
    document.pop("checksum", None)
    return {**document, "checksum": checksum(document)}


def test_a_release_of_sets_needs_no_more_than_format_1(release: ps.Release) -> None:
    assert [type(column) for column in release.manifest.columns] == [AsIs, Sets]
    assert release.manifest.to_dict()["format"] == 1


ILLNESSES = Domain(("a", "b", "c"))
GROUP = AsIs(Attribute("group", Role.INSENSITIVE))
OTHERS = [
    (Generalized(Attribute("zip", Role.QUASI_IDENTIFIER)), {"published": "generalized", "level": None}),
    (
        Generalized(Attribute("zip", Role.QUASI_IDENTIFIER), 1, {"1**": ("101", "102")}),
        {"published": "generalized", "level": 1, "stands_for": {"1**": ["101", "102"]}},
    ),
    (
        Grouped(Attribute("zip", Role.SENSITIVE, ILLNESSES), "group"),
        {
            "published": "grouped",
            "group": "group",
            "domain": {"values": ["a", "b", "c"], "ordered": False, "source": "policy"},
        },
    ),
    (
        AsIs(Attribute("zip", Role.SENSITIVE, ILLNESSES)),
        {"published": "as-is", "domain": {"values": ["a", "b", "c"], "ordered": False, "source": "policy"}},
    ),
]


def grouped_by(release: ps.Release, column: Column) -> Manifest:
    """The release as if its records had been put into classes."""
    columns = (*release.manifest.columns, GROUP, column)
    models = ({"distinct-diversity": {"l": 2, "attribute": "zip"}},)
    return replace(release.manifest, columns=columns, applied=Applied("full-domain", classes=2), models=models)


@pytest.mark.parametrize(("column", "entry"), OTHERS, ids=["generalized", "level", "grouped", "in-classes"])
def test_other_columns_need_format_2_and_are_read_back(
    release: ps.Release, column: Column, entry: dict[str, Any]
) -> None:
    manifest = grouped_by(release, column)
    document = json.loads(manifest.to_json())
    assert document["format"] == 2
    assert document["method"]["name"] == "full-domain"
    assert document["attributes"][-1] == {"name": "zip", "role": column.attribute.role.value, **entry}
    again = Manifest.from_dict(document)
    assert type(again["zip"]) is type(column)
    assert again.to_json() == manifest.to_json()


def test_a_group_that_is_not_there_is_noticed(release: ps.Release) -> None:
    with pytest.raises(ReleaseError, match="the column that tells groups is not listed"):
        grouped_by(release, Grouped(Attribute("zip", Role.SENSITIVE, ILLNESSES), "bucket"))


def test_format_1_has_no_such_columns(release: ps.Release) -> None:
    document = json.loads(with_column(release, Generalized(Attribute("zip", Role.QUASI_IDENTIFIER))).to_json())
    with pytest.raises(ReleaseError, match="format 1 has no such columns"):
        Manifest.from_dict(sealed({**document, "format": 1}))


def test_a_newer_format_is_refused(release: ps.Release) -> None:
    with pytest.raises(ReleaseError, match="newer than this program reads"):
        Manifest.from_dict(sealed({**json.loads(release.manifest.to_json()), "format": FORMAT + 1}))


def test_no_sensitive_column_is_published_as_it_is(release: ps.Release) -> None:
    with pytest.raises(ReleaseError, match="sensitive, but published as it is"):
        with_column(release, AsIs(Attribute("salary", Role.SENSITIVE)))


def test_classes_protect_only_what_their_models_are_about(release: ps.Release) -> None:
    with pytest.raises(ReleaseError, match="'salary': sensitive, but published as it is"):
        grouped_by(release, AsIs(Attribute("salary", Role.SENSITIVE, ILLNESSES)))


def test_what_was_done_to_a_column_is_said_in_words(release: ps.Release) -> None:
    shown = grouped_by(release, Grouped(Attribute("zip", Role.SENSITIVE, ILLNESSES), "group"))
    assert [column.in_words for column in shown.columns] == ["as it is", "sets of 2", "as it is", "by group"]
    assert "by group" in replace(release, manifest=shown)._repr_html_()
    levels = [Generalized(Attribute("zip", Role.QUASI_IDENTIFIER), level).in_words for level in (None, 0, 2)]
    assert levels == ["generalized", "as it is (level 0)", "generalized to level 2"]
