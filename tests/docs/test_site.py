"""The documentation as a site: complete, and without other hosts; what its pages show is what the commands say."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "docs" / "making"))

import notebooks  # noqa: E402 - these live beside the documentation
import pages  # noqa: E402
import transcripts  # noqa: E402

ELSEWHERE = re.compile(r"^(?:https?:)?//")
STYLE = re.compile(r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"')]+)")


class Assets(HTMLParser):
    """What a page loads by itself; links that a reader may follow are no part of that."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kept = [value for name, value in attrs if value and name in {"src", "href", "srcset", "data", "xlink:href"}]
        self.found += kept if tag != "a" else []


def foreign(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    reader = Assets()
    if path.suffix in {".html", ".svg"}:
        reader.feed(text)
    return [one for one in reader.found if ELSEWHERE.match(one)] + (STYLE.findall(text) if path.suffix != ".js" else [])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "site"
    assert pages.unnamed() == []
    assert pages.build(out) == 0
    return out


def test_the_site_loads_nothing_from_other_hosts(built: Path) -> None:
    files = [path for path in built.rglob("*") if path.suffix in {".html", ".svg", ".css"}]
    assert len([path for path in files if path.suffix == ".html"]) > 50
    assert {str(path): foreign(path) for path in files if foreign(path)} == {}
    # The theme would fetch the library that draws these.
    assert not [path for path in built.rglob("*.html") if 'class="mermaid"' in path.read_text(encoding="utf-8")]


def test_what_comes_from_other_hosts_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        '<a href="https://a.example">a</a><script src="//b.example/x.js"></script><style>@import "http://c/"'
    )
    assert foreign(page) == ["//b.example/x.js", "http://c/"]


def test_the_site_can_be_searched_from_a_folder(built: Path) -> None:
    index = json.loads((built / "search.json").read_text(encoding="utf-8"))
    titles = {item["title"] for item in index["items"]}
    assert {"A first release in ten minutes", "For analysts", "What to tell the ethics board"} <= titles
    assert (built / "search.js").read_text(encoding="utf-8").startswith("var __index")
    assert (built / "iframe-worker.js").exists()
    home = (built / "index.html").read_text(encoding="utf-8")
    assert '<script src="./iframe-worker.js">' in home
    assert 'data-md-color-scheme="slate"' in home


def test_pages_of_notebooks_have_their_outputs(built: Path) -> None:
    page = (built / "notebooks" / "data-holder.html").read_text(encoding="utf-8")
    assert "12 of 12 true numbers lie in their confidence intervals" in page
    assert '<div class="output"><svg' in page


def test_broken_links_and_parts_fail(built: Path, tmp_path: Path) -> None:
    pages.stage(tmp_path / "docs")
    for name, link in (("glossary.md", "[gone](gone.md)"), ("risk.md", "[no such part](policy.md#gone)")):
        with (tmp_path / "docs" / name).open("a", encoding="utf-8") as page:
            page.write(f"\n{link}\n")
    made = pages.generate(tmp_path)
    assert made.returncode != 0
    output = made.stdout + made.stderr
    assert all(name in output for name in ("glossary.md", "risk.md"))


def test_links_lead_to_the_same_pages_on_the_site() -> None:
    known = {PurePosixPath(name): pages._on_site(PurePosixPath(name)) for name in ("README.md", "docs/policy.md")}
    known[PurePosixPath("docs/methods/README.md")] = PurePosixPath("methods/index.md")
    text = (
        "[a](docs/policy.md#roles), [b](docs/methods/), [`c`](LICENSE), [d](gone.md)\n```sh\n[e](docs/policy.md)\n```\n"
    )
    assert pages.relinked(text, PurePosixPath("README.md"), known) == (
        "[a](policy.md#roles), [b](methods/index.md), `c`, [d](gone.md)\n```sh\n[e](docs/policy.md)\n```\n"
    )


def test_pictures_are_small_and_shown() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")))
    for picture in (ROOT / "docs" / "pictures").iterdir():
        assert picture.stat().st_size < 150_000, picture.name
        assert f"pictures/{picture.name}" in text, picture.name
        assert picture.suffix == ".png" or not foreign(picture), picture.name


@pytest.mark.parametrize("page", transcripts.PAGES)
def test_commands_of_a_page_say_what_it_shows(page: str, tmp_path: Path) -> None:
    assert transcripts.differences(page, tmp_path) == []


def test_outputs_are_compared_with_little_freedom() -> None:
    assert transcripts.alike("I10  1,000  41.2% ████", "I10 1,030 42.0% ███▌")
    assert not transcripts.alike("I10 1,000", "I10 1,100")
    assert not transcripts.alike("41.2% of all", "45.5% of all")
    assert not transcripts.alike("Every model holds.", "Every model fails.")
    assert not transcripts.alike("████████", "████")
    assert transcripts.shortened(list("abcdef"), ["x", "...", "y", "z"]) == ["a", "...", "e", "f"]


@pytest.mark.parametrize("name", notebooks.NOTEBOOKS)
def test_notebooks_say_what_is_stored(name: str) -> None:
    assert notebooks.differences(name) == []
