"""What a reader must know of a page before anything else: which data it is about, whose, of when, made by what."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from polyseme.errors import Problem, QuestionError
from polyseme.release import Manifest
from polyseme.release.about import flaw_of
from polyseme.version import __version__

__all__ = ["Provenance", "provenance_of", "require_facts"]


@dataclass(frozen=True)
class Provenance:
    """Where a release comes from; empty where it was not stated, and then the page says so.

    title      the name of the data set
    publisher  who answers for the release
    version    of the policy
    released   the day of the release, and `reported` that of the page, as 2026-11-17
    program    the version of the program that wrote the release, and `reporter` that of the one that wrote the page
    format     of the manifest
    checksum   of the manifest, and through it of the data
    """

    title: str = ""
    publisher: str = ""
    version: str = ""
    released: str = ""
    reported: str = ""
    program: str = ""
    reporter: str = ""
    format: int | None = None
    checksum: str = ""


def require_facts(**given: str | None) -> None:
    """Raise unless every fact that a caller hands in can stand at the head of a page."""
    wrong = [(name, flaw) for name, text in given.items() if text is not None and (flaw := flaw_of(name, text))]
    if wrong:
        raise QuestionError(Problem(f"--{name}", flaw) for name, flaw in wrong)


def provenance_of(
    manifest: Manifest, title: str = "", publisher: str | None = None, today: date | None = None
) -> Provenance:
    """What the manifest says, but for the title and the publisher if they are given."""
    return Provenance(
        title=title or manifest.about.title,
        publisher=publisher or manifest.about.publisher,
        version=manifest.about.version,
        released=manifest.about.date,
        reported=(today or date.today()).isoformat(),
        program=manifest.program,
        reporter=__version__,
        format=manifest.format,
        checksum=manifest.checksum,
    )
