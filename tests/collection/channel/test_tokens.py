"""Blind tokens: the RFC's example, and that a token is good for one campaign and cannot be traced to a person."""

from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path

import pytest
from channel_vectors import rfc
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from polyseme.collection.credentials import IssuerKey, new_issuer_key, read_issuer_key
from polyseme.device import tokens
from polyseme.device.tokens import Blinding, blind, finalize, from_text, report_id, to_text, verify_token
from polyseme.kernel.errors import ChannelError

EXAMPLE = rfc("blind")
CAMPAIGN, OTHER = "A" * 43, "B" * 43


def example_key() -> IssuerKey:
    p, q = (int.from_bytes(EXAMPLE[name], "big") for name in ("p", "q"))
    e = 65_537
    d = pow(e, -1, (p - 1) * (q - 1))
    shares = rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q)
    return IssuerKey(rsa.RSAPrivateNumbers(p, q, d, *shares, rsa.RSAPublicNumbers(e, p * q)).private_key())


@pytest.fixture(scope="module")
def issuer() -> IssuerKey:
    return IssuerKey(rsa.generate_private_key(65_537, 2_048))


def issued(issuer: IssuerKey, campaign: str = CAMPAIGN) -> tuple[Blinding, bytes]:
    blinding = blind(issuer.public(), campaign)
    return blinding, finalize(issuer.public(), blinding, issuer.signed(blinding.blinded))


def test_the_example_of_the_rfc() -> None:
    key = example_key()
    public = key.private.public_key()
    n = public.public_numbers().n
    encoded = tokens.emsa_pss(EXAMPLE["message"], EXAMPLE["salt"], n.bit_length() - 1)
    assert encoded == EXAMPLE["encoded"]
    inverse = int.from_bytes(EXAMPLE["inverse"], "big")
    blinding = tokens.blind_message(public, EXAMPLE["message"], EXAMPLE["salt"], pow(inverse, -1, n))
    assert blinding.blinded == EXAMPLE["blinded"]
    assert blinding.inverse == inverse
    assert key.signed(blinding.blinded) == EXAMPLE["blind_signature"]
    token = finalize(key.public(), blinding, EXAMPLE["blind_signature"])
    assert token == EXAMPLE["message"][-32:] + EXAMPLE["signature"]


