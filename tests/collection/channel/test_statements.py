"""What respondents and readers are told about the channel and about tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyseme.device.protected import REPORTED, RESPONDENT_TEXTS, reported, respondent_texts
from polyseme.kernel.errors import ChannelError

THREATS = Path(__file__).resolve().parents[3] / "docs" / "collection" / "threats.md"


def test_every_setting_has_its_sentences_in_every_language() -> None:
    assert set(RESPONDENT_TEXTS) == set(REPORTED) == {"direct", "relay", "none", "invitation", "blind-rsa"}
    assert {tuple(texts) for texts in RESPONDENT_TEXTS.values()} == {("en", "de")}


def test_the_page_on_threats_has_the_same_words() -> None:
    page = THREATS.read_text(encoding="utf-8")
    for setting, texts in RESPONDENT_TEXTS.items():
        assert f"| `{setting}` | {texts['en']} |" in page
        assert f"| `{setting}` | {REPORTED[setting]} |" in page


def test_the_settings_choose_the_sentences() -> None:
    assert respondent_texts("none", None, "de") == [RESPONDENT_TEXTS["direct"]["de"], RESPONDENT_TEXTS["none"]["de"]]
    assert respondent_texts("blind-rsa", "https://relay.example.org", "fr") == [
        RESPONDENT_TEXTS["relay"]["en"],
        RESPONDENT_TEXTS["blind-rsa"]["en"],
    ]
    assert reported("invitation", "direct") == [REPORTED["direct"], REPORTED["invitation"]]
    with pytest.raises(ChannelError, match="blind-rsa"):
        respondent_texts("blind-rs", None, "en")
