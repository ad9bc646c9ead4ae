"""What the device's own parts do: the stream, documents that are wrong, and an import without numpy."""

from __future__ import annotations

import hashlib
import hmac
import subprocess
import sys

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from portable_cases import cases

from polyseme.device.campaign import compact, fingerprint
from polyseme.device.chain import KeyStream, sticky_subkey
from polyseme.device.sampler import ONE, Sampling
from polyseme.kernel.errors import CampaignError

KEY = bytes(range(32))


def key_stream(count, key=KEY):
    return Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(count))


def test_numbers_are_read_from_the_key_stream():
    source, stream = key_stream(400), KeyStream(KEY)
    place = 0
    for bound in (1, 2, 3, 255, 256, 257, 1000, 2**53, 10**40, 1, 7):
        bits = (bound - 1).bit_length()
        width = -(-bits // 8)
        expected = 0
        while bits:
            expected = int.from_bytes(source[place : place + width], "big") % 2**bits
            place += width
            if expected < bound:
                break
        assert stream.below(bound) == expected
    assert place < 400


def test_a_sticky_subkey_is_an_hmac():
    message = b"polyseme-draw-1\nab12\n3\n41"
    assert sticky_subkey(KEY, "ab12", 3, 41) == hmac.new(KEY, message, hashlib.sha256).digest()


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_keys_have_32_bytes(size):
    with pytest.raises(ValueError, match="32 bytes"):
        KeyStream(bytes(size))
    with pytest.raises(ValueError, match="32 bytes"):
        sticky_subkey(bytes(size), "", 0, 0)


def test_a_fingerprint_depends_on_everything():
    document = cases()["line-ranks"][0].portable()
    prints = {
        fingerprint("income", ["a", 1, True], document),
        fingerprint("wealth", ["a", 1, True], document),
        fingerprint("income", ["a", "1", True], document),
        fingerprint("income", ["a", 1, True], {**document, "l": 2}),
    }
    assert len(prints) == 4
    assert compact(["ä", 1, True, "\n\x1f"]) == '["ä",1,true,"\\n\\u001f"]'.encode()


def test_half_a_character_is_refused():
    with pytest.raises(CampaignError, match="surrogate"):
        compact("\ud800")


LINE = {"kind": "line", "l": 2, "p53": ONE, "order": [0, 1, 2], "ahead": [1, 2, 3], "weights": [1, 1, 1], "tight": []}
CIRCLE = {"kind": "circle", "l": 2, "p53": ONE, "order": [0, 1, 2, 3], "ahead": [2, 3, 4, 5]}
CLUSTERS = {"kind": "clusters", "l": 2, "p53": ONE, "labels": [0, 0, 1], "weights": [1, 2]}
LISTED = {"kind": "listed", "l": 2, "p53": ONE, "neighbours": [[1, 2], [2], []], "weights": [1, 1, 1], "excluded": []}
TABLE = {"kind": "table", "l": 2, "p53": ONE, "size": 3, "sets": [[0, 1], [1, 2]], "weights": [1, 5]}

WRONG = {
    "no object": (["line"], "expected an object"),
    "no kind": ({}, "unknown kind"),
    "misspelled kind": ({**LINE, "kind": "lines"}, "did you mean 'line'"),
    "l is text": ({**LINE, "l": "2"}, "l: expected a whole number"),
    "l is true": ({**LINE, "l": True}, "l: expected a whole number"),
    "l is a fraction": ({**LINE, "l": 2.0}, "l: expected a whole number"),
    "too likely": ({**LINE, "p53": ONE + 1}, "p53: expected a whole number"),
    "unknown field": ({**LINE, "wide": 1}, "wide: no such field"),
    "order": ({**LINE, "order": [0, 0, 2]}, "each of 1 to"),
    "ahead of itself": ({**LINE, "ahead": [0, 2, 3]}, "ahead"),
    "ahead descends": ({**LINE, "ahead": [3, 2, 3]}, "never descend"),
    "too few weights": ({**LINE, "weights": [1, 1]}, "expected 3 numbers, found 2"),
    "weight of nothing": ({**LINE, "weights": [1, 0, 1]}, "weights"),
    "weight too large": ({**LINE, "weights": [1, 2**53, 1]}, "weights"),
    "tight": ({**LINE, "tight": [1, 1]}, "ascending"),
    "too many candidates": ({**LINE, "l": 4}, "some value is in no set of 4"),
    "circle looks too far": ({**CIRCLE, "ahead": [2, 3, 4, 8]}, "ahead"),
    "circle uneven without weights": ({**CIRCLE, "ahead": [1, 3, 4, 5]}, "not equally spaced"),
    "circle too crowded": ({**CIRCLE, "l": 3}, "some value is in no set of 3"),
    "size and labels": ({**CLUSTERS, "size": 3}, "exactly one of size and labels"),
    "empty cluster": ({**CLUSTERS, "labels": [0, 0, 2]}, "one at least in each cluster"),
    "too few clusters": ({**CLUSTERS, "l": 3}, "sets of 3 candidates from 2"),
    "full and alike": ({"kind": "clusters", "l": 2, "p53": ONE, "size": 3, "full": [0]}, "full"),
    "full without room": ({"kind": "clusters", "l": 1, "p53": ONE, "size": 2, "weights": [1, 1], "full": [0]}, "room"),
    "smaller neighbor": ({**LISTED, "neighbours": [[1], [0], []]}, "greater codes only"),
    "alone": ({**LISTED, "neighbours": [[1], [], []]}, "some value is in no set"),
    "excluded": ({**LISTED, "excluded": [[1, 0]]}, "ascending codes"),
    "set twice": ({**TABLE, "sets": [[0, 1], [0, 1]]}, "each set once"),
    "set of one": ({**TABLE, "sets": [[0], [1]]}, "sets of 2"),
    "never in a set": ({**TABLE, "sets": [[0, 1]], "weights": [1]}, "some value is in no set"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_document_is_refused(case):
    document, said = WRONG[case]
    with pytest.raises(CampaignError, match=said):
        Sampling.read(document)


def test_every_problem_of_a_document_is_told():
    with pytest.raises(CampaignError) as error:
        Sampling.read({**LINE, "p53": -1, "wide": 1, "order": [7]}, "sampling.income[0]")
    assert len(error.value.problems) >= 3
    assert all(problem.where.startswith("sampling.income[0].") for problem in error.value.problems)


@pytest.mark.parametrize("document", [LINE, CIRCLE, CLUSTERS, LISTED, TABLE])
def test_codes_outside_of_the_domain_are_refused(document):
    sampling = Sampling.read(document)
    assert sampling.draw(0, KEY)
    for code in (-1, sampling.size):
        with pytest.raises(ValueError, match="codes go from 0"):
            sampling.draw(code, KEY)


def test_a_device_needs_neither_numpy_nor_tables():
    look = "import sys, pkgutil, importlib, polyseme.device as d\n"
    look += "for m in pkgutil.iter_modules(d.__path__): importlib.import_module('polyseme.device.' + m.name)\n"
    look += (
        "print([n for n in ('numpy', 'polars', 'pyarrow', 'scipy', 'jsonschema', 'click', 'yaml') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
