"""How columns were published: every kind is written to the manifest and read back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

import polyseme as ps
from polyseme.errors import ReleaseError
from polyseme.release import AsIs, Column, Generalized, Grouped, Manifest, Sets
from polyseme.release.documents import checksum
from polyseme.schema import Attribute, Role

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


@pytest.mark.parametrize(
    ("kind", "word", "role"),
    [(Generalized, "generalized", Role.QUASI_IDENTIFIER), (Grouped, "grouped", Role.SENSITIVE)],
)
def test_other_columns_need_format_2_and_are_read_back(
    release: ps.Release, kind: type[Generalized | Grouped], word: str, role: Role
) -> None:
    manifest = with_column(release, kind(Attribute("zip", role)))
    document = json.loads(manifest.to_json())
    assert document["format"] == 2
    assert document["attributes"][-1] == {"name": "zip", "role": role.value, "published": word}
    again = Manifest.from_dict(document)
    assert isinstance(again["zip"], kind)
    assert again.to_json() == manifest.to_json()


def test_format_1_has_no_such_columns(release: ps.Release) -> None:
    document = json.loads(with_column(release, Generalized(Attribute("zip", Role.QUASI_IDENTIFIER))).to_json())
    with pytest.raises(ReleaseError, match="format 1 has no such columns"):
        Manifest.from_dict(sealed({**document, "format": 1}))


def test_a_newer_format_is_refused(release: ps.Release) -> None:
    with pytest.raises(ReleaseError, match="newer than this program reads"):
        Manifest.from_dict(sealed({**json.loads(release.manifest.to_json()), "format": 3}))


def test_no_sensitive_column_is_published_as_it_is(release: ps.Release) -> None:
    with pytest.raises(ReleaseError, match="sensitive, but published as it is"):
        with_column(release, AsIs(Attribute("salary", Role.SENSITIVE)))


def test_what_was_done_to_a_column_is_said_in_words(release: ps.Release) -> None:
    shown = with_column(release, Grouped(Attribute("zip", Role.SENSITIVE)))
    assert [column.in_words for column in shown.columns] == ["as it is", "sets of 2", "by group"]
    assert "by group" in replace(release, manifest=shown)._repr_html_()


def test_a_question_about_a_column_without_sets_is_refused(release: ps.Release) -> None:
    for column in (Generalized(Attribute("zip", Role.QUASI_IDENTIFIER)), Grouped(Attribute("zip", Role.SENSITIVE))):
        shown = replace(release, manifest=with_column(release, column))
        with pytest.raises(ps.QuestionError, match=f"'zip' is published {column.in_words}"):
            ps.estimate(shown, of=["zip"])
