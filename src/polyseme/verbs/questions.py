"""What can be asked of a release: everything that is wrong with a question is said at once."""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.errors import Problem, QuestionError, nearest
from polyseme.estimators.base import Estimator
from polyseme.estimators.registry import estimator_given
from polyseme.estimators.smooth import Smooth
from polyseme.release import Release, Sets

__all__ = ["check_help", "targets_of"]


def targets_of(release: Release, of: Sequence[str], by: Sequence[str], using: Sequence[str] = ()) -> list[Sets]:
    """The protected attributes asked for; all that is wrong with the question at once."""
    protected = {item.name: item for item in release.manifest.sets}
    untouched = [name for name in release.manifest.names if name not in protected]
    problems = []
    if not of:
        problems.append(Problem("of", "no attribute was asked for", f"protected attributes: {', '.join(protected)}"))
    for name in of:
        if name in untouched:
            problems.append(
                Problem("of", f"'{name}' is published {release.manifest[name].in_words}", f"use it as --by {name}")
            )
        elif name not in protected:
            problems.append(Problem("of", f"no attribute '{name}' in this release", nearest(name, protected)))
    for name in by:
        if name in protected:
            problems.append(Problem("by", f"'{name}' is published as sets", f"ask for it together: --of {name},.."))
        elif name not in untouched:
            problems.append(Problem("by", f"no attribute '{name}' in this release", nearest(name, untouched)))
    for name in using:
        if name in (*of, *by):
            problems.append(Problem("using", f"'{name}' is already in the question", "name it once"))
        elif name not in release.manifest.names:
            hint = nearest(name, release.manifest.names)
            problems.append(Problem("using", f"no attribute '{name}' in this release", hint))
    for place, names in (("of", of), ("by", by), ("using", using)):
        if len(set(names)) != len(names):
            problems.append(Problem(place, "the same attribute is asked for more than once"))
        problems += [
            Problem(place, f"'{name}' is also the name of a result column", "rename the attribute before publishing")
            for name in names
            if place != "using" and name in ("estimate", "stderr", "low", "high")
        ]
    if problems:
        raise QuestionError(problems)
    return [protected[name] for name in of]


def check_help(estimator: str | Estimator | None, long: bool) -> None:
    """Raise unless columns can help in this question."""
    chosen = estimator_given(estimator)
    problems = []
    if chosen is not None and chosen.name != Smooth.name:
        hint = f"omit --estimator, or use {Smooth.name}"
        problems.append(Problem("using", f"{chosen.name} uses the published sets only", hint))
    if long:
        problems.append(Problem("using", "in the long form no column can help", "publish the set form"))
    if problems:
        raise QuestionError(problems)
