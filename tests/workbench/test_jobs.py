"""Jobs are the command itself: progress, result, refusal and cancel, one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from polyseme.workbench.jobs import Job, Jobs

POLICY = """\
attributes:
  sex: {role: quasi-identifier}
  ill: {role: sensitive, domain: [flu, hiv, acne, gout, cold, none], protect: {diversity: {l: 3}}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("jobs")
    rng = np.random.default_rng(3)
    ill = rng.choice(["flu", "hiv", "acne", "gout", "cold", "none"], 400_000)
    pl.DataFrame({"sex": rng.choice(["m", "f"], 400_000), "ill": ill}).write_parquet(place / "people.parquet")
    (place / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (place / "wrong.yaml").write_text("attributes: {sex: {role: nothing}}", encoding="utf-8")
    return place


def run(folder: Path, work: Callable[[Jobs], Awaitable[None]]) -> None:
    async def all_of_it() -> None:
        jobs = Jobs(folder)
        try:
            await work(jobs)
        finally:
            await jobs.stop()

    asyncio.run(all_of_it())


async def until(job: Job, *states: str) -> None:
    for _ in range(2_400):
        if job.state in states:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(job.state)


def test_a_job_reports_and_returns_what_the_command_prints(folder: Path) -> None:
    async def work(jobs: Jobs) -> None:
        first = jobs.start("anonymize", ["anonymize", "policy.yaml", "people.parquet", "--out", "r1", "--json"])
        second = jobs.start("verify", ["verify", "r1", "--json"])
        await until(first, "running")
        assert second.state == "waiting"
        await until(second, "done", "failed", "refused")
        assert (first.state, second.state) == ("done", "done")
        assert first.result["records"] == 400_000
        assert second.result["holds"]
        shares = [event["share"] for event in first.events if event.get("share") is not None]
        assert shares == sorted(shares)
        assert shares[-1] > 0.9

    run(folder, work)


def test_a_refusal_says_why(folder: Path) -> None:
    async def work(jobs: Jobs) -> None:
        job = jobs.start("anonymize", ["anonymize", "wrong.yaml", "people.parquet", "--out", "r2"])
        await until(job, "refused", "done", "failed")
        assert job.state == "refused"
        assert job.code == 2
        assert any("role" in line for line in job.messages)

    run(folder, work)
    assert not (folder / "r2").exists()


def test_cancel_leaves_nothing(folder: Path) -> None:
    before = {path.name for path in folder.iterdir()}

    async def work(jobs: Jobs) -> None:
        job = jobs.start("anonymize", ["anonymize", "policy.yaml", "people.parquet", "--out", "r3"])
        waiting = jobs.start("verify", ["verify", "r3"])
        await until(job, "running")
        while not job.events and not job.ended:
            await asyncio.sleep(0.02)
        await jobs.cancel(job)
        await jobs.cancel(waiting)
        assert job.state == waiting.state == "canceled"
        assert waiting.process is None

    run(folder, work)
    assert {path.name for path in folder.iterdir()} == before
