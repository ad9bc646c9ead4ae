"""Long work reports its progress to its listeners, and to no other."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme.kernel.work import listening, stage, tracked

POLICY = ps.Policy.from_dict(
    {
        "attributes": {
            "sex": {"role": "quasi-identifier"},
            "rank": {
                "role": "sensitive",
                "domain": list("abcdef"),
                "distance": {"line": "rank"},
                "protect": {"semantic-diversity": {"l": 2, "d": 2}},
            },
        }
    }
)


@dataclass
class Recorder:
    """What a listener heard: names with totals, and how far each stage came."""

    begun: list[tuple[str, int | None]] = field(default_factory=list)
    reached: dict[int, int] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)

    def begin(self, name: str, total: int | None) -> int:
        self.begun.append((name, total))
        self.open.add(len(self.begun) - 1)
        return len(self.begun) - 1

    def reach(self, task: int, done: int) -> None:
        assert task in self.open
        self.reached[task] = done

    def end(self, task: int) -> None:
        self.open.remove(task)

    def done(self, name: str) -> list[tuple[int | None, int]]:
        return [(total, self.reached.get(task, 0)) for task, (called, total) in enumerate(self.begun) if called == name]


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    rng = np.random.default_rng(7)
    return pl.DataFrame({"sex": rng.choice(["f", "m"], 3_000), "rank": rng.choice(list("abcdef"), 3_000)})


def test_every_verb_tells_its_stages(people: pl.DataFrame) -> None:
    heard = Recorder()
    with listening(heard):
        ps.plan(POLICY, data=people)
        release = ps.anonymize(people, POLICY, warn=lambda text: None)
        ps.verify(release)
        ps.attack(release, people)
        ps.evaluate(release, people, by=["sex"])
    assert not heard.open
    assert heard.done("Drawing sets") == [(3_000, 3_000)]
    assert heard.done("Writing") == [(3_000, 3_000)]
    assert heard.done("Choosing mechanisms")[0] == (1, 1)
    for name in ("Checking promises", "Guessing values", "Attacking attributes", "Comparing tables"):
        assert heard.done(name), name
        assert all(total == reached == 1 for total, reached in heard.done(name)), name
    assert all(total == reached for total, reached in heard.done("Running attacks"))
    assert any(reached == 3_000 for _, reached in heard.done("Reading table"))


def test_a_search_tells_how_many_levels_are_left(people: pl.DataFrame) -> None:
    policy = ps.Policy.from_dict(
        {
            "attributes": {
                "sex": {"role": "quasi-identifier", "hierarchy": "suppress"},
                "rank": {"role": "quasi-identifier", "hierarchy": "suppress"},
            },
            "models": [{"k-anonymity": {"k": 600}}],
            "method": {"full-domain": {}},
        }
    )
    heard = Recorder()
    with listening(heard):
        ps.anonymize(people, policy, warn=lambda text: None)
    assert heard.done("Searching levels") == [(4, 4)]
    cut = Recorder()
    with listening(cut):
        ps.anonymize(people, ps.Policy.from_dict({**_document(), "method": {"mondrian": {}}}), warn=lambda text: None)
    assert cut.done("Cutting classes") == [(3_000, 3_000)]


def _document() -> dict[str, object]:
    roles = {name: {"role": "quasi-identifier"} for name in ("sex", "rank")}
    return {"attributes": roles, "models": [{"k-anonymity": {"k": 50}}]}


def test_a_stage_that_fails_ends() -> None:
    heard = Recorder()

    def broken() -> None:
        for item in tracked([1, 2], "counts", "Counting"):
            if item == 2:
                raise ValueError

    with listening(heard), pytest.raises(ValueError):  # noqa: PT011 - any will do
        broken()
    assert heard.begun == [("Counting", 2)]
    assert not heard.open


def test_only_the_thread_that_asked_is_heard_and_totals_are_asked_for_only_then() -> None:
    heard, totals = Recorder(), []

    def total() -> int:
        totals.append(1)
        return 3

    with listening(heard):
        other = threading.Thread(target=lambda: list(tracked([1], "elsewhere", "Elsewhere")))
        other.start()
        other.join()
        with stage("here", "Here", total):
            pass
    with stage("unheard", "Unheard", total) as progress:
        progress.advance(2)
    assert heard.begun == [("Here", 3)]
    assert len(totals) == 1
