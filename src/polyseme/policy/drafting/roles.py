"""What a column may be: a guess from its name and its values, with the reason.

A column that is not recognized is a quasi-identifier: the guess that publishes least.

Values are recognized by a built-in taxonomy, or as dates in a form of their own.

The column that says whose each row is repeats like an identifier: 929 values in 1,858 rows.

A column is proposed that looks like the number of a person, has a value in every row, and repeats; and within whose
values what does not change about a person does not change: sex and date of birth, and most quasi-identifiers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from polyseme.policy.drafting.observation import Looked
from polyseme.semantics.distances.taxonomy import Coverage, check, load_taxonomy, taxonomy_names
from polyseme.tables.codes import as_series
from polyseme.tables.io.source import Source

__all__ = ["Guess", "Recognized", "days_otherwise", "guess", "is_reason", "record_key_of", "taxonomy_of"]

_NAMES: Mapping[str, re.Pattern[str]] = {
    "countries": re.compile(r"countr|nation|citizen"),
    "education": re.compile(r"educ|isced|school|degree"),
    "icd10": re.compile(r"icd|diagnos|disease|illness|condition"),
    "occupation": re.compile(r"isco|occup|job|profession"),
}
_DAY = re.compile(r"(\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2}))([ T].*)?")
_DISEASE = re.compile(r"[A-Z][0-9][0-9AB](\.[0-9A-Z]{1,4}|\.-)?[*+†]?")
_CODED = re.compile(r"[0-9]")
_SURE = 0.95
"""The share of different values that a taxonomy must know where the name of the column says nothing; a judgment."""
_LIKELY = 0.8
"""The same where the name of the column says so."""
_FEW = 4
"""Fewer different values may be in a taxonomy by accident."""


@dataclass(frozen=True)
class Recognized:
    """A taxonomy that knows most values of a column."""

    name: str
    coverage: Coverage

    @property
    def complete(self) -> bool:
        """Whether every value has a place of its own, as a distance needs it."""
        return self.coverage.complete

    @property
    def unknown(self) -> int:
        return len(self.coverage.unknown)


def taxonomy_of(column: Looked) -> Recognized | None:
    """The taxonomy that knows most of the values; None where none knows enough of them."""
    if column.dates or not column.values:
        return None
    values = [str(value).strip() for value in column.values]
    found = [
        Recognized(name, coverage)
        for name in taxonomy_names()
        if (needed := _needed(name, column)) is not None
        and (name != "icd10" or needed < _SURE or _codes_of_diseases(values) >= needed * len(values))
        and len((coverage := check(name, values)).found) >= needed * len(values)
    ]
    return max(found, key=lambda item: len(item.coverage.found), default=None)


def _codes_of_diseases(values: Sequence[str]) -> int:
    """How many values are categories that exist, or codes below them with their point.

    The taxonomy lists categories and places any code below one by its shape: K00011, which may be anything. Categories
    alone, such as K01, are a list of diseases only where they are of several chapters.
    """
    taxonomy = load_taxonomy("icd10")
    paths = [taxonomy.find(value) for value in values if _DISEASE.fullmatch(value) or not _CODED.search(value)]
    known = [path for path in paths if path is not None]
    return len(known) if len({path[-1] for path in known}) > 1 or any("." in value for value in values) else 0


def _needed(name: str, column: Looked) -> float | None:
    """The share of values that must be known; None where it is not worth a look.

    Numbers of four digits are occupations only where the name says so.
    """
    if _NAMES[name].search(column.name.lower()):
        return _LIKELY
    return None if column.numeric or len(column.values) < _FEW else _SURE


def days_otherwise(column: Looked) -> bool:
    """Whether these are dates whose format has to be declared, such as 31.12.2024."""
    return column.text and all(_DAY.fullmatch(str(value).strip()) for value in column.values)


_TELLING = 20
"""Rows from which on it is no accident that all values differ; a judgment."""
_OWN = 0.5
"""Different texts for each row from which on a text identifies a person; a judgment."""
_NEARLY_ALL = 0.95
"""The same for numbers, which differ without meaning a person; a judgment."""
_MANY = 100
"""Rows from which on whole numbers that all differ read as numbers of people, not as amounts; a judgment."""
_ABOUT_UNIQUE = 0.99
"""Different numbers for each row that may be all different, where they were estimated (standard error 0.1%)."""
_LONG = 40
"""Characters beyond which a text is none of a list; a judgment."""
_DIGITS = 6
"""Digits from which on a number that is different for everybody reads as the number of a person; a judgment."""
_MOST = 0.8
"""The share of values that must look like something for a column to be taken for it; a judgment."""

_IDENTIFIER = re.compile(
    r"id|ids|uuid|guid|names?|firstname|lastname|fullname|surname|forename|nickname|username|user|login|e?mail|phone"
    r"|telephone|tel|mobile|cell|fax|ssn|sin|nin|nhs|mrn|passport|licen[cs]e|account|iban|address|street|url|website|ip"
    r"|imei|device|plate|vin|signature|photo|notes?|comments?|remarks?|narrative|freetext"
)
_SENSITIVE = re.compile(
    r"(diseas|diagnos|illness|condition|symptom|icd|medic|drug|hiv|procedur|treatment|therap|allerg|disabilit|genetic"
    r"|income|salar|wage|earning|debt|credit|charge|cost|payment|loan|wealth|pension|religio|politic|party|sexual"
    r"|orientation|crime|convict|offen[cs]e|occupation|job).*"
)
_QUASI = re.compile(
    r"(age|birth|born|dob|sex|gender|zip|postcode|postal|city|town|county|region|province|district|state|country|race"
    r"|ethnic|nationality|citizen|marital|education|school|workclass|employer|household|language).*"
)
_WEIGHT = re.compile(
    r"(fnl|fin|final|psp|p|d|an|a|per|hh|pop|base|design|sampling|sample|survey|asec)*(weights?|wgts?|wghts?|wts?)(finl|supp)?"
)
"""Names of survey weights. A column that is only called weight may also be a body weight."""
_SURVEY_WORDS = {"survey", "sample", "sampling", "design", "final", "person", "household", "population", "base"}
_HEAVIEST = 1_000.0
"""No body weighs more, in any unit in use."""
_NORMED = 0.1
"""How far from 1 the mean of weights may be that add up to the number of records; a judgment."""
_SHAPES: Mapping[str, re.Pattern[str]] = {
    "e-mail addresses": re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+"),
    "addresses on the web": re.compile(r"(https?://|www\.)\S+"),
    "addresses of computers": re.compile(r"(\d{1,3}\.){3}\d{1,3}"),
    "unique numbers (UUID)": re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    "social security numbers": re.compile(r"\d{3}-\d{2}-\d{4}"),
    "account numbers (IBAN)": re.compile(r"[A-Z]{2}\d{2}( ?[A-Z0-9]{4}){2,7}( ?[A-Z0-9]{1,4})?"),
    "telephone numbers": re.compile(r"(?=.*\d.*\d.*\d.*\d.*\d.*\d.*\d)(\+\d|0|\(|\d{3}[-. /])[\d ()/.-]{6,20}"),
}


@dataclass(frozen=True)
class Guess:
    """The role of a column, and why."""

    role: str
    why: str


_REASON = re.compile(
    r"(by its name; |an attacker may know it; |no value in any row|lists, records or bytes|a survey weight by its name"
    r"|most values (look like|are known to the taxonomy) |free text, which|numbers the rows; |a column without a name"
    r"|(almost )?every row has a |seems to say whose each row is: ).*|by its name"
)


def is_reason(text: str) -> bool:
    """Whether a remark reads as a reason of a draft.

    >>> is_reason("by its name; 3 different values"), is_reason("asked the ward")
    (True, False)
    """
    return _REASON.fullmatch(text) is not None


def guess(column: Looked) -> Guess:
    """The first rule that fits decides."""
    words = _words(column.name)
    for rule in (_empty, _weight, _by_shape, _by_name, _by_content):
        found = rule(column, words)
        if found is not None:
            return found
    return Guess("quasi-identifier", f"an attacker may know it; {_different(column)}")


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())


def _different(column: Looked) -> str:
    if column.distinct == 1:
        return "1 value"
    return f"{'' if column.counted else 'about '}{column.distinct:,} different values"


def _empty(column: Looked, words: list[str]) -> Guess | None:
    if column.present == 0:
        return Guess("insensitive", "no value in any row")
    if column.opaque:
        return Guess("identifier", "lists, records or bytes, which a policy cannot describe; dropped")
    return None


def _weight(column: Looked, words: list[str]) -> Guess | None:
    """A survey weight: left out until it is coarser, since almost every record has its own."""
    found = next((match[0] for match in map(_WEIGHT.fullmatch, words) if match), None)
    if found is None or not column.numeric or not column.finite or column.low < 0.0:
        return None
    near_one = abs(float(column.numbers.mean()) - 1.0) <= _NORMED
    bare = found in ("weight", "weights", "wt", "wts") and not {*words} & _SURVEY_WORDS
    heavy = len(words) == 1 and (near_one or column.high > _HEAVIEST)
    if column.distinct <= 1 or (bare and not heavy):
        return None
    why = f"a survey weight by its name; {_different(column)}; dropped. To keep it, coarser, for weighted tables"
    return Guess("identifier", f"{why}: role: weight, round: ..., trim: ... (docs/policy.md)")


def _by_shape(column: Looked, words: list[str]) -> Guess | None:
    """What is written in a way that only identifiers are."""
    if not column.text or days_otherwise(column):
        return None
    texts = [str(value).strip() for value in column.values]
    for what, shape in _SHAPES.items():
        if sum(shape.fullmatch(text) is not None for text in texts) > _MOST * len(texts):
            return Guess("identifier", f"most values look like {what}; dropped")
    if column.sentences > column.present / 2 and (column.longest > _LONG or column.own > _OWN):
        return Guess("identifier", "free text, which may name people; dropped")
    return None


def _by_name(column: Looked, words: list[str]) -> Guess | None:
    named: dict[str, bool] = {
        role: any(map(pattern.fullmatch, words))
        for role, pattern in (("identifier", _IDENTIFIER), ("sensitive", _SENSITIVE), ("quasi-identifier", _QUASI))
    }
    other = named["sensitive"] or named["quasi-identifier"]
    # `drug_name` and `city_name` are lists of words; a `medical_record_id` of which everybody has one is not.
    if named["identifier"] and not (other and column.own <= _OWN):
        return Guess("identifier", f"by its name; {_different(column)}; dropped")
    for role in ("sensitive", "quasi-identifier"):
        if named[role] and not (role == "sensitive" and _numbers_people(column)):
            return Guess(role, f"by its name; {_different(column)}")
    return None


def _by_content(column: Looked, words: list[str]) -> Guess | None:
    whole = column.numeric and column.integer
    alone = column.present > _TELLING and column.own > _NEARLY_ALL
    if whole and alone and column.high - column.low + 1 == column.present:
        return Guess("identifier", "numbers the rows; dropped")
    if whole and alone and not column.name.strip():
        return Guess("identifier", "a column without a name that numbers rows, as many programs write it; dropped")
    if _numbers_people(column):
        return Guess("identifier", "almost every row has a number of its own, all equally long; dropped")
    if whole and column.present >= _MANY and column.own >= (1.0 if column.counted else _ABOUT_UNIQUE):
        return Guess("identifier", f"every row has a whole number of its own ({_different(column)}); dropped")
    known = taxonomy_of(column)
    if known is not None and known.name in ("icd10", "occupation"):
        return Guess("sensitive", f"most values are known to the taxonomy {known.name}; {_different(column)}")
    if column.present > _TELLING and column.text and known is None and not days_otherwise(column) and column.own > _OWN:
        return Guess("identifier", f"almost every row has a value of its own ({_different(column)}); dropped")
    return None


def _numbers_people(column: Looked) -> bool:
    """Whether these are long numbers, or codes with digits, that differ from row to row."""
    if column.present <= _TELLING or column.dates or column.own <= _NEARLY_ALL or days_otherwise(column):
        return False
    if column.numeric:
        sizes = [len(f"{abs(edge):.0f}") for edge in (column.low, column.high) if np.isfinite(edge)]
        return column.integer and len(set(sizes)) == 1 and sizes[0] >= _DIGITS
    return column.longest == column.shortest >= _DIGITS and _any(column, str.isdigit)


def _any(column: Looked, kind: Callable[[str], bool]) -> bool:
    return any(kind(letter) for value in column.values for letter in str(value))


_PEOPLE = 20
"""Different values from which on a column may name people; a judgment."""
_MANY_ROWS = 20
"""Rows for each value beyond which a column is a group rather than a person; a judgment."""
_REPEATS = 0.95
"""Different values for each row from which on hardly any person has several."""
_CONSTANT = 0.9
"""The share of people with several rows who have one value in all of them, for it to be theirs; a judgment."""
_DENSE = 1.5
"""Whole numbers that are given one after the other lie in a range that is at most so many times their number."""
_PERSON = re.compile(
    r"p?id|ids|uuid|guid|key|code|number|no|nr|num|mrn|nhs|ssn|person|persons|patient|patients|subject|participant|client"
    r"|customer|member|respondent|user|pupil|student|employee|case|pseudonym"
)
_LASTING = re.compile(r"(sex|gender|birth|born|dob).*")


def record_key_of(
    source: Source, words: Sequence[str], columns: Sequence[Looked], guesses: Sequence[Guess]
) -> str | None:
    """The name of the column; None where no column, or more than one, looks like it."""
    candidates = [column.name for column in columns if _repeats(column) and _names_people(column)]
    known = [
        column.name
        for column, found in zip(columns, guesses, strict=True)
        if found.role == "quasi-identifier" and column.distinct > 1 and not column.opaque
    ]
    fitting = [name for name in candidates if _lasts(source, words, name, [other for other in known if other != name])]
    return fitting[0] if len(fitting) == 1 else None


def _repeats(column: Looked) -> bool:
    """Whether most people could have several rows, and none of them very many."""
    some = not column.missing and not column.opaque and column.distinct >= _PEOPLE
    return some and column.own <= _REPEATS and column.rows <= _MANY_ROWS * column.distinct


def _names_people(column: Looked) -> bool:
    """Whether it reads like numbers or codes of people, by its name or by what is in it."""
    if column.dates or not (column.text or (column.numeric and column.integer)):
        return False
    if any(map(_PERSON.fullmatch, _key_words(column.name))):
        return True
    return (
        column.numeric and column.high - column.low + 1 <= _DENSE * column.distinct and column.distinct >= 5 * _PEOPLE
    )


def _key_words(name: str) -> list[str]:
    return re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())


def _lasts(source: Source, words: Sequence[str], name: str, others: Sequence[str]) -> bool:
    """Whether rows with the same value agree in what does not change about a person."""
    if not others:
        return True
    rows = pl.concat(
        [
            pl.DataFrame({other: as_series(batch.column(other), words) for other in (name, *others)})
            for batch in source.batches([name, *others])
        ]
    )
    each = rows.group_by(name).agg(pl.len().alias("\0rows"), *(pl.col(other).n_unique() for other in others))
    several = each.filter(pl.col("\0rows") > 1)
    constant = {other: (several[other] == 1).sum() >= _CONSTANT * several.height for other in others}
    lasting = [other for other in others if any(map(_LASTING.fullmatch, _key_words(other)))]
    return all(constant[other] for other in lasting) and 2 * sum(constant.values()) >= len(constant)
