"""Every check, attack, metric and score has one entry of words, and its texts stand in one module."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import polyseme
from polyseme.models.registry import MODELS
from polyseme.privacy.promises.registry import PROMISES
from polyseme.results.views.words import ATTACKS, CHECKS, METRICS, SCORES, reached
from polyseme.scrutiny.attacks.registry import ADVERSARIES, IN_CLASSES
from polyseme.scrutiny.metrics import METRICS as COMPUTED

SOURCE = Path(polyseme.__file__).parent
DOCS = SOURCE.parents[1] / "docs"
OF_RELEASES = {
    "believable",
    "candidates",
    "columns",
    "combined-learner",
    "groups",
    "mechanism",
    "minimum",
    "people",
    "posterior",
    "promises",
    "record-count",
}
"""Checks of a release that no policy names."""
LINKAGE = {"linkage-prosecutor", "linkage-journalist", "linkage-marketer"}
COUNTED = {"cells", "covered", "coverage", "diversity_degree", "information_loss", "level", "query_error"}
"""Numbers beside the distances between two tables."""


def test_each_has_one_entry() -> None:
    assert set(CHECKS) == {*MODELS, *PROMISES, *OF_RELEASES}
    assert set(ATTACKS) == {*ADVERSARIES, *IN_CLASSES, *LINKAGE} - {"linkage"}
    assert set(METRICS) == {*COMPUTED, *COUNTED}
    assert {name for name, words in METRICS.items() if words.title} == set(COMPUTED)


def test_each_entry_is_complete() -> None:
    assert all(words.title and words.measured for name, words in CHECKS.items() if name != "promises")
    assert {name for name, words in CHECKS.items() if words.sentence} == {*MODELS}
    assert all(words.title.partition(": ")[2] for words in ATTACKS.values())
    titles = [*(words.title for words in CHECKS.values()), *(words.title for words in ATTACKS.values())]
    assert len(set(titles)) == len(titles)


def test_no_other_module_holds_the_texts() -> None:
    """A text that is written a second time would differ one day from the first."""
    ours = {words.title for words in CHECKS.values()} | {words.measured for words in CHECKS.values()}
    ours |= {words.title for words in ATTACKS.values()} | set(SCORES.values())
    ours |= {words.title for words in METRICS.values()} | {words.meaning for words in METRICS.values()}
    found = {
        (path.relative_to(SOURCE).as_posix(), text)
        for path in SOURCE.rglob("*.py")
        for text in _texts(path)
        if text in ours and text
    }
    assert {path for path, _ in found} == {"results/views/words.py"}


def _texts(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


@pytest.mark.parametrize(
    ("page", "names"),
    [("models.md", MODELS), ("attacks.md", ATTACKS), ("metrics.md", COMPUTED)],
    ids=["models", "attacks", "metrics"],
)
def test_the_page_names_each(page: str, names: dict[str, object]) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert not [name for name in names if name not in text]


def test_distances_are_no_percentages() -> None:
    assert reached("any-prior", 0.25) == "0.25 of 1"
    assert reached("skewness", 0.25) == "0.25 of 1"
    assert reached("bayes", 0.25) == "25.0%"