@pytest.mark.parametrize("bits", [2_047, 2_048, 2_049, 2_055])
def test_any_number_of_bits_is_encoded(bits: int) -> None:
    encoded = tokens.emsa_pss(b"message", bytes(48), bits)
    assert len(encoded) == -(-bits // 8)
    assert int.from_bytes(encoded, "big").bit_length() <= bits


def test_a_token_gives_the_id_of_its_report(issuer: IssuerKey) -> None:
    _, token = issued(issuer)
    assert verify_token(issuer.public(), CAMPAIGN, token) == report_id(token) == hashlib.sha256(token).digest()[:16]
    assert len(to_text(token)) == 384


def test_the_same_message_is_signed_alike(issuer: IssuerKey) -> None:
    blinded = blind(issuer.public(), CAMPAIGN).blinded
    assert issuer.signed(blinded) == issuer.signed(blinded)


def test_a_token_is_for_one_campaign_and_one_key(issuer: IssuerKey) -> None:
    _, token = issued(issuer)
    assert verify_token(issuer.public(), OTHER, token) is None
    assert verify_token(example_key().public(), CAMPAIGN, token) is None


def test_a_token_can_be_written_in_one_way_only(issuer: IssuerKey) -> None:
    """Another way to write a good token would be another report."""
    _, token = issued(issuer)
    n = issuer.private.public_key().public_numbers().n
    signature = int.from_bytes(token[32:], "big")
    others = [
        token + b"\0",
        token[:-1],
        b"\0" + token,
        b"",
        token[:32] + bytes(256),
        token[:32] + n.to_bytes(256, "big"),
    ]
    if signature + n < 1 << 2_048:
        others.append(token[:32] + (signature + n).to_bytes(256, "big"))
    others.append(token[:32] + (n - signature).to_bytes(256, "big"))
    others += [token[:at] + bytes([token[at] ^ 1]) + token[at + 1 :] for at in range(0, len(token), 17)]
    assert [verify_token(issuer.public(), CAMPAIGN, other) for other in others] == [None] * len(others)
    text = to_text(token)
    for other in (text + "=", text + "\n", " " + text, text.replace(text[5], "+"), "é"):
        with pytest.raises(ChannelError, match="base64url"):
            from_text(other)


def test_base64url_has_one_last_character() -> None:
    assert from_text("AA") == b"\0"
    with pytest.raises(ChannelError):
        from_text("AB")


def test_every_token_could_have_come_from_every_request(issuer: IssuerKey) -> None:
    """Perfect blinding: whatever the issuer signed, there is a factor that makes it a request for any given token."""
    numbers = issuer.private.private_numbers()
    n, d = numbers.public_numbers.n, numbers.d
    seen, made = zip(*(issued(issuer) for _ in range(3)), strict=True)
    for blinding in seen:
        for token in made:
            encoded = pow(int.from_bytes(token[32:], "big"), 65_537, n)
            factor = pow(int.from_bytes(blinding.blinded, "big") * pow(encoded, -1, n), d, n)
            assert encoded * pow(factor, 65_537, n) % n == int.from_bytes(blinding.blinded, "big")
            signature = int.from_bytes(issuer.signed(blinding.blinded), "big") * pow(factor, -1, n) % n
            assert signature == int.from_bytes(token[32:], "big")


def test_blinded_messages_look_like_any_numbers() -> None:
    """300 of one message are even over the numbers below n: every tenth holds 30 within 4 deviations of 5.2."""
    public = example_key().private.public_key()
    n = public.public_numbers().n
    message = tokens.token_message(CAMPAIGN, bytes(32))
    factors = (int.from_bytes(hashlib.shake_256(f"factor {at}".encode()).digest(512), "big") % n for at in range(300))
    blinded = (tokens.blind_message(public, message, bytes(48), factor).blinded for factor in factors)
    tenths = [int.from_bytes(one, "big") * 10 // n for one in blinded]
    assert all(abs(tenths.count(tenth) - 30) < 21 for tenth in range(10))


def test_a_wrong_signature_is_no_token(issuer: IssuerKey) -> None:
    blinding = blind(issuer.public(), CAMPAIGN)
    other = issuer.signed(blind(issuer.public(), CAMPAIGN).blinded)
    for signature in (other, bytes(256), blinding.blinded):
        with pytest.raises(ChannelError, match="does not fit the key"):
            finalize(issuer.public(), blinding, signature)
    with pytest.raises(ChannelError, match="255 bytes, expected 256"):
        finalize(issuer.public(), blinding, other[1:])


def test_a_blinding_survives_being_stored(issuer: IssuerKey) -> None:
    blinding = blind(issuer.public(), CAMPAIGN)
    again = Blinding.read(json.loads(json.dumps(blinding.stored())))
    assert again == blinding
    token = finalize(issuer.public(), again, issuer.signed(blinding.blinded))
    assert verify_token(issuer.public(), CAMPAIGN, token)
    assert str(blinding.inverse) not in repr(blinding)
    assert repr(blinding.message) not in repr(blinding)


def test_what_is_no_blinded_message_is_not_signed(issuer: IssuerKey) -> None:
    n = issuer.private.public_key().public_numbers().n
    for blinded in (b"", bytes(256), bytes(255), n.to_bytes(256, "big"), b"\xff" * 256, bytes(257)):
        with pytest.raises(ChannelError, match="blinded message"):
            issuer.signed(blinded)


def test_a_wrong_half_never_leaves(issuer: IssuerKey, monkeypatch: pytest.MonkeyPatch) -> None:
    from polyseme.collection import credentials as room
    from polyseme.kernel.errors import InternalError

    right = room._power
    monkeypatch.setattr(room, "_power", lambda numbers, base: right(numbers, base) + numbers.p)
    with pytest.raises(InternalError, match="withheld"):
        issuer.signed(blind(issuer.public(), CAMPAIGN).blinded)


def test_the_power_never_sees_what_was_sent(issuer: IssuerKey, monkeypatch: pytest.MonkeyPatch) -> None:
    from polyseme.collection import credentials as room

    right, seen = room._power, list[int]()
    monkeypatch.setattr(room, "_power", lambda numbers, base: seen.append(base) or right(numbers, base))
    blinded = blind(issuer.public(), CAMPAIGN).blinded
    for _ in range(4):
        issuer.signed(blinded)
    assert len({*seen, int.from_bytes(blinded, "big")}) == 5


def test_only_keys_that_fit() -> None:
    short = rsa.generate_private_key(65_537, 1_024).public_key()  # noqa: S505 - what is refused
    for public in (short, ec.generate_private_key(ec.SECP256R1()).public_key()):
        with pytest.raises(ChannelError, match="issuer's key"):
            blind(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo), CAMPAIGN)
    with pytest.raises(ChannelError, match="issuer's key"):
        verify_token(b"none", CAMPAIGN, bytes(288))


def test_the_key_is_kept_in_a_file_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "issuer.pem"
    key = new_issuer_key(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_issuer_key(file).public() == key.public()
    assert repr(key) == "IssuerKey()"
    with pytest.raises(ChannelError, match="already exists"):
        new_issuer_key(file)
    other = tmp_path / "other.pem"
    other.write_bytes(
        ed25519.Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    other.chmod(0o600)
    with pytest.raises(ChannelError, match="expected an RSA private key"):
        read_issuer_key(other)
