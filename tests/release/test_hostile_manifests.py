"""Manifests with a correct checksum and hostile contents: a result or a clear refusal, and never anything else."""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import resource
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draws import seeds
from hostile_manifests import LABELS, make_releases, mutate, twist, write_manifest
from hypothesis import given, settings

import polyseme as ps
from polyseme import cli
from polyseme.kernel.errors import InvalidInput, ReleaseError

MUTATIONS = 240
SECONDS = 60
"""Of the processor, far more than any of these takes: a loop that does not end is what it stops."""
MEGABYTES = 500


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, dict[str, Any]]:
    """A release of every kind, with its manifest."""
    folders = make_releases(tmp_path_factory.mktemp("releases"))
    return {folder: json.loads((folder / "manifest.json").read_text()) for folder in folders}


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Numbers that run over are errors, and the command line's last door lets everything through."""

    def through(error: BaseException) -> None:
        raise error

    monkeypatch.setattr(cli, "_confess", through)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


class HangError(BaseException):
    """Nothing on the way may take it for one of the system's errors."""


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Stop what takes too long, and complain of what takes too much memory."""

    def stop(*_: Any) -> None:
        raise HangError(f"more than {SECONDS} seconds")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < MEGABYTES * 1024, "too much memory"


def _verify(folder: Path) -> None:
    found = ps.verify(folder)
    json.dumps(found.to_dict(), allow_nan=False)


def _estimate(folder: Path) -> None:
    release = ps.Release.open(folder)
    for item in release.manifest.sets:
        table = ps.estimate(release, of=[item.name])
        # A standard error is not a number where values cannot be told apart, and a note says so.
        for numbers in (table.values, table.low, table.high):
            assert np.isfinite(numbers).all()


def _attack(folder: Path) -> None:
    for finding in ps.attack(folder):
        assert np.isfinite(finding.success)


def _report(folder: Path) -> None:
    assert ps.report(folder).startswith("<!doctype html>")


def _command(*arguments: str) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        name, *rest = arguments
        silent = io.StringIO()
        with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent), pytest.raises(SystemExit) as left:
            cli.main([name, str(folder), *rest])
        assert left.value.code in (0, 1, 2)

    return run


CALLS: dict[str, Callable[[Path], None]] = {
    "verify": _verify,
    "estimate": _estimate,
    "attack": _attack,
    "report": _report,
    "polyseme verify": _command("verify"),
    "polyseme verify --json": _command("verify", "--json"),
    "polyseme estimate": _command("estimate", "--of", "x", "--by", "sex"),
    "polyseme attack": _command("attack"),
}
DEAR = {"report"}
"""Draws charts, which takes most of the time: one in eight is enough."""


def tried(folder: Path, calls: list[str]) -> None:
    """Everything that is done with a release: a result, or a refusal with its problems."""
    for name in calls:
        with bounded(), contextlib.suppress(InvalidInput):
            CALLS[name](folder)


@pytest.mark.parametrize("change", [mutate, twist])
@pytest.mark.parametrize("mutations", [MUTATIONS // 4, pytest.param(MUTATIONS // 2, marks=pytest.mark.slow)])
def test_hostile_manifests_are_answered(
    releases: dict[Path, dict[str, Any]], change: Callable[..., dict[str, Any]], mutations: int
) -> None:
    opened = 0

    @settings(max_examples=mutations)
    @given(seeds.map(random.Random))
    def check(rng: random.Random) -> None:
        nonlocal opened
        folder = rng.choice(list(releases))
        write_manifest(folder, change(releases[folder], rng))
        try:
            ps.Release.open(folder)
        except ReleaseError:
            return
        opened += 1
        calls = rng.sample([name for name in CALLS if name not in DEAR], 2)
        tried(folder, [*calls, *(name for name in DEAR if rng.random() < 0.125)])

    check()
    assert opened > 3, "changes that are all refused at once test nothing else"


def test_honest_releases_are_still_read(releases: dict[Path, dict[str, Any]]) -> None:
    for folder, document in releases.items():
        write_manifest(folder, document)
        opened = ps.Release.open(folder)
        assert json.loads(opened.manifest.to_json()) == document
        assert ps.verify(opened).holds


def _entry(document: dict[str, Any]) -> dict[str, Any]:
    return next(entry for entry in document["attributes"] if entry["name"] == "x")


def _made(**parameters: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: _entry(document)["mechanism"]["parameters"].update(parameters)


def _domain(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: _entry(document)["domain"].update(changes)


def _distance(**distance: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: _entry(document).update(distance=distance)


def _mechanism(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: _entry(document)["mechanism"].update(changes)


def _stratum(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: _entry(document)["strata"][0]["mechanism"].update(changes)


DEEP = {"measure": "ancestor", "parents": list(range(-1, 29_999)), "names": [""] * 30_000, "values": list(range(12))}
TREE = {"measure": "ancestor", "parents": [-1, 0], "names": ["", ""], "values": [0, 1] * 6}

REFUSED: dict[str, tuple[str, Callable[[dict[str, Any]], None], str]] = {
    "ragged weights": ("line-balanced", _made(log_weights=[[1, 2], [3]]), "mechanism.parameters.log_weights"),
    "short weights": ("line-balanced", _made(log_weights=[0.0] * 11), "expected 12 numbers, found 11"),
    "infinite weights": ("line-balanced", _made(log_weights=[1e308] * 12), "beyond 1e+300"),
    "text for weights": ("line-balanced", _made(log_weights="0" * 12), "expected a list of numbers"),
    "truth for weights": ("line-balanced", _made(log_weights=[True] * 12), "expected a list of numbers"),
    "a value never drawn": ("line-balanced", _made(log_weights=[-1e5] + [0] * 11), "in no set that can be drawn"),
    "weights of clusters": ("tree-with-a-prior", _made(log_weights=[0.0] * 12), "expected 6 numbers, found 12"),
    "negative shares": ("tree-with-a-prior", _made(shares=[-1, 2] * 6), "positive shares"),
    "a window out of range": ("tight-line", _made(tight=[12]), "not between 0 and 11"),
    "windows that turn back": ("tight-line", _made(tight=[4, 0]), "ascending"),
    "windows beyond words": ("tight-line", _made(tight=[10**400]), "not between 0 and 11"),
    "all sets excluded": ("matrix-balanced", _made(excluded=list(range(10**4))), "mechanism.parameters.excluded"),
    "an unknown parameter": ("line-simple", _made(log_weights=[0] * 12), "no parameter of this design"),
    "an unknown design": ("line-simple", _mechanism(design="best"), "unknown design"),
    "an uneven circle without weights": ("uneven-circle", _mechanism(parameters={}), "not equally spaced"),
    "more than go round": ("circle-balanced", _mechanism(l=5), "5 candidates, 3 apart, from 12 values"),
    "a set of everything": ("line-balanced", _mechanism(l=13), "sets of 13 candidates from 12 values"),
    "a d without a distance": ("diversity", _mechanism(d=2), "exactly where there is a distance"),
    "strata of two sizes": ("strata", _stratum(l=3), "strata[0].mechanism.l"),
    "strata of two distances": ("strata", _stratum(d=1), "strata[0].mechanism.d"),
    "a tree of ragged lists": (
        "tree-balanced",
        _distance(tree={**TREE, "parents": [-1, [0]]}),
        "distance.tree.parents",
    ),
    "a tree out of range": ("tree-balanced", _distance(tree={**TREE, "values": [10**30] * 12}), "distance.tree.values"),
    "a tree of great depth": ("tree-balanced", _distance(tree=DEEP), "too large"),
    "a lattice that is a text": ("lattice-balanced", _distance(lattice="abc"), "distance.lattice"),
    "a matrix of texts": ("matrix-balanced", _distance(matrix=[["1"] * 12] * 12), "distance.matrix[0]"),
    "a circle of no length": (
        "circle-balanced",
        _distance(circle={"length": 0, "positions": list(range(12))}),
        "a positive number",
    ),
    "bins that turn back": ("bins", _domain(bins=[0, 20, 10, 30, 50, 70, 100]), "ascending edges"),
    "too few bins": ("bins", _domain(bins=[0, 100]), "ascending edges"),
    "a prior with a zero": ("line-balanced", _domain(prior=[0] + [1] * 11), "a share above 0 for every value"),
    "a prior beyond numbers": ("line-balanced", _domain(prior=[1e-300] + [1e300] * 11), "a share above 0"),
    "a value listed twice": ("line-balanced", _domain(values=[*LABELS[:11], "v00"]), "more than once"),
    "another label for missing": ("missing-category", _domain(missing="v00"), "the last value"),
    "a file name without end": (
        "line-balanced",
        lambda document: document["data"].update(file="x" * 5_000),
        "$.data.file",
    ),
    "half a character": (
        "line-balanced",
        _domain(values=[*LABELS[:11], "\ud800"]),
        "not a manifest that polyseme writes",
    ),
    "a condition on a set": (
        "strata",
        lambda document: _entry(document)["impossible"][0].update(when={"y": ["1"]}),
        "does not show one value for each record",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_place(releases: dict[Path, dict[str, Any]], name: str) -> None:
    kind, edit, word = REFUSED[name]
    folder = next(folder for folder in releases if folder.name == kind)
    document = json.loads(json.dumps(releases[folder]))
    edit(document)
    write_manifest(folder, document)
    with bounded(), pytest.raises(ReleaseError, match=re.escape(word)) as caught:
        ps.Release.open(folder)
    assert all(str(problem).startswith(f"{folder / 'manifest.json'}: ") for problem in caught.value.problems)


def test_all_problems_are_named_at_once(releases: dict[Path, dict[str, Any]]) -> None:
    folder = next(folder for folder in releases if folder.name == "strata")
    document = json.loads(json.dumps(releases[folder]))
    first, second = document["attributes"][2:]
    first["mechanism"]["parameters"]["log_weights"] = [0.0]
    second["mechanism"]["parameters"]["full"] = [-1]
    write_manifest(folder, document)
    with pytest.raises(ReleaseError) as caught:
        ps.Release.open(folder)
    assert [problem.where for problem in caught.value.problems] == [
        f"{folder / 'manifest.json'}: $.attributes[2].mechanism.parameters.log_weights",
        f"{folder / 'manifest.json'}: $.attributes[3].mechanism.parameters.full",
    ]
    first["mechanism"]["p"], second["mechanism"]["l"] = 2, "many"
    write_manifest(folder, document)
    with pytest.raises(ReleaseError, match="schema") as caught:
        ps.Release.open(folder)
    assert [problem.where for problem in caught.value.problems] == [
        f"{folder / 'manifest.json'}: $.attributes[2].mechanism.p",
        f"{folder / 'manifest.json'}: $.attributes[3].mechanism.l",
    ]


def test_a_key_that_is_written_twice_is_refused(releases: dict[Path, dict[str, Any]]) -> None:
    folder = next(folder for folder in releases if folder.name == "diversity")
    write_manifest(folder, releases[folder])
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"sticky": false', '"sticky": true, "sticky": false'))
    with pytest.raises(ReleaseError, match="not readable as JSON"):
        ps.Release.open(folder)


def test_whole_numbers_may_be_written_with_a_point(releases: dict[Path, dict[str, Any]]) -> None:
    folder = next(folder for folder in releases if folder.name == "diversity")
    document = json.loads(json.dumps(releases[folder]))
    document["records"] = float(document["records"])
    _entry(document)["mechanism"]["l"] = float(_entry(document)["mechanism"]["l"])
    write_manifest(folder, document)
    tried(folder, list(CALLS))
    assert ps.verify(folder).holds


def test_sets_that_cannot_have_been_drawn_are_not_estimated_from(releases: dict[Path, dict[str, Any]]) -> None:
    """A larger d than the sets were drawn with."""
    folder = next(folder for folder in releases if folder.name == "line-simple")
    document = json.loads(json.dumps(releases[folder]))
    _entry(document)["mechanism"]["d"] = 4
    write_manifest(folder, document)
    with pytest.raises(ReleaseError, match="cannot have been drawn"):
        ps.estimate(folder, of=["x"])
