"""Levels that a policy allows for full-domain generalization, and the alternatives to the best ones."""

from __future__ import annotations

import json
import shlex
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from command_line import polyseme

import polyseme as ps
from polyseme.kernel.errors import ImpossibleError, PolicyError, QuestionError

WIDTHS = {"age": [5, 10, 20], "cost": [2, 4], "sex": []}
K, SUPPRESSION = 4, 0.1
generator = np.random.default_rng(5)
TABLE = pl.DataFrame(
    {
        "age": generator.integers(0, 40, 120),
        "cost": generator.integers(0, 12, 120),
        "sex": generator.choice(["f", "m"], 120),
        "ill": generator.choice(list("abcd"), 120),
    }
)
HEIGHTS = {name: len(widths) + 1 for name, widths in WIDTHS.items()}


def policy(levels: Any = None, k: int = K) -> dict[str, Any]:
    known = {
        name: {"role": "quasi-identifier", "hierarchy": {"intervals": widths} if widths else "suppress"}
        for name, widths in WIDTHS.items()
    }
    method = {"loss": "precision", "suppression": SUPPRESSION, **({} if levels is None else {"levels": levels})}
    secret = {"role": "sensitive", "domain": list("abcd"), "protect": {"diversity": {"l": 2}}}
    return {
        "attributes": {**known, "ill": secret},
        "models": [{"k-anonymity": {"k": k}}],
        "method": {"full-domain": method},
    }


def shown(name: str, level: int) -> pl.Expr:
    """A column at a level, from the definition: the value, an interval, or nothing."""
    if level == 0:
        return pl.col(name)
    return pl.lit("*").alias(name) if level == HEIGHTS[name] else pl.col(name) // WIDTHS[name][level - 1]


def suppressed(levels: tuple[int, ...]) -> int:
    made = TABLE.select(shown(name, level) for name, level in zip(WIDTHS, levels, strict=True))
    sizes = made.group_by(*WIDTHS).len()["len"]
    return int(sizes.filter(sizes < K).sum())


def precision(levels: tuple[int, ...]) -> float:
    return sum(level / HEIGHTS[name] for name, level in zip(WIDTHS, levels, strict=True)) / len(levels)


def best(bounds: dict[str, tuple[int, int]]) -> float | None:
    """The least loss of all levels within bounds, one by one."""
    ranges = [range(bounds.get(name, (0, top))[0], bounds.get(name, (0, top))[1] + 1) for name, top in HEIGHTS.items()]
    fine = [node for node in product(*ranges) if suppressed(node) <= SUPPRESSION * len(TABLE)]
    return min(map(precision, fine), default=None)


@pytest.mark.parametrize(
    "bounds",
    [{}, {"age": (1, 2), "sex": (0, 0)}, {"cost": (1, 3)}, {"age": (0, 0), "cost": (0, 0)}],
    ids=str,
)
def test_the_best_levels_within_bounds_are_found(bounds: dict[str, tuple[int, int]]) -> None:
    levels = {name: low if low == high else [low, high] for name, (low, high) in bounds.items()}
    expected = best(bounds)
    found = ps.plan(policy(levels or None), data=TABLE).grouping
    assert found is not None
    if expected is None:
        assert not found.feasible
        assert "levels that the policy allows are too fine" in found.obstacle
        return
    assert found.applied is not None
    assert found.applied.loss == pytest.approx(expected, abs=1e-12)
    assert found.applied.gap == 0.0
    for name, (low, high) in bounds.items():
        assert low <= found.applied.levels[name] <= high


def test_wrong_levels_are_said_all_at_once() -> None:
    wrong = {"agge": 0, "age": [3, 1], "cost": 9, "sex": "none"}
    with pytest.raises(PolicyError) as error:
        ps.plan(policy(wrong), data=TABLE)
    said = {problem.where.rsplit(".", 1)[1]: problem.what for problem in error.value.problems}
    assert said["agge"] == "no such quasi-identifier"
    assert said["age"].startswith("an empty range")
    assert said["cost"].endswith("to 3, the coarsest")
    assert said["sex"] == "expected a level, or the lowest and the highest one"


def test_alternatives_are_the_best_levels_with_one_column_finer() -> None:
    planner = ps.Planner.of(policy(), TABLE)
    now = planner.plan(policy()).grouping
    assert now is not None
    assert now.applied is not None
    found = planner.alternatives(policy())
    losses = set()
    for name, level in now.applied.levels.items():
        expected = best({name: (0, level - 1)}) if level else None
        if expected is not None:
            losses.add(round(expected, 12))
    assert {round(one.loss, 12) for one in found} == losses
    for one in found:
        assert one.heights == HEIGHTS
        assert one.to_dict()["kept"] == pytest.approx(1 - precision(tuple(one.levels.values())))
        assert one.to_dict()["suppressed_share"] == one.suppressed / len(TABLE)
        hidden = [name for name, level in one.levels.items() if level == HEIGHTS[name]]
        assert [name for name, words in one.words.items() if words == "hidden (*)"] == hidden
        assert suppressed(tuple(one.levels.values())) == one.suppressed
        assert one.loss >= now.applied.loss  # type: ignore[operator]
        assert all(one.levels[name] < now.applied.levels[name] for name in one.more)
        again = ps.plan(policy(dict(one.cut)), data=TABLE).grouping
        assert again is not None
        assert again.applied is not None
        assert again.applied.levels == one.levels


def test_the_command_prints_alternatives_that_can_be_pasted(tmp_path: Path) -> None:
    path, table = tmp_path / "policy.yaml", tmp_path / "people.csv"
    path.write_text(json.dumps(policy()), encoding="utf-8")
    TABLE.write_csv(table)
    said = polyseme("plan", path, "--data", table, "--alternatives")
    (line, *_) = [line for line in said.stdout.splitlines() if line.startswith("polyseme policy set")]
    document = json.loads(polyseme("plan", path, "--data", table, "--alternatives", "--json").stdout)
    assert polyseme(*shlex.split(line)[1:]).returncode == 0
    then = json.loads(polyseme("plan", path, "--data", table, "--json").stdout)
    assert then["method"]["levels"] == document["alternatives"][0]["levels"]


def test_alternatives_need_levels_and_a_table() -> None:
    with pytest.raises(QuestionError, match="only full-domain"):
        ps.Planner.of(policy(), TABLE).alternatives({**policy(), "method": {"mondrian": {}}})
    with pytest.raises(QuestionError, match="searched for a table"):
        ps.Planner(None).alternatives(policy())
    with pytest.raises(ImpossibleError):
        ps.Planner.of(policy(), TABLE).alternatives(policy(k=121))
