"""Invitations, and that each of them gives one token."""

from __future__ import annotations

import itertools
import json
import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from polyseme.collection.credentials import (
    ALPHABET,
    Invited,
    Issuer,
    IssuerKey,
    code_hash,
    hash_lines,
    new_codes,
    read_code,
    read_hashes,
)
from polyseme.collection.gateway import SmallServer
from polyseme.device.ohttp import Response
from polyseme.device.tokens import Blinding, ask_issuer, blind, finalize, from_text, to_text, verify_token
from polyseme.kernel.errors import ChannelError

CAMPAIGN = "A" * 43
PATH = f"/v1/campaigns/{CAMPAIGN}/tokens"
CODES = new_codes(4)
KEY = IssuerKey(rsa.generate_private_key(65_537, 2_048))


def hashes(campaign: str = CAMPAIGN) -> list[bytes]:
    return [found for found in (code_hash(campaign, code) for code in CODES) if found]


@pytest.fixture
def issuer(tmp_path: Path) -> Issuer:
    invited = Invited(tmp_path / "issued.db")
    assert invited.add(hashes()) == len(CODES)
    return Issuer(CAMPAIGN, KEY, invited)


def token_request(issuer: Issuer, code: str, blinding: Blinding) -> Response:
    body = json.dumps({"invitation": code, "blinded": to_text(blinding.blinded)}).encode()
    return issuer.answer("POST", PATH, "application/json", body)


def test_codes_are_fresh_and_readable() -> None:
    codes = new_codes(2_000)
    assert len(set(codes)) == 2_000
    assert all(len(code) == 23 and read_code(code) == code.replace("-", "") for code in codes)
    used = [code[0] for code in codes]
    assert set(used) == set(ALPHABET)


def test_a_code_may_be_typed_in_any_case_and_with_any_gaps() -> None:
    code = CODES[0]
    spellings = [code, code.lower(), code.replace("-", ""), f" {code.replace('-', ' ')} ", f"{code}\n"]
    assert len({code_hash(CAMPAIGN, spelling) for spelling in spellings}) == 1


def test_every_mistyped_character_and_every_exchange_is_noticed() -> None:
    code = read_code(CODES[0]) or ""
    wrong = [code[:at] + other + code[at + 1 :] for at in range(20) for other in ALPHABET if other != code[at]]
    for left, right in itertools.combinations(range(20), 2):
        swapped = list(code)
        swapped[left], swapped[right] = swapped[right], swapped[left]
        wrong += ["".join(swapped)] if code[left] != code[right] else []
    assert len(wrong) > 700
    assert not any(map(read_code, wrong))
    assert not any(map(read_code, ["", code[:-1], code + "2", code[:-1] + "0", "ß" * 10]))
    made = next(one for one in map(read_code, new_codes(500)) if one and "S" in one)
    assert read_code(made.lower()) == made
    assert read_code(made.replace("S", "ſ")) is None


def test_codes_of_two_campaigns_cannot_be_joined() -> None:
    assert not set(hashes()) & set(hashes("B" * 43))


def test_files_of_hashes_do_not_tell_which_code(tmp_path: Path) -> None:
    file = tmp_path / "hashes.txt"
    file.write_text(hash_lines(CAMPAIGN, CODES))
    found = read_hashes(file)
    assert found == sorted(found)
    assert set(found) == set(hashes())
    file.write_text(f"{'0' * 64}\n{CODES[0]}\n")
    with pytest.raises(ChannelError, match="line 2: expected 64 hexadecimal") as caught:
        read_hashes(file)
    assert CODES[0] not in str(caught.value)


def test_an_invitation_gives_one_token(issuer: Issuer) -> None:
    blinding = blind(KEY.public(), CAMPAIGN)
    answer = token_request(issuer, CODES[0], blinding)
    assert answer.status == 200
    token = finalize(KEY.public(), blinding, from_text(json.loads(answer.body)["signature"]))
    assert verify_token(KEY.public(), CAMPAIGN, token)
    assert issuer.invited.counts() == (4, 1)
    assert token_request(issuer, CODES[0].lower(), blind(KEY.public(), CAMPAIGN)).status == 409


