"""Plugins, found by the entry points of installed packages, and optional packages (extras).

A registry knows its built-in objects by name. It looks for plugins only for a name that it does not know, or for all
names, and imports a plugin only when that one is wanted: a user of none never waits for any.

- A built-in name always means the built-in object. A plugin that claims one is refused when plugins are looked for.
- A name that two packages claim is refused when it is looked up.
- A plugin that cannot be imported, or is not what its group requires, is an error that names its package.

`pip install polyseme` leaves out what only some users need and what weighs much. Code that needs an extra calls
`require` before it imports anything of it, so that users do not wait for a result that cannot be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Generic, TypeVar

from polyseme.kernel.errors import PluginError, Problem, QuestionError

__all__ = ["EXTRAS", "Registry", "installed", "pip_line", "require"]

EXTRAS = {
    "charts": ("altair", "vl_convert"),
    "collect": ("starlette", "uvicorn", "apsw"),
    "excel": ("fastexcel",),
    "learn": ("sklearn",),
    "pandas": ("pandas",),
    "postgres": ("psycopg",),
    "spark": ("pyspark", "grpc"),
    "stats": ("pyreadstat",),
    "workbench": ("starlette", "uvicorn"),
}
"""The extras of pyproject.toml and the modules that each of them brings."""


def installed(extra: str) -> bool:
    """Whether every module of an extra is there; none of them is imported."""
    return all(find_spec(module) is not None for module in EXTRAS[extra])


def pip_line(extra: str) -> str:
    """What installs an extra; quoted, because brackets mean something to most shells.

    >>> pip_line("charts")
    "pip install 'polyseme[charts]'"
    """
    return f"pip install 'polyseme[{extra}]'"


def require(extra: str, purpose: str) -> None:
    """Raise unless an extra is installed; `purpose` is the subject of the sentence."""
    if not installed(extra):
        raise QuestionError(f"{purpose} needs the extra '{extra}', which is not installed", pip_line(extra))


Thing = TypeVar("Thing")


class Registry(Mapping[str, Thing], Generic[Thing]):
    """Built-in things by name, and those of the plugins of one group of entry points.

    group    the name of the group, such as `polyseme.semantics.distances`
    builtin  what the package itself brings
    kind     the class that a plugin must be an instance of
    flaw     what else is wrong with a plugin of that class, given its name; empty when nothing is
    """

    def __init__(
        self,
        group: str,
        builtin: Mapping[str, Thing],
        kind: type[Thing],
        flaw: Callable[[str, Thing], str] = lambda name, thing: "",
    ) -> None:
        self._group, self._builtin, self._kind, self._flaw = group, dict(builtin), kind, flaw
        self._loaded: dict[str, Thing] = {}

    def __getitem__(self, name: str) -> Thing:
        if name in self._builtin:
            return self._builtin[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(name, self._plugins[name])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._builtin or name in self._plugins

    def __iter__(self) -> Iterator[str]:
        yield from self._builtin
        yield from self._plugins

    def __len__(self) -> int:
        return len(self._builtin) + len(self._plugins)

    @cached_property
    def _plugins(self) -> Mapping[str, tuple[EntryPoint, ...]]:
        """The entry points of the group by name, none of them imported."""
        found: dict[str, tuple[EntryPoint, ...]] = {}
        for entry in sorted(entry_points(group=self._group), key=lambda entry: (entry.name, package_of(entry))):
            # A package that is found twice on the path, as editable and as installed, is one package.
            known = found.get(entry.name, ())
            if package_of(entry) not in map(package_of, known):
                found[entry.name] = (*known, entry)
        taken = [entry for name in found if name in self._builtin for entry in found[name]]
        if taken:
            raise PluginError([self._problem(entry, "has the name of a built-in one", _RENAME) for entry in taken])
        return found

    def _load(self, name: str, entries: tuple[EntryPoint, ...]) -> Thing:
        if len(entries) > 1:
            packages = ", ".join(map(package_of, entries))
            raise PluginError(
                Problem(f"{self._group}.{name}", f"several packages register this name: {packages}", _RENAME)
            )
        (entry,) = entries
        try:
            thing = entry.load()
        except Exception as error:
            what = f"cannot be imported: {type(error).__name__}: {error}"
            raise PluginError(self._problem(entry, what, "update or uninstall the package")) from error
        if not isinstance(thing, self._kind):
            found = f"the class {thing.__name__}" if isinstance(thing, type) else f"a {type(thing).__name__}"
            what = f"is {found}, but an instance of {self._kind.__name__} was expected"
            raise PluginError(self._problem(entry, what, f"see docs/plugins.md; it points to {entry.value}"))
        flaw = self._flaw(name, thing)
        if flaw:
            raise PluginError(self._problem(entry, flaw, f"see docs/plugins.md; it points to {entry.value}"))
        return thing

    def _problem(self, entry: EntryPoint, what: str, hint: str) -> Problem:
        where = f"{self._group}.{entry.name}"
        return Problem(where, f"the plugin '{entry.name}' of the package {package_of(entry)} {what}", hint)


_RENAME = "rename the entry point, or uninstall the package"


def package_of(entry: EntryPoint) -> str:
    """The package that an entry point belongs to, in words."""
    return "(unknown)" if entry.dist is None else f"'{entry.dist.name}' {entry.dist.version}"
