from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path

import polyseme


def test_the_public_namespace_is_sorted_complete_and_resolves() -> None:
    assert polyseme.__all__ == sorted(polyseme.__all__)
    assert set(polyseme.__all__) == set(polyseme._HOMES)
    for name in polyseme.__all__:
        assert getattr(polyseme, name) is not None
    assert set(polyseme.__all__) <= set(dir(polyseme))


def test_type_checkers_see_the_names_that_there_are() -> None:
    tree = ast.parse(Path(polyseme.__file__).read_text())
    (checked,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    seen = {(alias.name, alias.asname): node.module for node in imports for alias in node.names}
    assert seen == {(name, name): f"polyseme.{home}" for name, home in polyseme._HOMES.items()}


def test_every_module_imports() -> None:
    for module in pkgutil.walk_packages(polyseme.__path__, "polyseme."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
