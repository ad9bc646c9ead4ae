"""The OpenAPI document and the collector agree, as a program finds that reads the one and tries the other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import crowd
import pytest
from collectors import Process, environment

from polyseme.collection.operations import open_document
from polyseme.collection.server.public import public_document
from polyseme.collection.store import Counts, open_store

CHECKS = "positive_data_acceptance"
"""Which codes a report may have, and how long it is, is in the campaign's document: OpenAPI cannot say it, so most of
what fits the schema is rightly refused."""


@pytest.mark.lane
def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("st")
    if not program.exists():
        pytest.skip("schemathesis is not installed here (requirements-dev.txt)")
    address = f"sqlite:///{tmp_path}/reports.db"
    store = open_store(address)
    campaign = open_document(store, crowd.document())
    document = public_document()
    for path in document["paths"].values():
        # Of all campaigns that there could be, there is one.
        path["parameters"][0]["schema"] = {"enum": [campaign, "A" * 43]}
    (tmp_path / "openapi.json").write_text(json.dumps(document), encoding="utf-8")
    with Process(address) as process:
        url = f"http://127.0.0.1:{process.port}"
        command = [program, "run", tmp_path / "openapi.json", "--url", url, "--exclude-checks", CHECKS, "--seed", "1"]
        done = subprocess.run(
            [*command, "--max-examples", "300", "--phases", "examples,coverage,fuzzing", "--no-color"],
            cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=900,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-6_000:]
        print(done.stdout[-1_500:])
        assert process.stop() == 0
    # It does not know the padding, so that none of its reports can be one; withdrawals leave their tombstones.
    assert store.counts(campaign) == Counts()
    store.close()
