"""One sealed message, against the RFC's example and against another implementation."""

from __future__ import annotations

import pytest
from channel_vectors import rfc
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from polyseme.device import hpke
from polyseme.kernel.errors import ChannelError

VECTOR = rfc("hpke")


def test_seals_as_the_rfc_does() -> None:
    once = X25519PrivateKey.from_private_bytes(VECTOR["once"])
    sealed = hpke.seal(VECTOR["public"], VECTOR["info"], VECTOR["message"], VECTOR["aad"], once)
    assert sealed.encapsulated == VECTOR["encapsulated"]
    assert sealed.ciphertext == VECTOR["ciphertext"]
    for label, secret in VECTOR["exports"]:
        assert sealed.export(label, 32) == secret


def test_opens_as_the_rfc_does() -> None:
    private = X25519PrivateKey.from_private_bytes(VECTOR["private"])
    sealed = VECTOR["encapsulated"], VECTOR["info"], VECTOR["ciphertext"], VECTOR["aad"]
    message, export = hpke.unseal(private, *sealed)
    assert message == VECTOR["message"]
    assert [export(label, 32) for label, _ in VECTOR["exports"]] == [secret for _, secret in VECTOR["exports"]]


def test_agrees_with_another_implementation() -> None:
    other = pytest.importorskip("cryptography.hazmat.primitives.hpke", reason="this cryptography has no HPKE")
    suite = other.Suite(other.KEM.X25519, other.KDF.HKDF_SHA256, other.AEAD.AES_128_GCM)
    private = X25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    for length in (0, 1, 31, 1_500):
        message, info = bytes(range(256)) * 6, bytes(length)
        theirs = suite.encrypt(message, X25519PublicKey.from_public_bytes(public), info)
        assert hpke.unseal(private, theirs[:32], info, theirs[32:])[0] == message
        ours = hpke.seal(public, info, message)
        assert suite.decrypt(ours.encapsulated + ours.ciphertext, private, info) == message


def test_every_message_has_a_key_of_its_own() -> None:
    sealed = [hpke.seal(VECTOR["public"], b"", b"the same") for _ in range(5)]
    assert len({item.encapsulated for item in sealed}) == len({item.ciphertext for item in sealed}) == 5


@pytest.mark.parametrize("place", ["encapsulated", "info", "ciphertext", "aad"])
def test_a_changed_byte_is_noticed(place: str) -> None:
    private = X25519PrivateKey.from_private_bytes(VECTOR["private"])
    parts = {name: VECTOR[name] for name in ("encapsulated", "info", "ciphertext", "aad")}
    parts[place] = parts[place][:-1] + bytes([parts[place][-1] ^ 1])
    with pytest.raises(ChannelError, match="damaged"):
        hpke.unseal(private, **parts)


@pytest.mark.parametrize("public", [b"", bytes(31), bytes(32), b"\1" + bytes(31)], ids=["none", "short", "zero", "one"])
def test_no_key_that_everybody_agrees_on(public: bytes) -> None:
    with pytest.raises(ChannelError, match="X25519"):
        hpke.seal(public, b"", b"")
