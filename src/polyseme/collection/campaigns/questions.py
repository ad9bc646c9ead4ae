"""The questions of a campaign and how it is run, as YAML.

    name: health-2026
    languages: [en, de]
    title: {en: Health survey, de: Gesundheitsumfrage}
    questions:
      sex: {text: {en: "Your sex?", de: "Ihr Geschlecht?"}, labels: {de: [weiblich, männlich]}}
      income: {text: {en: "Your income?", de: "Ihr Einkommen?"}, help: {en: Before tax., de: Vor Steuern.}}
    collection:
      planned: 5000
      purpose: {en: How incomes differ by region., de: Wie sich Einkommen unterscheiden.}
      contact: survey@example.org

With one language, texts need not say which. A question whose prior is not uniform says where it comes from:
`source: Statistical Office, 2025`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from polyseme.device.campaign import label_text
from polyseme.kernel.documents import Reader, parse
from polyseme.kernel.errors import PolicyError, Problem, nearest

__all__ = ["Questions", "document_of", "read_questions"]

_KEYS = ("name", "languages", "title", "questions", "collection")
_QUESTION = ("text", "help", "source", "labels")
_DEFAULTS: Mapping[str, Any] = {
    "draws": "fresh",
    "opens": None,
    "closes": None,
    "wave": 1,
    "minimum": 100,
    "tokens": "none",
    "relay": None,
    "size": None,
    "delay": 0,
}
"""What is taken where the file says nothing; a size of None is the smallest that fits."""
_COLLECTION = (*_DEFAULTS, "planned", "purpose", "contact", "gateway", "issuer", "reports")


@dataclass(frozen=True)
class Questions:
    """The questions and how answers are collected; every text in every language.

    questions   by column: text, help, labels and the source of a prior, as the campaign document has them
    collection  its settings, checked when the document is read
    """

    name: str
    languages: tuple[str, ...]
    title: Mapping[str, str]
    questions: Mapping[str, Mapping[str, Any]]
    collection: Mapping[str, Any]


def read_questions(
    source: str | Path | Mapping[str, Any], labels: Mapping[str, Sequence[object]], problems: list[Problem]
) -> Questions:
    """The questions about columns with these labels; what is wrong is added to `problems`."""
    reader = Reader(document_of(source), "questions", problems)
    given = reader.mapping(_KEYS)
    for key in ("name", "title", "questions", "collection"):
        if key not in given:
            reader.problem(f"no {key}")
    languages = _languages(reader, given)
    inner = dict(reader.at("questions", given.get("questions", {})).items())
    for name, at in inner.items():
        if name not in labels:
            at.problem("no such column is asked", nearest(name, labels))
    read = {}
    for name, values in labels.items():
        if name not in inner:
            reader.at("questions", None).problem(f"no question for '{name}'", f"{name}: {{text: ...}}")
        else:
            read[name] = _question(inner[name], values, languages)
    return Questions(
        reader.at("name", given.get("name", "")).text(),
        languages,
        _spoken(reader.at("title", given.get("title", "")), languages) if "title" in given else {},
        read,
        _collection(reader.at("collection", given.get("collection", {})), languages),
    )


def document_of(source: str | Path | Mapping[str, Any]) -> Any:
    """What the file says."""
    if isinstance(source, Mapping):
        return source
    path = Path(source)
    try:
        return parse(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise PolicyError(f"{path}: no such file with questions") from None
    except (UnicodeDecodeError, IsADirectoryError):
        raise PolicyError(f"{path}: questions are a YAML file in UTF-8") from None
    except PolicyError as error:
        raise PolicyError(Problem(f"{path}: {item.where}", item.what, item.hint) for item in error.problems) from None


def _languages(reader: Reader, given: Mapping[str, Any]) -> tuple[str, ...]:
    if "languages" in given:
        found = tuple(element.text() for element in reader.at("languages", given["languages"]).elements())
        if found:
            return found
    title = given.get("title")
    return tuple(map(str, title)) if isinstance(title, Mapping) and title else ("en",)


def _spoken(reader: Reader, languages: Sequence[str]) -> dict[str, str]:
    """A text in each language; plain text where there is only one."""
    if isinstance(reader.value, str) and len(languages) == 1:
        return {languages[0]: reader.value}
    given = reader.mapping(languages)
    for language in languages:
        if isinstance(reader.value, Mapping) and not (isinstance(given.get(language), str) and given[language]):
            reader.problem(f"no text in {language}", f"{{{', '.join(f'{one}: ...' for one in languages)}}}")
    return {language: str(given.get(language, "")) for language in languages}


def _question(reader: Reader, labels: Sequence[object], languages: Sequence[str]) -> dict[str, Any]:
    if isinstance(reader.value, str):
        return {"text": _spoken(reader, languages)}
    given = reader.mapping(_QUESTION)
    if "text" not in given and isinstance(reader.value, Mapping):
        reader.problem("no text", "text: the question itself")
    found: dict[str, Any] = {
        key: _spoken(reader.at(key, given[key]), languages) for key in _QUESTION[:3] if key in given
    }
    if "labels" in given:
        found["labels"] = _labels(
            reader.at("labels", given["labels"]), [label_text(label) for label in labels], languages
        )
    return found


def _labels(reader: Reader, values: Sequence[str], languages: Sequence[str]) -> dict[str, list[str]]:
    """The name of each value in each language; a language left out shows the values themselves."""
    alone = isinstance(reader.value, list) and len(languages) == 1
    given: Mapping[str, Any] = {languages[0]: reader.value} if alone else reader.mapping(languages)
    found = {}
    for language in languages:
        texts = given.get(language, list(values))
        if isinstance(texts, Mapping):
            texts = [texts.get(value, value) for value in values]
        if not isinstance(texts, list) or len(texts) != len(values):
            reader.at(language, texts).problem(f"expected {len(values):,} texts, one for each value")
            texts = list(values)
        found[language] = [label_text(text) for text in texts]
    return found


def _collection(reader: Reader, languages: Sequence[str]) -> dict[str, Any]:
    given = reader.mapping(_COLLECTION)
    for key in ("planned", "purpose", "contact"):
        if key not in given and isinstance(reader.value, Mapping):
            reader.problem(f"no {key}", _WHY[key])
    found = {**_DEFAULTS, **{key: value for key, value in given.items() if key in _COLLECTION}}
    found["purpose"] = _spoken(reader.at("purpose", given["purpose"]), languages) if "purpose" in given else {}
    for key in ("opens", "closes"):
        found[key] = _moment(found[key])
    # A reader of the release must know how many reports one draw may stand for.
    return {"reports": 1, **found} if found["draws"] == "sticky" else found


_WHY = {
    "planned": "how many answers are expected: planned: 5000",
    "purpose": "respondents read what their answers are for",
    "contact": "respondents read whom to contact: an e-mail address or a page",
}


def _moment(value: Any) -> Any:
    """A moment, in UTC where no zone is given; anything else unchanged, to be checked later."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None:
        return value
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()
