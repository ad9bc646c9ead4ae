from __future__ import annotations

import importlib

import polyseme


def test_the_public_namespace_is_sorted_complete_and_resolves() -> None:
    assert polyseme.__all__ == sorted(polyseme.__all__)
    assert set(polyseme.__all__) == set(polyseme._HOMES)
    for name in polyseme.__all__:
        assert getattr(polyseme, name) is not None
    assert set(polyseme.__all__) <= set(dir(polyseme))


def test_every_module_imports() -> None:
    for name in ("pipeline", "planning", "release", "verification", "questions", "auditing", "reporting"):
        importlib.import_module(f"polyseme.{name}")