def test_a_device_asks_over_the_network(issuer: Issuer) -> None:
    server = SmallServer(issuer.answer, "127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        blinding = blind(KEY.public(), CAMPAIGN)
        token = finalize(KEY.public(), blinding, ask_issuer(server.address, CAMPAIGN, CODES[0], blinding))
        assert verify_token(KEY.public(), CAMPAIGN, token)
        with pytest.raises(ChannelError, match="used for another token"):
            ask_issuer(server.address, CAMPAIGN, CODES[0], blind(KEY.public(), CAMPAIGN))
        with pytest.raises(ChannelError, match="no such invitation"):
            ask_issuer(server.address, CAMPAIGN, new_codes(1)[0], blinding)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    with pytest.raises(ChannelError, match="does not answer"):
        ask_issuer(server.address, CAMPAIGN, CODES[1], blinding)
    with pytest.raises(ChannelError, match="https"):
        ask_issuer("http://issuer.example.org", CAMPAIGN, CODES[1], blinding)


def test_a_lost_answer_is_given_again(issuer: Issuer, tmp_path: Path) -> None:
    blinding = blind(KEY.public(), CAMPAIGN)
    first = token_request(issuer, CODES[0], blinding)
    issuer.invited.close()
    later = Issuer(CAMPAIGN, KEY, Invited(tmp_path / "issued.db"))
    assert later.invited.add(hashes()) == 0
    assert token_request(later, CODES[0], blinding) == first
    assert token_request(later, CODES[0], blind(KEY.public(), CAMPAIGN)).status == 409


def test_who_was_not_invited_gets_nothing(issuer: Issuer) -> None:
    blinding = blind(KEY.public(), CAMPAIGN)
    for code in (new_codes(1)[0], "", "22222", "x" * 5_000, "\0"):
        assert token_request(issuer, code, blinding).status == 401
    assert issuer.invited.counts() == (4, 0)


def test_one_of_many_at_once_gets_the_token(issuer: Issuer, tmp_path: Path) -> None:
    """Two issuers at one file, eight devices with one code."""
    other = Issuer(CAMPAIGN, KEY, Invited(tmp_path / "issued.db"))
    blindings, statuses = [blind(KEY.public(), CAMPAIGN) for _ in range(8)], list[int]()
    ready = threading.Barrier(8)

    def ask(which: Issuer, blinding: Blinding) -> None:
        ready.wait()
        statuses.append(token_request(which, CODES[1], blinding).status)

    threads = [
        threading.Thread(target=ask, args=((issuer, other)[at % 2], blinding)) for at, blinding in enumerate(blindings)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] + [409] * 7


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[]",
        b"null",
        b"{}",
        b'{"invitation": 1, "blinded": ""}',
        b'{"invitation": "", "blinded": ""}',
        b'{"invitation": "", "blinded": "!!"}',
        b'{"invitation": "MARKEDVALUE77", "blinded": "AAAA", "more": 1}',
        b"[" * 8_000,
    ],
)
def test_what_is_no_request_uses_nothing_up(issuer: Issuer, body: bytes) -> None:
    answer = issuer.answer("POST", PATH, "application/json", body)
    assert answer.status == 400
    assert b"MARKEDVALUE77" not in answer.body
    assert issuer.invited.counts() == (4, 0)


def test_a_message_that_cannot_be_signed_uses_nothing_up(issuer: Issuer) -> None:
    body = json.dumps({"invitation": CODES[0], "blinded": to_text(b"\xff" * 256)}).encode()
    assert issuer.answer("POST", PATH, "application/json", body).status == 400
    assert issuer.invited.counts() == (4, 0)


def test_only_tokens_of_its_campaign_are_asked_for_here(issuer: Issuer) -> None:
    assert issuer.answer("GET", PATH, "application/json", b"").status == 405
    assert issuer.answer("POST", PATH, "text/plain", b"").status == 415
    for path in ("/", PATH + "/", PATH.replace("A", "B")):
        assert issuer.answer("POST", path, "application/json", b"").status == 404


def test_what_is_kept_holds_no_code_and_no_message(issuer: Issuer, tmp_path: Path) -> None:
    blinding = blind(KEY.public(), CAMPAIGN)
    token_request(issuer, CODES[0], blinding)
    issuer.invited.close()
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert (code_hash(CAMPAIGN, CODES[0]) or b"none") in kept
    for secret in (CODES[0].encode(), (read_code(CODES[0]) or "").encode(), blinding.blinded, blinding.message[-32:]):
        assert secret not in kept
