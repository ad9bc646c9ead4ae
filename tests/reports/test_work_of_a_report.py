"""What a report does for each attribute, counted: a wide table has hundreds of them, and a clock is no judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import threadpoolctl

import polyseme as ps
from polyseme.inference.knowledge import held_out as judging
from polyseme.inference.knowledge import held_out as learning
from polyseme.inference.knowledge import learned as learned
from polyseme.inference.sets import all_sets
from polyseme.inference.sets import estimate as estimating
from polyseme.results.drawing import bars
from polyseme.scrutiny import knowledge
from polyseme.scrutiny import verification as evidence
from polyseme.scrutiny.attacks import definetti
from polyseme.scrutiny.verification import verdicts

ROWS, ORDERED, LISTED = 300, 4, 5


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine attributes of six values, the labels of which go together with nothing."""
    random = np.random.default_rng(2)
    names = [f"q{number}" for number in range(ORDERED + LISTED)]
    columns = {name: random.choice(list("uvwxyz"), ROWS) for name in names}
    kept = ["distance: {line: rank}, protect: {semantic-diversity: {l: 2, d: 2}}"] * ORDERED
    kept += ["protect: {diversity: {l: 2}}"] * LISTED
    lines = [f"  {name}: {{role: sensitive, domain: [u, v, w, x, y, z], {how}}}" for name, how in zip(names, kept)]
    lines += ["  sex: {role: quasi-identifier}", "  zip: {role: quasi-identifier}"]
    untouched = {"sex": random.choice(["f", "m"], ROWS), "zip": random.integers(0, 5, ROWS)}
    folder = tmp_path_factory.mktemp("work")
    policy = ps.Policy.loads("attributes:\n" + "\n".join(lines) + "\n")
    ps.anonymize(pl.DataFrame({**columns, **untouched}), policy, folder / "release", seed=3, warn=lambda text: None)
    return folder / "release"


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each piece of work is done."""
    found: Counter[str] = Counter()

    def count(what: str, place: Any, name: str) -> None:
        plain: Callable[..., Any] = getattr(place, name)

        def counted(*given: Any, **named: Any) -> Any:
            found[what] += 1
            return plain(*given, **named)

        monkeypatch.setattr(place, name, counted)

    count("fits", definetti, "_fitted")
    count("rounds", definetti._Columns, "evidence")
    count("judgments", judging.Judge, "scores")
    count("shares", learned._Seen, "fitted")
    count("groups", knowledge, "information")
    count("examinations", evidence, "examine")
    count("examinations", verdicts, "examine")
    count("compilations", bars.vl_convert, "vegalite_to_vega")
    count("searches", threadpoolctl, "ThreadpoolController")
    bars._compiled.cache_clear()
    estimating._linear_algebra.cache_clear()
    return found


def test_the_work_of_attacks_on_each_attribute(release: Path, done: Counter[str]) -> None:
    ps.attack(release)
    each = {what: number / (ORDERED + LISTED) for what, number in done.items()}
    # Three folds, each judged by a fit to the other two; a fit to all of them is not needed.
    assert each["fits"] == 3
    assert each["rounds"] == 3 * 20
    # The same folds for shares of everybody, and the shares themselves.
    assert each["judgments"] == 3 + 3
    assert each["shares"] == 3 + 1


def test_the_work_of_a_report_on_each_attribute(release: Path, done: Counter[str]) -> None:
    ps.report(release)
    attributes = ORDERED + LISTED
    each = {what: number / attributes for what, number in done.items()}
    # An attack, and the same three folds for what readers of the release can learn from all columns.
    assert each["fits"] == 3 + 3
    # Attacks; five folds for the shares of everybody, of the groups and of the finest groups; three for all columns.
    # And five with the sets of other attributes, and without them.
    assert each["judgments"] == 3 + 3 + 3 * 5 + 3 + 2 * 5
    # These folds, the whole, and releases drawn to see what learning loses; in groups also how many people like
    # everybody else suit them.
    grouped = 5 + 2 * (5 + 1 + learning._RELEASES)
    # With the sets of other attributes: five folds, the whole and releases drawn, each in groups.
    read = (5 + 1 + all_sets._RELEASES) * (5 + 2)
    assert each["shares"] == 3 + 1 + (5 + 1 + learning._RELEASES) + 2 * grouped + (2 + 5) + read
    # The strata, two columns, and the other one of them.
    assert each["groups"] == 1 + 2 + 1
    # For its verdict; the estimate reads that.
    assert each["examinations"] == 1
    # One for each kind of chart: the labels of listed values come in another order each time.
    assert done["compilations"] == 2
    assert done["searches"] == 1
