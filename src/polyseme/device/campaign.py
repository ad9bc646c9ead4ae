"""The campaign document as a device reads it: pinned by its hash, and not trusted.

The id of a campaign is the SHA-256 of the document's bytes. A device that has the id from a trusted place, such as the
link in an invitation, knows that the document is the one that was meant.

The fingerprint of a sampling document is what sticky sets depend on, together with the device's key and the answer.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from polyseme.device.fields import LARGEST, MOST_BYTES, MOST_COLUMNS, Fields
from polyseme.device.protected import ODDS_WITH_CONSENT, SLACK, Label, Member, Protected
from polyseme.device.sampler import Sampling
from polyseme.device.terms import Collection, Placing, read_collection
from polyseme.kernel.documents import read_json
from polyseme.kernel.errors import CampaignError, Problem

__all__ = [
    "FORMAT",
    "MEDIA_TYPE",
    "Campaign",
    "Open",
    "Protected",
    "campaign_id",
    "compact",
    "fingerprint",
    "label_text",
]


def compact(value: Any) -> bytes:
    """JSON without blanks, as `JSON.stringify` of JavaScript writes it, in UTF-8."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise CampaignError("a text with half of a surrogate pair, which is no character") from None


def fingerprint(attribute: str, labels: Sequence[str | int | bool], document: Mapping[str, Any]) -> str:
    """SHA-256 of `[attribute, labels, document]` in hexadecimal, fields in their order.

    The attribute is part of it: two questions with the same answers and the same integers would otherwise have the same
    sticky sets wherever the answers are the same, and their sets would not be independent.
    """
    return hashlib.sha256(compact([attribute, list(labels), dict(document)])).hexdigest()


FORMAT = "polyseme-campaign-1"
MEDIA_TYPE = "application/vnd.polyseme.report+json;v=1"
_DOCUMENT = ("format", "name", "title", "languages", "columns", "sampling", "questions", "promises", "models")


@dataclass(frozen=True)
class Open:
    """A column that is published as it is: its code is sent."""

    name: str
    labels: Sequence[Label]


@dataclass(frozen=True, eq=False)
class Campaign:
    """A campaign document that was checked.

    id        of the exact bytes
    data      these bytes
    document  what they say
    """

    id: str
    data: bytes = field(repr=False)
    document: Mapping[str, Any] = field(repr=False)
    name: str
    title: Mapping[str, str]
    languages: Sequence[str]
    open: Sequence[Open] = field(repr=False)
    protected: Sequence[Protected] = field(repr=False)
    collection: Collection = field(repr=False)

    @classmethod
    def read(cls, data: bytes, id: str | None = None) -> Campaign:  # noqa: A002 - the contract's own word
        """Check the hash, the format and every number.

        Raises `CampaignError` with all that is wrong.

        id  what the link says; None where it is not pinned
        """
        found = campaign_id(data)
        if id is not None and id != found:
            raise CampaignError(
                "this is not the campaign that the link names: the document was changed",
                "nothing was sent; ask the people who run the campaign for a new link",
            )
        document = _parse(data)
        if b"\\ud" in data.lower():
            # Half of a pair of characters is none: nothing could be written of it.
            compact(document)
        fields = Fields(document, "")
        if fields.given.get("format") != FORMAT:
            fields.wrong("format", f"expected {FORMAT}", "a newer campaign needs a newer program")
            fields.done()
        fields.only(*_DOCUMENT, "collection")
        return _read(fields, found, data, document)

    @property
    def labels(self) -> dict[str, Sequence[Label]]:
        """The labels of every column that has a question."""
        opened: dict[str, Sequence[Label]] = {item.name: item.labels for item in self.open}
        return {**opened, **{item.name: item.labels for item in self.protected}}

    def require_promises(self) -> None:
        """Refuse where the device finds that some set reveals more than promised, or than any may."""
        problems = list[Problem]()
        for column in self.protected:
            try:
                column.require_promise()
            except CampaignError as error:
                problems.extend(error.problems)
        if problems:
            raise CampaignError(problems)

    @property
    def needs_consent(self) -> bool:
        """Whether some set changes the odds of two candidates so much that a person must agree."""
        return any(column.odds > ODDS_WITH_CONSENT * (1.0 + SLACK) for column in self.protected)


