"""A detached signature of a campaign document: Ed25519 over its exact bytes.

The id in a link already pins the document. A signature says who stands behind it, to people who know the public key.
"""

from __future__ import annotations

import base64
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from polyseme.errors import CampaignError

__all__ = ["read_private_key", "sign", "signature_holds"]

_MAKE = "make one with: openssl genpkey -algorithm ed25519 -out key.pem"
_CONTEXT = b"polyseme-campaign-1 signature\n"
"""Comes before the bytes, so that the signature is of nothing else."""


def sign(data: bytes, key: Ed25519PrivateKey) -> str:
    """The signature of a document, in base64url."""
    return base64.urlsafe_b64encode(key.sign(_CONTEXT + data)).rstrip(b"=").decode("ascii")


def signature_holds(data: bytes, signature: str, key: Ed25519PublicKey) -> bool:
    """Whether the owner of a key signed these bytes."""
    try:
        key.verify(base64.urlsafe_b64decode(signature.strip() + "=="), _CONTEXT + data)
    except (InvalidSignature, ValueError):
        return False
    return True


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """An Ed25519 key in PEM, without a password."""
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise CampaignError(f"{path}: not a private key in PEM without a password", _MAKE) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise CampaignError(f"{path}: expected an Ed25519 key", _MAKE)
    return key
