"""The client in JavaScript refuses what a device must not answer to."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
from copy import deepcopy
from pathlib import Path

import pytest
from survey import POLICY, questions
from test_campaigns import wrong_documents
from test_device_drawing import WRONG

from polyseme import web
from polyseme.collection.campaigns import make_campaign
from polyseme.device.campaign import compact
from polyseme.policy import Policy

HERE = Path(__file__).parent
NODE = shutil.which("node")
pytestmark = [pytest.mark.node, pytest.mark.skipif(NODE is None, reason="Node is not installed")]

CODES = {"sex": 1, "region": 2, "age": 2, "income": 2, "disease": 0}
HARMLESS = {
    *("l is a fraction", "too likely", "unknown field", "size and labels"),
    *("set twice", "smaller neighbor", "full and alike"),
}
"""Sampling documents that JSON in JavaScript cannot tell from right ones, or from which the same sets are drawn."""
UNREAD = {
    *("more", "models", "wave", "language twice", "unknown field", "relay", "gateway", "issuer"),
    *("no question text", "labels", "no purpose", "no contact"),
}
"""Parts of a campaign document that the client does not act on, or that the modules for relays and tokens read."""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    made = make_campaign(Policy.loads(POLICY), questions()).campaign
    document = json.loads(made.data)

    def entry(changed, **more):
        return {"document": compact(changed).decode(), "codes": CODES, **more}

    broken = deepcopy(document)
    broken["promises"]["income"]["posterior"] = 0.33
    issuer = {"address": "https://issuer.example", "key": "AAAA"}
    blind = make_campaign(Policy.loads(POLICY), questions(tokens="blind-rsa", issuer=issuer)).campaign
    token = base64.urlsafe_b64encode(bytes(range(250, 256)) * 50).rstrip(b"=").decode()
    campaigns = {
        "right": entry(document, id=made.id),
        "changed": entry({**document, "name": "other"}, id=made.id),
        "broken promise": entry(broken),
        "impossible": {**entry(document), "codes": {**CODES, "disease": 2}},
        "no answer": {**entry(document), "codes": {"sex": 1}},
        "out of range": {**entry(document), "codes": {**CODES, "income": 9}},
        "blind": {**entry(json.loads(blind.data)), "own": {"token": token}},
        "no token": entry(json.loads(blind.data)),
        "damaged": {"document": "{", "codes": CODES},
        **{name: entry(changed) for name, changed in wrong_documents(document).items() if name not in UNREAD},
    }
    sampling = {name: given for name, (given, _) in WRONG.items() if name not in HARMLESS}
    file = tmp_path_factory.mktemp("refusals") / "cases.json"
    file.write_text(json.dumps({"campaigns": campaigns, "sampling": sampling}))
    folder = Path(web.__file__).parent / "client"
    command = [str(NODE), str(HERE / "check_refusals.mjs"), str(folder), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return json.loads(done.stdout)


def test_the_right_campaign_is_answered(outcome):
    assert outcome["campaign right"] == ""
    assert len(outcome["id right"]) == 22


def test_every_wrong_document_is_refused(outcome):
    accepted = [name for name, said in outcome.items() if not said and name not in ("campaign right", "campaign blind")]
    assert not accepted, str(accepted)
    assert len(outcome) > 50


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("changed", "not the one that the link names"),
        ("broken promise", "0.33 is promised, but a set can give 0.333333"),
        ("impossible", "impossible together with the other answers"),
        ("no token", "this campaign wants blind-rsa"),
    ],
)
def test_the_client_says_why(outcome, name, said):
    assert said in outcome[f"campaign {name}"]
    assert outcome[f"campaign {name}"].startswith("CampaignError")


def test_the_id_of_a_blind_token_is_its_hash(outcome):
    digest = hashlib.sha256(bytes(range(250, 256)) * 50).digest()[:16]
    assert outcome["id blind"] == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
