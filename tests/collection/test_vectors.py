"""The vectors of `polyseme-draw-1`: Python and JavaScript draw the same sets, and know the same worst posteriors."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from make_vectors import FILE, case, secret
from portable_cases import shares

from polyseme import web
from polyseme.designs import make_design
from polyseme.device.campaign import Campaign, fingerprint
from polyseme.device.chain import sticky_subkey
from polyseme.device.protected import worst_posterior
from polyseme.device.reports import answer_codes
from polyseme.device.sampler import KINDS, Sampling
from polyseme.semantics.distances.base import Clusters

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CLIENT = Path(web.__file__).parent / "client"
NODE = shutil.which("node")
TSC = shutil.which("tsc", path=str(Path(sys.prefix) / "npm" / "node_modules" / ".bin"))
"""The TypeScript compiler in the version that `make client-types` installs; another one may find other things."""
LIMIT = 13_000
"""Bytes of the client as it is served, compressed."""
OPTIONAL = {"ohttp.js", "tokens.js"}
"""Only loaded by campaigns with a relay or with tokens."""


@pytest.fixture(scope="module")
def vectors():
    return json.loads(gzip.decompress(FILE.read_bytes()))


def batched(flat, length):
    return (tuple(flat[start : start + length]) for start in range(0, len(flat), length))


def test_there_are_enough_vectors(vectors):
    drawn = {way: Counter() for way in ("fresh", "sticky", "blind")}
    for one in vectors["cases"]:
        for way, counts in drawn.items():
            counts[one["document"]["kind"]] += len(one[way]) // one["document"]["l"]
    for counts in drawn.values():
        assert set(counts) == set(KINDS)
        assert min(counts.values()) >= 1_000
    assert len(vectors["campaign"]["answers"]) >= 1_000
    assert len(vectors["posteriors"]) >= 100
    assert FILE.stat().st_size < 1_000_000


def test_python_draws_the_vectors(vectors):
    for one in vectors["cases"]:
        name, sampling = one["name"], Sampling.read(one["document"])
        blind = Sampling.read({**one["document"], "p53": 0})
        known = fingerprint(name, one["labels"], sampling.document)
        assert known == one["fingerprint"]
        l, size = sampling.l, sampling.size
        for number, expected in enumerate(batched(one["fresh"], l)):
            assert sampling.draw(number % size, secret(name, number)) == expected
        for number, expected in enumerate(batched(one["blind"], l)):
            assert blind.draw(number % size, secret(name, number)) == expected
        for number, expected in enumerate(batched(one["sticky"], l)):
            subkey = sticky_subkey(secret(name, number), known, number % 3, number % size)
            assert sampling.draw(number % size, subkey) == expected


def test_python_knows_the_posteriors(vectors):
    for one in vectors["posteriors"]:
        found = worst_posterior(Sampling.read(one["document"]), one["prior"])
        assert found == pytest.approx(one["posterior"], rel=1e-12)


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


def test_the_worked_example_of_the_protocol(vectors):
    named = {one["name"]: one for one in vectors["cases"]}
    assert named["clusters-even-lying"]["fresh"][3:6] == [1, 2, 5]
    assert named["line-ranks"]["fresh"][12:15] == [1, 4, 7]
    page = (ROOT / "docs" / "collection" / "protocol.md").read_text()
    for name, number, shown in (("clusters-even-lying", 1, 14), ("line-ranks", 4, 16)):
        stream = Cipher(algorithms.AES(secret(name, number)), modes.CTR(bytes(16))).encryptor().update(bytes(shown))
        assert stream.hex(" ") in page
    assert json.dumps(named["clusters-even-lying"]["document"], separators=(",", ":")) in page
    assert secret("clusters-even-lying", 1).hex() in page


def run_in_node(folder, file=FILE, timeout=300):
    command = [str(NODE), str(HERE / "run_vectors.mjs"), str(folder), str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)


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
        len(one[way]) // one["document"]["l"] for one in vectors["cases"] for way in ("fresh", "sticky", "blind")
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
    done = run_in_node(CLIENT, tmp_path / "wrong.json.gz")
    assert done.returncode == 1
    assert len(json.loads(done.stdout)["wrong"]) == 3


@pytest.mark.lane
@pytest.mark.node
@pytest.mark.skipif(NODE is None, reason="Node is not installed")
def test_node_draws_from_large_domains(vectors, tmp_path):
    design = make_design("balanced", Clusters(np.arange(70_000)), 4, shares(70_000, 41))
    document = design.portable(0.9)
    posterior = worst_posterior(Sampling.read(document))
    large = {
        "cases": [case("large", document, 10)],
        "posteriors": [{"document": document, "prior": None, "posterior": posterior}],
        "campaign": {**vectors["campaign"], "answers": vectors["campaign"]["answers"][:3]},
    }
    (tmp_path / "large.json.gz").write_bytes(gzip.compress(json.dumps(large).encode(), 1))
    # Seconds; a table that was filled again for every value would take hours.
    done = run_in_node(CLIENT, tmp_path / "large.json.gz", 120)
    assert done.returncode == 0, done.stdout[:2000] + done.stderr[:2000]


@pytest.mark.lane
@pytest.mark.node
@pytest.mark.skipif(TSC is None or NODE is None, reason="no TypeScript compiler (make client-types; needs npm)")
def test_the_types_of_the_client_hold():
    flags = "--noEmit --checkJs --strict --allowJs --target es2022 --module esnext --moduleResolution bundler"
    pages = [CLIENT.parent / "page" / "page.js", CLIENT.parent / "admin" / "admin.js"]
    pages.append(CLIENT.parent / "workbench" / "app.js")
    modules = map(str, [*sorted(CLIENT.glob("*.js")), *pages])
    command = [str(TSC), *flags.split(), "--lib", "es2022,dom,dom.iterable", *modules]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[:2000]


def test_the_client_is_small():
    needed = [web.client_module(name) for name in web.client_modules() if name not in OPTIONAL]
    assert len(gzip.compress(b"".join(needed), 9)) < LIMIT


def test_only_modules_of_the_client_are_handed_out():
    with pytest.raises(KeyError):
        web.client_module("../__init__.py")
