"""Tokens: who may use the admin listener. Only hashes are kept.

They are random and long, so a plain SHA-256 is enough: they cannot be tried out.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable

from polyseme.collection.store.base import Credential
from polyseme.errors import CollectionError, nearest

__all__ = ["ROLES", "new_credential", "role_of"]

ROLES = ("designer", "analyst")
"""A designer makes, opens, closes and purges campaigns; an analyst sees counts and releases. A designer may both."""
_TOKEN_BYTES = 32


def new_credential(name: str, role: str) -> tuple[Credential, str]:
    """What the store keeps of a new token, and the token itself, which is shown only this once."""
    if role not in ROLES:
        raise CollectionError(f"no role '{role}'", nearest(role, ROLES))
    if not name.isprintable() or not 0 < len(name.strip()) <= 100:
        raise CollectionError("a token needs a name of at most 100 characters", "such as: anna")
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    return Credential(name, role, _hash(token)), token


def role_of(token: str, credentials: Iterable[Credential]) -> str | None:
    """The role that a token has; None for one that was not issued."""
    given, found = _hash(token), None
    for credential in credentials:
        if hmac.compare_digest(given, credential.hash):
            found = credential.role
    return found


def _hash(token: str) -> bytes:
    return hashlib.sha256(f"polyseme-token\n{token}".encode()).digest()
