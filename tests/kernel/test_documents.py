"""What no reader of YAML should have to bear."""

from __future__ import annotations

import pytest

import polyseme as ps
from polyseme.kernel.documents import parse

LAUGHS = "{l0: &l0 [x, y], " + ", ".join(f"l{i}: &l{i} [*l{i - 1}, *l{i - 1}, *l{i - 1}]" for i in range(1, 40)) + "}"


@pytest.mark.parametrize("text", ["a: &a [b, *a]", "a: &a {b: *a}", "&a {b: {c: [*a]}}", LAUGHS])
def test_aliases_without_end_are_refused(text: str) -> None:
    with pytest.raises(ps.PolicyError, match="its aliases refer to themselves"):
        parse(text)


def test_ordinary_aliases_are_followed() -> None:
    assert parse("one: &one [no, 010]\ntwo: *one\nthree: {four: *one}") == {
        "one": ["no", "010"],
        "two": ["no", "010"],
        "three": {"four": ["no", "010"]},
    }


def test_many_values_without_aliases_are_no_repetition() -> None:
    assert len(parse(f"[{', '.join(map(str, range(3000)))}]")) == 3000


@pytest.mark.parametrize("text", ["", "\ufeff", "# nothing\n"])
def test_nothing_is_nothing(text: str) -> None:
    assert parse(text) is None
