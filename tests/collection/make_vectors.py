"""Writes the vectors of `polyseme-draw-1`: documents, subkeys and the sets that every implementation must draw.

    python tests/collection/make_vectors.py

makes `tests/collection/vectors/draw-1.json.gz` again. What it holds was drawn once and is then part of the protocol: a
change of it is a new `polyseme-draw`.

    {"cases": [{"name", "document", "labels", "fingerprint", "fresh", "sticky", "blind"}],
     "posteriors": [{"document", "prior", "posterior"}],
     "campaign": {"document": text, "id", "columns", "answers": [{"codes", "sets"}]}}

Subkeys and keys are not listed: number n of a case is SHA-256 of "case name n". Fresh draws go round the values, draw n
being for code n mod F; sticky draw n is under device key n. Blind draws are those of the same document with p53 = 0.
Sets are written one after the other as flat lists of codes.
"""

from __future__ import annotations

import gzip
import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
from portable_cases import cases, random_designs, shares
from survey import POLICY, questions

from polyseme.collection.campaigns import make_campaign
from polyseme.designs import make_design
from polyseme.designs.stored import described
from polyseme.device.campaign import compact, fingerprint
from polyseme.device.chain import sticky_subkey
from polyseme.device.reports import answer_codes
from polyseme.device.sampler import ONE, Sampling
from polyseme.policy import Policy
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Clusters

FILE = Path(__file__).parent / "vectors" / "draw-1.json.gz"
DRAWS = 1_000
"""Of each kind and each way of drawing: fresh, sticky and blind; and answers to a campaign with strata."""
DESIGNS = 160
"""Random designs whose worst posterior is listed, as the design computes it."""


def secret(name: str, number: int) -> bytes:
    return hashlib.sha256(f"{name} {number}".encode()).digest()


def label(code: int) -> str | int | bool:
    """Labels of every type, and some that JSON has to escape."""
    return [f"välue {code}", code, code == 2, f'"{code}"\\\n\u2028', f"\U0001f600{code}"][code % 5 if code < 5 else 0]


def case(name: str, document: dict, draws: int) -> dict:
    sampling = Sampling.read(document)
    size = sampling.size
    labels = [label(code) for code in range(size if size < 1000 else 0)]
    known = fingerprint(name, labels, sampling.document)
    blind = Sampling.read({**document, "p53": 0})
    return {
        "name": name,
        "document": document,
        "labels": labels,
        "fingerprint": known,
        "fresh": [code for n in range(draws) for code in sampling.draw(n % size, secret(name, n))],
        "sticky": [
            code
            for n in range(draws)
            for code in sampling.draw(n % size, sticky_subkey(secret(name, n), known, n % 3, n % size))
        ],
        "blind": [code for n in range(draws) for code in blind.draw(n % size, secret(name, n))],
    }


def documents():
    for name, (design, p) in cases().items():
        yield name, design.portable(p)
    yield "clusters-many", make_design("balanced", Clusters(np.arange(1200) % 400), 5).portable(0.97)
    yield (
        "line-long",
        make_design("balanced", LineDistance.ranks(140).structure(9), 6, shares(140, 31, 0.1)).portable(0.9),
    )


def posteriors():
    """Worst posteriors as the designs themselves compute them, in floating point."""
    for design, p, rng in random_designs(DESIGNS):
        document = design.portable(p)
        again = described(document, design.structure, design.name)
        prior = rng.dirichlet(np.ones(design.size))
        worst = again.worst_posterior(prior, document["p53"] / ONE)
        yield {"document": document, "prior": prior.tolist(), "posterior": worst}


def campaign() -> dict:
    made = make_campaign(Policy.loads(POLICY), questions(draws="sticky")).campaign
    rng = np.random.default_rng(5)
    answers = []
    for number in range(DRAWS):
        codes = {name: int(rng.integers(len(labels))) for name, labels in made.labels.items()}
        if codes["sex"] == 1 and codes["disease"] == 2:
            codes["disease"] = 1
        sets = answer_codes(made, codes, secret("campaign", number)).sets
        answers.append({"codes": list(codes.values()), "sets": [list(found) for found in sets.values()]})
    return {"document": made.data.decode(), "id": made.id, "columns": list(made.labels), "answers": answers}


def main() -> None:
    known = list(documents())
    often = Counter(document["kind"] for _, document in known)
    drawn = [case(name, document, -(-DRAWS // often[document["kind"]])) for name, document in known]
    made = {"cases": drawn, "posteriors": list(posteriors()), "campaign": campaign()}
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(gzip.compress(compact(made), 9, mtime=0))
    print(f"{FILE.name}: {len(drawn)} cases, {len(made['posteriors'])} posteriors, {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
