"""The vectors of `polyseme-draw-1`: Python and JavaScript draw the same sets, and know the same worst posteriors."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from make_vectors import FILE, secret

from polyseme import web
from polyseme.device.campaign import Campaign
from polyseme.device.fingerprint import fingerprint
from polyseme.device.posterior import worst_posterior
from polyseme.device.reports import answer_codes
from polyseme.device.sampling import KINDS, Sampling
from polyseme.device.stream import sticky_subkey

HERE = Path(__file__).parent
CLIENT = Path(web.__file__).parent / "client"
NODE = shutil.which("node")
TSC = os.environ.get("POLYSEME_TSC") or shutil.which("tsc")
LIMIT = 10_000
"""Bytes of the client, compressed, without the relay and tokens that few campaigns load."""


@pytest.fixture(scope="module")
def vectors():
    return json.loads(gzip.decompress(FILE.read_bytes()))


def batched(flat, length):
    return (tuple(flat[start : start + length]) for start in range(0, len(flat), length))


def test_there_are_enough_vectors(vectors):
    drawn = {way: Counter() for way in ("fresh", "sticky", "blind")}
    for case in vectors["cases"]:
        for way, counts in drawn.items():
            counts[case["document"]["kind"]] += len(case[way]) // case["document"]["l"]
    for counts in drawn.values():
        assert set(counts) == set(KINDS)
        assert min(counts.values()) >= 1_000
    assert len(vectors["campaign"]["answers"]) >= 1_000
    assert len(vectors["posteriors"]) >= 100
    assert FILE.stat().st_size < 1_000_000


def test_python_draws_the_vectors(vectors):
    for case in vectors["cases"]:
        name, sampling = case["name"], Sampling.read(case["document"])
        blind = Sampling.read({**case["document"], "p53": 0})
        known = fingerprint(name, case["labels"], sampling.document)
        assert known == case["fingerprint"]
        l, size = sampling.l, sampling.size
        for number, expected in enumerate(batched(case["fresh"], l)):
            assert sampling.draw(number % size, secret(name, number)) == expected
        for number, expected in enumerate(batched(case["blind"], l)):
            assert blind.draw(number % size, secret(name, number)) == expected
        for number, expected in enumerate(batched(case["sticky"], l)):
            subkey = sticky_subkey(secret(name, number), known, number % 3, number % size)
            assert sampling.draw(number % size, subkey) == expected


def test_python_knows_the_posteriors(vectors):
    for case in vectors["posteriors"]:
        found = worst_posterior(Sampling.read(case["document"]), case["prior"])
        assert found == pytest.approx(case["posterior"], rel=1e-12)


def test_python_answers_the_campaign(vectors):
    given = vectors["campaign"]
    campaign = Campaign.read(given["document"].encode(), given["id"])
    strata = set()
    for number, one in enumerate(given["answers"]):
        codes = dict(zip(given["columns"], one["codes"], strict=True))
        strata.add(campaign.protected[1].placing.stratum(codes))
        report = answer_codes(campaign, codes, secret("campaign", number))
        assert [list(found) for found in report.sets.values()] == one["sets"]
    assert strata == {0, 1}


def run_in_node(folder):
    command = [str(NODE), str(HERE / "run_vectors.mjs"), str(folder), str(FILE)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.node
@pytest.mark.skipif(NODE is None, reason="Node is not installed")
def test_node_draws_the_vectors_from_what_is_served(vectors, tmp_path):
    for name in web.client_modules():
        (tmp_path / name).write_bytes(web.client_module(name))
    (tmp_path / "package.json").write_text('{"type": "module"}')
    done = run_in_node(tmp_path)
    assert done.returncode == 0, done.stdout[:2000] + done.stderr[:2000]
    found = json.loads(done.stdout)
    expected = sum(
        len(case[way]) // case["document"]["l"] for case in vectors["cases"] for way in ("fresh", "sticky", "blind")
    )
    assert found["draws"] == expected
    assert found["posteriors"] == len(vectors["posteriors"])
    assert found["answers"] == len(vectors["campaign"]["answers"])
    assert found["worst"] < 1e-12
    assert found["wrong"] == []


@pytest.mark.node
@pytest.mark.skipif(NODE is None, reason="Node is not installed")
def test_a_wrong_vector_is_noticed(vectors, tmp_path):
    wrong = json.loads(json.dumps({**vectors, "cases": vectors["cases"][:1], "posteriors": vectors["posteriors"][:1]}))
    wrong["cases"][0]["fresh"][0] ^= 1
    wrong["posteriors"][0]["posterior"] *= 1 + 1e-11
    wrong["campaign"]["answers"] = wrong["campaign"]["answers"][:2]
    wrong["campaign"]["answers"][0]["sets"][0][0] ^= 1
    (tmp_path / "wrong.json.gz").write_bytes(gzip.compress(json.dumps(wrong).encode()))
    command = [str(NODE), str(HERE / "run_vectors.mjs"), str(CLIENT), str(tmp_path / "wrong.json.gz")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1
    assert len(json.loads(done.stdout)["wrong"]) == 3


@pytest.mark.node
@pytest.mark.skipif(TSC is None, reason="the TypeScript compiler is not installed: npm install typescript")
def test_the_types_of_the_client_hold():
    flags = "--noEmit --checkJs --strict --allowJs --target es2022 --module esnext --moduleResolution bundler"
    command = [str(TSC), *flags.split(), "--lib", "es2022,dom,dom.iterable", *map(str, sorted(CLIENT.glob("*.js")))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[:2000]


def test_the_client_is_small():
    needed = [name for name in web.client_modules() if name not in ("ohttp.js", "tokens.js")]
    assert "polyseme-client.js" in needed
    assert len(gzip.compress(b"".join(map(web.client_module, needed)), 9)) < LIMIT


def test_only_modules_of_the_client_are_handed_out():
    with pytest.raises(KeyError):
        web.client_module("../__init__.py")
