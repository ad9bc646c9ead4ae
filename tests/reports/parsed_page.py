"""A page as a tree, so that tests look at what a reader sees and where, not at how it is spelled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta", "br", "hr", "img", "link", "input"}


@dataclass
class Element:
    """An element with its attributes and what is in it."""

    tag: str
    attributes: dict[str, str]
    inside: list[Element | str] = field(default_factory=list)

    def walk(self) -> Iterator[Element]:
        """This element and all below it, in the order of the page."""
        yield self
        for part in self.inside:
            if isinstance(part, Element):
                yield from part.walk()

    def all(self, tag: str = "", within: str = "") -> list[Element]:
        """Elements with a tag, a class (within), or both."""
        classes = within.split()
        return [
            one
            for one in self.walk()
            if tag in ("", one.tag) and set(classes) <= set(one.attributes.get("class", "").split())
        ]

    @property
    def text(self) -> str:
        """What a reader sees, with single blanks; style sheets are none of it."""
        return re.sub(r"\s+", " ", "".join(self._texts())).strip()

    def _texts(self) -> Iterator[str]:
        for part in self.inside:
            if isinstance(part, str):
                yield part
            elif part.tag not in ("style", "title"):
                yield from part._texts()
                yield " " if part.tag not in ("a", "b", "i", "code", "strong", "span") else ""


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].inside.append(made)
        if tag not in _VOID:
            self.open.append(made)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].inside.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag, "an element is not closed in order"

    def handle_data(self, data: str) -> None:
        self.open[-1].inside.append(data)


def parsed(page: str) -> Element:
    builder = _Builder()
    builder.feed(page)
    builder.close()
    assert len(builder.open) == 1, "an element is not closed"
    return builder.root


def cells(tree: Element, label: str) -> list[str]:
    """The texts of all cells with a label."""
    return [one.text for one in tree.all("td") if one.attributes.get("data-label") == label]


def head_facts(tree: Element) -> dict[str, str]:
    """The facts at the head of a page, by name."""
    (head,) = tree.all("dl", "origin")
    return {one.all("dt")[0].text: one.all("dd")[0].text for one in head.all("div")}
