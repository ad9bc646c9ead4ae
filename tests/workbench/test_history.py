"""Undo and redo give back the same texts, after a restart too."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.kernel.errors import InvalidInput
from polyseme.workbench.history import History


@settings(max_examples=40)
@given(st.lists(st.one_of(st.sampled_from(["undo", "redo"]), st.text("ab: \n", min_size=1, max_size=6)), max_size=20))
def test_undo_then_redo_is_the_same_text(steps: list[str]) -> None:
    """Compared with a list and a place in it."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        policy = Path(folder) / "policy.yaml"
        history, texts, place = History(policy), list[str](), -1
        for step in steps:
            if step in ("undo", "redo"):
                to = place + (-1 if step == "undo" else 1)
                if 0 <= to < len(texts):
                    place = to
                    assert history.step(-1 if step == "undo" else 1).text == texts[place]
                else:
                    with pytest.raises(InvalidInput):
                        history.step(-1 if step == "undo" else 1)
            elif place < 0 or texts[place] != step:
                texts, place = [*texts[: place + 1], step], place + 1
                history.add(step, "typed")
            else:
                history.add(step, "typed")
            again = History(policy)
            assert [entry.text for entry in again.entries] == texts
            assert again.place == place


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_only_the_owner_reads_it(tmp_path: Path) -> None:
    History(tmp_path / "policy.yaml").add("attributes: {}", "Opened")
    (file,) = tmp_path.glob(".policy.yaml.history")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_damaged_file_is_no_history(tmp_path: Path) -> None:
    (tmp_path / ".policy.yaml.history").write_text("{]", encoding="utf-8")
    history = History(tmp_path / "policy.yaml")
    assert history.now is None
    history.add("attributes: {}", "Opened")
    assert history.undo is None


def test_it_says_which_release_was_made_with_a_text(tmp_path: Path) -> None:
    history = History(tmp_path / "policy.yaml")
    history.add("one", "Opened")
    revision = history.entries[0].revision
    history.add("two", "Edited")
    history.released(revision, "release")
    assert [entry.release for entry in History(tmp_path / "policy.yaml").entries] == ["release", ""]
