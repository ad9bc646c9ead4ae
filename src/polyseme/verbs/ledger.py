"""`ledger`: what was published about the same people, consulted before the next release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from polyseme.kernel.errors import InvalidInput, Problem, QuestionError, RiskError
from polyseme.kernel.files import turn
from polyseme.kernel.work import verb
from polyseme.publishing.inputs import release_given
from polyseme.release import SEEDED, Column, Release, Sets
from polyseme.results.ledger import Exposure, Exposures, Ledger, Publication
from polyseme.scrutiny.attacks.republication import exposures_of
from polyseme.verbs.estimate import estimate

__all__ = ["LedgerCheck", "exposures", "record"]

_LEARNED = 2_000
"""Largest domain whose distribution is estimated for the ledger: some seconds. Chosen by judgment."""

_NOTICED = 0.01
"""More success than before by less than a hundredth is not worth a warning."""


@verb()
def record(ledger: Ledger | str | Path, release: Release | str | Path, people: str) -> Ledger:
    """The ledger with one more release about these people; a file is rewritten, or begun.

    Several processes may add to one file at the same time.

    Every reader of the release can estimate the distribution of the values. The ledger keeps that estimate, so that it
    can say how often an attacker who did is right.
    """
    release = release_given(release)
    if release.manifest.seeded:
        raise QuestionError(f"this release was {SEEDED}", "publish without a seed; experiments are not recorded")
    if not people.strip():
        raise QuestionError(Problem("people", "a name is empty", "say whom the releases are about"))
    publication = _publication(release, people)
    if isinstance(ledger, Ledger):
        return ledger.add(publication)
    with turn(Path(ledger)):
        return _added(Path(ledger), publication)


def _added(path: Path, publication: Publication) -> Ledger:
    """The ledger in a file with one more release; for those whose turn it is."""
    after = _opened(path).add(publication)
    after.save(path)
    return after


def exposures(ledger: Ledger | str | Path, people: str | None = None) -> Exposures:
    """What all releases of a ledger tell together, about all people in it or some."""
    ledger = ledger if isinstance(ledger, Ledger) else Ledger.load(ledger)
    if people is not None and people not in ledger.people:
        raise QuestionError(Problem("people", f"no release about '{people}'", f"one of: {', '.join(ledger.people)}"))
    chosen = ledger.people if people is None else (people,)
    return Exposures(tuple(item for name in chosen for item in exposures_of(ledger.about(name))))


def _opened(path: Path) -> Ledger:
    return Ledger.load(path) if path.exists() else Ledger()


def _publication(release: Release, people: str) -> Publication:
    manifest = release.manifest
    learned = {item.name: shares for item in manifest.sets if (shares := _learned(release, item))}
    # Without its data file a manifest does not tell two releases apart.
    checksum = str(manifest.to_dict()["checksum"]) if release.folder is not None else ""
    return Publication(
        people, _now(), checksum, manifest.records, manifest.sticky, manifest.columns, learned, manifest.key_check
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _learned(release: Release, item: Sets) -> tuple[float, ...]:
    """The estimated shares of the values; none where they cannot be estimated."""
    if item.domain.size > _LEARNED:
        return ()
    try:
        found = np.maximum(np.nan_to_num(estimate(release, of=[item.name], unweighted=True).values.ravel()), 0.0)
    except InvalidInput:
        return ()
    return tuple((found / found.sum()).tolist()) if found.sum() > 0.0 else ()


@dataclass(frozen=True)
class LedgerCheck:
    """A ledger that is consulted before a release is published, and updated afterwards.

    path    its file, which need not exist yet
    people  whom the release is about
    """

    path: Path
    people: str

    @classmethod
    def open(cls, path: str | Path, people: str | None) -> LedgerCheck:
        """`people` may be left out where the ledger holds releases about one group of people."""
        path = Path(path)
        known = _opened(path).people
        if people is None and len(known) != 1:
            hint = (
                f"--people NAME, one of: {', '.join(known)}" if known else "--people NAME, any name you will know again"
            )
            raise QuestionError(Problem("people", "the ledger must know whom the release is about", hint))
        return cls(path, people if people is not None else known[0])

    def warnings(self, columns: Sequence[Column], sticky: bool, accept_risk: bool, check: str = "") -> list[str]:
        """Warnings before publishing; `RiskError` if sets can be intersected, unless accepted.

        check  the check value of the key of sticky sets
        """
        earlier = _opened(self.path).about(self.people)
        before = {item.attribute: item for item in exposures_of(earlier)}
        pending = Publication(self.people, _now(), "", 0, sticky, tuple(columns), key_check=check)
        after = exposures_of((*earlier, pending)) if earlier else ()
        risks = [item for item in after if item.intersected and _adds(item, before)]
        if risks and not accept_risk:
            raise RiskError(Problem(f"$.attributes.{item.attribute}", _risk_text(item), _ADVICE) for item in risks)
        return [f"{item.attribute}: {_risk_text(item)}." for item in risks] + list(_milder(after, before))

    def turn(self) -> AbstractContextManager[None]:
        """Between check and record no other process may publish with this ledger."""
        return turn(self.path)

    def record(self, release: Release) -> None:
        """Add what was published, in the turn in which the ledger was consulted."""
        _added(self.path, _publication(release, self.people))


_ADVICE = "publish with sticky decoys (--key-file) as before, or leave it out; --accept-risk publishes all the same"


def _adds(item: Exposure, before: dict[str, Exposure]) -> bool:
    """Whether this release adds risk: more draws than before, or the first that is not hidden."""
    known = before.get(item.attribute)
    return known is None or item.draws > known.draws or (item.intersected and not known.intersected)


def _risk_text(item: Exposure) -> str:
    why = f" ({'; '.join(item.reasons)})" if item.reasons else ""
    return (
        f"people in '{item.people}' would have {item.draws} different sets{why}: only the true value is in all of them "
        f"for {_share(item.alone.low, item.alone.high)} of the people, and an attacker who has all releases guesses "
        f"right in {_share(item.success.low, item.success.high)} of the cases"
    )


def _share(low: float, high: float) -> str:
    return f"{high:.0%}" if low == high else f"{low:.0%} to {high:.0%}"


def _milder(after: Sequence[Exposure], before: dict[str, Exposure]) -> Iterator[str]:
    """The caution for sets that may lie: nothing is certain, but epsilons add up."""
    for item in after:
        known = before.get(item.attribute)
        if known is None or item.intersected or item.success.high <= known.success.high + _NOTICED:
            continue
        spent = "unknown" if item.epsilon is None else f"{item.epsilon:.3g}"
        yield (
            f"{item.attribute}: {item.draws} draws about '{item.people}' have an epsilon of {spent} together; an "
            f"attacker who has all releases guesses right in {_share(item.success.low, item.success.high)} of cases "
            f"({_share(known.success.low, known.success.high)} before)."
        )