def campaign_id(data: bytes) -> str:
    """The id of a campaign with these bytes."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode("ascii")


def _parse(data: bytes) -> Any:
    if len(data) > MOST_BYTES:
        raise CampaignError(f"a campaign document has at most {MOST_BYTES:,} bytes, this one {len(data):,}")
    try:
        return read_json(data.decode("utf-8"))
    except (ValueError, RecursionError):
        raise CampaignError("a campaign document is JSON in UTF-8, each key once", "damaged or truncated") from None


def _read(fields: Fields, id: str, data: bytes, document: Any) -> Campaign:  # noqa: A002
    name = fields.text("name", 100)
    languages = _languages(fields)
    title = fields.spoken("title", languages)
    opened, domains = _columns(fields)
    _questions(fields.inner("questions"), {**{item.name: item.labels for item in opened}, **domains}, languages)
    protected = _protected(fields, opened, domains)
    collection = read_collection(fields.inner("collection"), languages)
    if not isinstance(fields.given.get("models"), list):
        fields.wrong("models", "expected a list")
    fields.done()
    return Campaign(id, data, document, name, title, languages, opened, protected, collection)


def _languages(fields: Fields) -> list[str]:
    given = fields.given.get("languages")
    if not isinstance(given, list) or not given or not all(isinstance(item, str) and item for item in given):
        fields.wrong("languages", "expected a list of languages such as en or de")
        return []
    if len(set(given)) < len(given):
        fields.wrong("languages", "a language is listed more than once")
    if len(given) > MOST_COLUMNS:
        fields.wrong("languages", f"more than {MOST_COLUMNS:,} languages")
        fields.done()
    return given


def _columns(fields: Fields) -> tuple[list[Open], dict[str, Sequence[Label]]]:
    """The open columns, and the labels of the protected ones."""
    opened, protected, names = list[Open](), dict[str, Sequence[Label]](), list[str]()
    entries = fields.objects("columns")
    if len(entries) > MOST_COLUMNS:
        fields.wrong("columns", f"more than {MOST_COLUMNS:,} columns")
        fields.done()
    for entry in entries:
        name, published = entry.text("name", 1_000), entry.choice("published", ("as-is", "sets"))
        labels = _labels(entry.inner("domain"))
        names.append(name)
        if published == "sets":
            protected[name] = labels
        else:
            opened.append(Open(name, labels))
    if len(set(names)) < len(names):
        fields.wrong("columns", "a column is listed more than once")
    if not protected:
        fields.wrong("columns", "no column is protected")
    return opened, protected


def _labels(domain: Fields) -> list[Label]:
    values = domain.given.get("values")
    if not isinstance(values, list) or not values or not all(map(_is_label, values)):
        domain.wrong("values", "expected a list of texts, whole numbers or truth values")
        return []
    if len({label_text(value) for value in values}) < len(values):
        domain.wrong("values", "a value is listed more than once")
    return values


def _is_label(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, int) and abs(value) <= LARGEST)


def label_text(label: object) -> str:
    """A label as text: truth values are true and false."""
    return str(label).lower() if isinstance(label, bool) else str(label)


def _questions(fields: Fields, labels: Mapping[str, Sequence[Label]], languages: Sequence[str]) -> None:
    fields.only(*labels)
    for name, values in labels.items():
        inner = fields.inner(name)
        inner.only("text", "help", "labels", "source")
        inner.spoken("text", languages)
        for key in ("help", "source"):
            if key in inner.given:
                inner.spoken(key, languages)
        if "labels" in inner.given:
            _translated(inner.inner("labels"), len(values), languages)


def _translated(fields: Fields, count: int, languages: Sequence[str]) -> None:
    fields.only(*languages)
    for language in languages:
        texts = fields.given.get(language)
        if not isinstance(texts, list) or len(texts) != count or not all(isinstance(text, str) for text in texts):
            fields.wrong(language, f"expected {count:,} texts, one for each value")


def _protected(fields: Fields, opened: Sequence[Open], domains: Mapping[str, Sequence[Label]]) -> tuple[Protected, ...]:
    sampling, promises = fields.inner("sampling"), fields.inner("promises")
    sampling.only(*domains)
    promises.only(*domains)
    sizes = {item.name: len(item.labels) for item in opened}
    questions = fields.given.get("questions")
    mapping = questions if isinstance(questions, Mapping) else {}
    found = [
        _protected_column(name, labels, sampling.inner(name), promises.inner(name), sizes)
        for name, labels in domains.items()
    ]
    return tuple(replace(column, source=_source(mapping.get(column.name))) for column in found)


def _source(question: object) -> Mapping[str, str] | None:
    """Where the prior of a question comes from; its texts are checked with the question."""
    source = question.get("source") if isinstance(question, Mapping) else None
    return source if isinstance(source, Mapping) else None


def _protected_column(
    name: str, labels: Sequence[Label], sampling: Fields, promises: Fields, sizes: Mapping[str, int]
) -> Protected:
    sampling.only("placing", "strata")
    promises.only("l", "posterior", "priors")
    l = promises.integer("l", 1, max(len(labels), 1))
    entries = sampling.objects("strata")
    priors = promises.given.get("priors")
    if not isinstance(priors, list) or len(priors) != len(entries):
        promises.wrong("priors", "expected a prior, or null, for each stratum")
        priors = [None] * len(entries)
    members = [_member(name, labels, entry, prior, l) for entry, prior in zip(entries, priors, strict=True)]
    placing = Placing()
    if "placing" in sampling.given or len(entries) > 1:
        placing = Placing.read(sampling.inner("placing"), sizes, len(entries))
    return Protected(name, labels, l, _posterior(promises), placing, tuple(item for item in members if item))


def _posterior(promises: Fields) -> float | None:
    value = promises.given.get("posterior")
    if value is None and "posterior" in promises.given:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        promises.wrong("posterior", "expected a number above 0, up to 1, or null where none is promised")
        return 1.0
    return float(value)


def _member(name: str, labels: Sequence[Label], fields: Fields, prior: Any, l: int) -> Member | None:
    fields.only("excluded", "document", "fingerprint")
    fields.charge(len(labels))
    excluded = set(fields.ascending("excluded", len(labels)))
    codes = [code for code in range(len(labels)) if code not in excluded]
    try:
        _require_size(fields, len(codes), l)
        place = fields.place("document")
        sampling = Sampling.read(fields.given.get("document"), place, fields.workload, prior is not None)
    except CampaignError as error:
        fields.problems.extend(error.problems)
        return None
    if sampling.size != len(codes) or sampling.l != l:
        fields.wrong("document", f"expected sets of {l:,} of {len(codes):,} values")
        return None
    expected = fingerprint(name, [labels[code] for code in codes], sampling.document)
    if fields.given.get("fingerprint") != expected:
        fields.wrong("fingerprint", "not that of the document and its labels")
    if prior is not None and not _is_prior(prior, len(codes)):
        fields.wrong("prior", f"expected {len(codes):,} shares that add up to one")
        prior = None
    return Member(codes, sampling, expected, prior)


def _require_size(fields: Fields, size: int, l: int) -> None:
    """Refuse a document that says at once that it is of another size, before it is read."""
    document = fields.given.get("document")
    given = document if isinstance(document, Mapping) else {}
    if given.get("l", l) != l or given.get("size", size) != size:
        raise CampaignError(Problem(fields.place("document"), f"expected sets of {l:,} of {size:,} values"))


def _is_prior(prior: Any, size: int) -> bool:
    return (
        isinstance(prior, list)
        and len(prior) == size
        and all(isinstance(share, int | float) and not isinstance(share, bool) and share >= 0 for share in prior)
        and abs(math.fsum(prior) - 1.0) <= SLACK
    )
