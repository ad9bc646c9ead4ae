"""CITATION.cff says what the package says, in the words of the Citation File Format 1.2."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

from polyseme.kernel.version import __version__

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = {
    "authors", "collection-title", "doi", "end", "issue", "journal", "notes", "start", "title", "type", "volume", "year"
}  # fmt: skip


def test_citation_agrees_with_the_package() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cited["cff-version"] == "1.2.0"
    assert cited["version"] == __version__
    assert (cited["license"], cited["abstract"]) == (project["license"], project["description"])
    assert cited["keywords"] == project["keywords"]
    assert cited["authors"] == [{"name": "The Polyseme developers"}]


def test_references_have_what_the_format_asks_for() -> None:
    for reference in yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["references"]:
        assert {"type", "title", "authors"} <= set(reference) <= REFERENCE
        assert reference["type"] in {"article", "conference-paper"}
        assert all(set(author) == {"family-names", "given-names"} for author in reference["authors"])
