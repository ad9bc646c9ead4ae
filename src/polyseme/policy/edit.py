"""Edits of a policy file: one node changes, and every other byte stays.

    edit("policy.yaml", {"attributes.diagnosis.protect.semantic-diversity.l": 4})
    edit("policy.yaml", roles={"ward": "sensitive"}, data="patients.csv")

A place is written as errors write it: `models[0].k-anonymity.k`, with or without `$.` before it. The name of a column
may hold a dot; the longest key that is there is meant, and a key in double quotes is taken as it is.

Where a node begins and ends is known from the marks of the YAML parser, so comments, order, quotes and line ends of the
rest stay. Two kinds of remarks of a draft change too, as long as they are word for word the draft's: those that repeat
a value (`# 3 candidates, no two of the same block`), and the reason of a role that a person has changed.

The new text is read back before it is written: it must say what the old one said, but for the change. A policy that
would no longer be valid is not written, unless it was invalid before.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import yaml

from polyseme.kernel.documents import in_file, kind_of, parse
from polyseme.kernel.errors import PolicyError, Problem, nearest
from polyseme.kernel.files import turn, whole_file
from polyseme.kernel.yaml_schema import NotYaml, compose, load, reference_line
from polyseme.policy import Policy
from polyseme.policy.drafting import ROLE_WORDS, Draft, chosen, remarks
from polyseme.policy.drafting.protection import COMMENTS
from polyseme.policy.drafting.roles import is_reason
from polyseme.schema import Role
from polyseme.tables.io.readers import open_written
from polyseme.tables.io.source import TableOptions
from polyseme.tables.profile import Profile

__all__ = ["Edited", "edit", "edited", "removed", "spelled", "with_role"]

Step = str | int


class Edited(str):
    """The text of a policy after an edit.

    before  the text as it was
    """

    before: str

    @classmethod
    def _of(cls, text: str, before: str) -> Edited:
        made = cls(text)
        made.before = before
        return made

    @cached_property
    def lines(self) -> tuple[int, ...]:
        """The lines that are new or changed, from 1; where lines only went, the one that follows."""
        old, new = self.before.splitlines(), self.splitlines()
        found: set[int] = set()
        for kind, _, _, first, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if kind != "equal":
                found |= set(range(first, max(end, min(first + 1, len(new)))))
        return tuple(sorted(line + 1 for line in found))


def edit(
    policy: str | Path,
    changes: Mapping[str, Any] | None = None,
    roles: Mapping[str, str] | None = None,
    data: Any = None,
    remove: Iterable[str] = (),
    allow_outside: bool = False,
    **written: Unpack[TableOptions],
) -> Edited:
    """Change places of a policy, keep every other byte, and return the new text.

    The file is replaced whole.

    policy   the name of its file, or its text, which is returned changed and written nowhere
    changes  new values by place, such as "attributes.age.hierarchy"; keys that are not there are added
    roles    new roles by column
    data     the table, from which the rest of a column with a new role is drafted
    remove   places that are removed
    """
    if isinstance(policy, str) and "\n" in policy.strip():
        return _changed(policy, Path(), changes or {}, roles or {}, data, tuple(remove), allow_outside, written)
    given = Path(policy)
    if not given.is_file():
        Policy.load(given, allow_outside)  # its own words for what is no policy file
    path = given.resolve()
    with turn(path):
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            raise PolicyError(f"{given}: not UTF-8 text", "save the policy as UTF-8") from None
        try:
            made = _changed(text, path.parent, changes or {}, roles or {}, data, tuple(remove), allow_outside, written)
        except PolicyError as error:
            raise in_file(error, given) from None
        if made != text:
            with whole_file(path, overwrite=True, mode=stat.S_IMODE(path.stat().st_mode)) as partial:
                partial.write_bytes(made.encode("utf-8"))
    return made


def _changed(
    before: str,
    folder: Path,
    changes: Mapping[str, Any],
    roles: Mapping[str, str],
    data: Any,
    remove: Sequence[str],
    allow_outside: bool,
    written: TableOptions,
) -> Edited:
    text = before
    drafted = Draft.of(Profile(open_written(data, **written))) if roles and data is not None else None
    for column, role in roles.items():
        text = with_role(text, column, role, drafted)
    for place, value in changes.items():
        text = edited(text, place, value)
    for place in remove:
        text = removed(text, place)
    broken = _problems(text, folder, allow_outside)
    if broken and not _problems(before, folder, allow_outside):
        raise PolicyError(broken)
    return Edited._of(text, before)


def _problems(text: str, folder: Path, allow_outside: bool) -> tuple[Problem, ...]:
    try:
        Policy.loads(text.removeprefix("\ufeff"), folder, allow_outside)
    except PolicyError as error:
        return error.problems
    return ()


# -- one change of a text ------------------------------------------------------------------------------------------


def edited(text: str, place: str, value: Any) -> str:
    """A policy in which one place has another value, or has one for the first time."""
    new = _plain(value, place)
    return _with_remarks(text, _put(text, place, new))


def removed(text: str, place: str) -> str:
    """A policy without one place."""
    found = _find(text, place)
    if found.missing or not found.trail:
        raise PolicyError(Problem(_shown(place), "there is nothing to remove", "name a place that the policy has"))
    after = _without(found)
    expected = _objects(text)
    parent = _at(expected, found.steps[:-1])
    del parent[_key_in(parent, found.steps[-1])]
    return _with_remarks(text, _checked(after, expected, place))


def _put(text: str, place: str, value: Any) -> str:
    found = _find(text, place)
    if not found.steps and not found.missing:
        raise PolicyError(Problem(_shown(place), "this is the whole policy", "name a place in it"))
    expected = _objects(text)
    if not found.missing:
        parent = _at(expected, found.steps[:-1])
        key = _key_in(parent, found.steps[-1])
        if _same(parent[key], value):
            return text
        parent[key] = value
        return _checked(_replaced(found, spelled(value)), expected, place)
    first, *rest = found.missing
    for step in reversed(rest):
        value = [value] if isinstance(step, int) else {step: value}
    above = _at(expected, found.steps)
    if above is None:
        value = [value] if isinstance(first, int) else {first: value}
        if found.steps:
            parent = _at(expected, found.steps[:-1])
            parent[_key_in(parent, found.steps[-1])] = value
        return _checked(_replaced(found, spelled(value)), expected, place)
    if isinstance(above, list) and isinstance(first, int):
        above.append(value)
    elif isinstance(above, dict) and isinstance(first, str):
        above[first] = value
    else:
        where = _place_of(found.steps)
        raise PolicyError(Problem(where, f"{kind_of(above)} has no part '{first}'", f"change {where} as a whole"))
    return _checked(_added(found, first, value), expected, place)


def _checked(after: str, expected: Any, place: str) -> str:
    """The new text, if it reads back as what was meant."""
    try:
        said = load(after.removeprefix("\ufeff"))
    except NotYaml:
        said = None
    if not _same(said, expected):
        what = "the policy is written in a way that cannot be changed in place here"
        raise PolicyError(Problem(_shown(place), what, "change this place in an editor"))
    return after


def _same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


def _objects(text: str) -> Any:
    return parse(text.removeprefix("\ufeff"))


def _at(document: Any, steps: Sequence[Step]) -> Any:
    for step in steps:
        document = document[_key_in(document, step)]
    return document


def _key_in(container: Any, step: Step) -> Any:
    """The key as the document has it: 2024 for '2024'."""
    if not isinstance(container, Mapping):
        return step
    for key in container:
        if str(key) == step:
            return key
    raise PolicyError(Problem(f"$.{step}", "a key that is written in an unusual way", "write it as text, in quotes"))


# -- where a place is ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Found:
    """A place in a text: the nodes on the way to it, and what is not there yet.

    trail  for each step that is there its key, None in a list, and its value
    """

    text: str
    root: yaml.Node
    steps: tuple[Step, ...]
    trail: tuple[tuple[yaml.Node | None, yaml.Node], ...]
    missing: tuple[Step, ...]

    @property
    def node(self) -> yaml.Node:
        return self.trail[-1][1] if self.trail else self.root

    @property
    def key(self) -> yaml.Node | None:
        return self.trail[-1][0] if self.trail else None

    @property
    def parent(self) -> yaml.Node:
        return self.trail[-2][1] if len(self.trail) > 1 else self.root


def _find(text: str, place: str) -> _Found:
    root = _composed(text)
    rest = place.removeprefix("$")
    steps: list[Step] = []
    trail: list[tuple[yaml.Node | None, yaml.Node]] = []
    missing: list[Step] = []
    node: yaml.Node | None = root
    while rest:
        step, rest = _step(node, rest, place)
        inner = _inner(node, step) if node is not None else None
        if isinstance(node, yaml.SequenceNode) and (not isinstance(step, int) or step > len(node.value)):
            hint = f"one of [0] to [{len(node.value)}]; the last of them adds an element"
            raise PolicyError(Problem(_place_of(steps), f"a list has no part '{step}'", hint))
        if inner is None:
            missing.append(step)
            node = None
        else:
            steps.append(step)
            trail.append(inner)
            node = inner[1]
    if any(step for step in missing[1:] if isinstance(step, int)):
        raise PolicyError(Problem(_shown(place), "a new list begins with [0]"))
    return _Found(text, root, tuple(steps), tuple(trail), tuple(missing))


def _composed(text: str) -> yaml.Node:
    try:
        root = compose(text)
        line = reference_line(text)
    except NotYaml:
        _objects(text)  # its own words
        raise PolicyError("not valid YAML") from None
    if root is None:
        raise PolicyError("the policy is empty", "draft one with: polyseme init DATA")
    if line is not None:
        what = "anchors (&name), aliases (*name) and merged keys (<<) stand for several places at once"
        raise PolicyError(Problem(f"line {line}", what, "write them out, then change the policy"))
    if not isinstance(root, yaml.MappingNode):
        raise PolicyError(Problem("$", "expected a mapping", "attributes: {age: {role: quasi-identifier}}"))
    return root


_INDEX = re.compile(r"\[(\d+)\]")
_QUOTED = re.compile(r'\.?("(?:[^"\\]|\\.)*")')
_WORD = re.compile(r"\.?([^.\[]+)")


def _step(node: yaml.Node | None, rest: str, place: str) -> tuple[Step, str]:
    """The first step of a place, and the rest."""
    index = _INDEX.match(rest)
    plain = rest.removeprefix(".")
    if isinstance(node, yaml.MappingNode):
        keys = sorted((str(key.value) for key, _ in node.value), key=len, reverse=True)
        for key in keys:
            if plain.startswith(key) and plain[len(key) :][:1] in ("", ".", "[") and key:
                return key, plain[len(key) :]
    quoted = _QUOTED.match(rest)
    if quoted:
        try:
            return str(json.loads(quoted[1])), rest[quoted.end() :]
        except ValueError:
            raise PolicyError(Problem(place, "a key in quotes is not closed")) from None
    if index:
        return int(index[1]), rest[index.end() :]
    word = _WORD.match(rest)
    if not word:
        raise PolicyError(Problem(place, "not a place of a policy", "such as attributes.age.role or models[0]"))
    return word[1], rest[word.end() :]


def _inner(node: yaml.Node, step: Step) -> tuple[yaml.Node | None, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if str(key.value) == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return None, node.value[step]
    return None


def _shown(place: str) -> str:
    return place if place.startswith("$") else f"$.{place}"


def _place_of(steps: Sequence[Step]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


# -- how the text changes ------------------------------------------------------------------------------------------


def _is_block(node: yaml.Node) -> bool:
    """Whether a node is a mapping or list on lines of its own, not in brackets."""
    return isinstance(node, yaml.CollectionNode) and not node.flow_style and bool(node.value)


def _last(node: yaml.Node) -> yaml.Node:
    """The node with which the text of another one ends."""
    while _is_block(node):
        inner = node.value[-1]
        node = inner[1] if isinstance(inner, tuple) else inner
    return node


def _is_literal(node: yaml.Node) -> bool:
    """Whether a text stands on lines of its own below `|` or `>`: the line break is part of it."""
    return isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")


def _end(node: yaml.Node) -> int:
    return int(_last(node).end_mark.index)


def _line_start(text: str, position: int) -> int:
    return max(text.rfind(mark, 0, position) for mark in "\n\r") + 1


def _line_end(text: str, position: int) -> int:
    """Where the line ends, before its break."""
    found = re.compile(r"[\r\n]").search(text, position)
    return len(text) if found is None else found.start()


def _after_break(text: str, position: int) -> int:
    return position + (2 if text[position : position + 2] == "\r\n" else 1 if position < len(text) else 0)


def _break(text: str) -> str:
    found = re.search(r"\r\n|\n|\r", text)
    return "\n" if found is None else found[0]


def _whole_lines(text: str, start: int, node: yaml.Node) -> tuple[int, int]:
    """The lines from a position to the end of a node, with the remark behind it."""
    end = _end(node) if _is_literal(_last(node)) else _after_break(text, _line_end(text, _end(node)))
    return _line_start(text, start), end


def _begins_line(text: str, position: int) -> bool:
    return not text[_line_start(text, position) : position].strip(" \ufeff")


def _replaced(found: _Found, new: str) -> str:
    text, node, key = found.text, found.node, found.key
    start, end = int(node.start_mark.index), _end(node)
    tail = _break(text) if _is_literal(_last(node)) else ""
    if _is_block(node) and key is not None and _begins_line(text, start):
        colon = text.index(":", int(key.end_mark.index)) + 1
        first, last = _whole_lines(text, start, node)
        return f"{text[:colon]} {new}{text[colon:first]}{text[last:]}"
    if start == end and not new.startswith(" "):
        return f"{text[:start]} {new}{text[end:]}"
    return f"{text[:start]}{new}{tail}{text[end:]}"


def _added(found: _Found, step: Step, value: Any) -> str:
    """A new entry at the end of a mapping or list."""
    text, node = found.text, found.node
    entry = f"{spelled(step)}: {spelled(value)}" if isinstance(step, str) else spelled(value)
    if not node.value:
        inside = int(node.start_mark.index) + 1
        return f"{text[:inside]}{entry}{text[inside:]}"
    end = _end(node)
    if not _is_block(node):
        inner = node.value[-1]
        end = int((inner[1] if isinstance(inner, tuple) else inner).end_mark.index)
        return f"{text[:end]}, {entry}{text[end:]}"
    inner = node.value[0]
    column = (inner[0] if isinstance(inner, tuple) else node).start_mark.column
    dash = "" if isinstance(step, str) else "- "
    return _with_lines(text, node, [f"{' ' * column}{dash}{entry}"])


def _with_lines(text: str, node: yaml.Node, lines: Sequence[str]) -> str:
    """Lines below the last one of a node."""
    mark = _break(text)
    if _is_literal(_last(node)):
        at = _end(node)
        before = "" if at == 0 or text[at - 1] in "\r\n" else mark
        return text[:at] + before + "".join(f"{line}{mark}" for line in lines) + text[at:]
    at = _line_end(text, _end(node))
    return text[:at] + "".join(f"{mark}{line}" for line in lines) + text[at:]


def _without(found: _Found) -> str:
    text, node, parent = found.text, found.node, found.parent
    entries = [(key, value) if isinstance(parent, yaml.MappingNode) else (None, key) for key, value in _pairs(parent)]
    place = next(index for index, entry in enumerate(entries) if entry[1] is node)
    if len(entries) == 1:
        above = _Found(text, found.root, found.steps[:-1], found.trail[:-1], ())
        return _replaced(above, "{}" if isinstance(parent, yaml.MappingNode) else "[]")
    starts = [int((value if key is None else key).start_mark.index) for key, value in entries]
    if not _is_block(parent):
        if place:
            before = int(entries[place - 1][1].end_mark.index)
            return text[:before] + text[int(node.end_mark.index) :]
        return text[: starts[0]] + text[starts[1] :]
    start = starts[place]
    if isinstance(parent, yaml.SequenceNode):
        start = _dash(text, parent, starts[place])
    if not _begins_line(text, start):  # the first key behind the dash of a list
        return text[:start] + text[starts[place + 1] :]
    first, last = _whole_lines(text, start, node)
    return text[:first] + text[last:]


def _pairs(parent: yaml.Node) -> list[tuple[Any, Any]]:
    return parent.value if isinstance(parent, yaml.MappingNode) else [(value, None) for value in parent.value]


def _dash(text: str, parent: yaml.Node, start: int) -> int:
    """The dash before an element of a list: the last one in the list's column."""
    column, position = int(parent.start_mark.column), start
    while position > 0:
        line = _line_start(text, position)
        if text[line + column : line + column + 1] == "-" and _begins_line(text, line + column):
            return line + column
        position = line - 1
    return start


# -- how a value is written ----------------------------------------------------------------------------------------

_SIMPLE = re.compile(r"[^\W\d][\w./+-]*(?: [\w./+()-]+)*")
_WORDS_QUOTED = frozenset({"yes", "no", "true", "false", "null", "on", "off", "y", "n"})
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def _plain(value: Any, place: str) -> Any:
    """A value as the objects that YAML gives; what no policy can hold is refused."""
    if isinstance(value, Mapping):
        return {_plain(key, place): _plain(inner, place) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, place) for inner in value]
    if isinstance(value, dt.date):
        return value.isoformat()
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise PolicyError(Problem(_shown(place), "not text that a file can hold")) from None
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    raise PolicyError(Problem(_shown(place), f"a policy cannot hold {type(value).__name__}"))


def spelled(value: Any) -> str:
    """A value on one line, which reads as the same value wherever it stands.

    >>> spelled({"learner": {"success": 0.4}}), spelled(["no", "C18: x", 10])
    ('{learner: {success: 0.4}}', '["no", "C18: x", 10]')
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{spelled(key)}: {spelled(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(spelled, value)) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    if isinstance(value, int | float):
        return repr(value)
    if _SIMPLE.fullmatch(value) and value.lower() not in _WORDS_QUOTED and load(value) == value:
        return str(value)
    escaped = json.dumps(value, ensure_ascii=False)
    return _UNWRITABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", escaped)


# -- remarks of a draft --------------------------------------------------------------------------------------------


def _with_remarks(before: str, after: str) -> str:
    """A text in which the draft's remarks say what the policy says now."""
    if before == after:
        return after
    old, new = remarks(_objects(before)), remarks(_objects(after))
    for place, told in old.items():
        now = new.get(place, ())
        if now == told or (not now and len(place) < 2):
            continue
        if len(place) > 1:
            after = _beside(after, place, told[0].__eq__, now[0] if now else None)
        else:
            after = _lines_instead(after, told, now)
    return after


def _lines_instead(text: str, old: Sequence[str], new: Sequence[str]) -> str:
    """A text in which some whole lines are others, where they stand there word for word."""
    lines = re.split(r"(\r\n|\n|\r)", text)
    said, marks = lines[::2], lines[1::2]
    places = [start for start in range(len(said)) if tuple(said[start : start + len(old)]) == tuple(old)]
    if len(places) != 1:
        return text
    start, mark = places[0], _break(text)
    end = start + len(old)
    ends = [*marks, ""]
    kept = [f"{line}{end_of}" for line, end_of in zip(said, ends, strict=True)]
    return "".join([*kept[:start], *(f"{line}{mark}" for line in new), *kept[end:]])


_BESIDE = re.compile(r"([ \t]+)#[ \t]?([^\r\n]*)")


def _beside(text: str, place: Sequence[str], is_old: Callable[[str], bool], new: str | None) -> str:
    """A text with another remark behind the value of a place; None removes it."""
    root = compose(text)
    node: yaml.Node | None = root
    for step in place:
        inner = None if node is None else _inner(node, step)
        node = None if inner is None else inner[1]
    if node is None or _is_literal(_last(node)):
        return text
    found = _BESIDE.match(text, _end(node))
    if found is None or not is_old(found[2].rstrip()):
        return text
    return text[: found.start()] + (f"{found[1]}# {new}" if new else "") + text[found.end() :]


# -- roles ---------------------------------------------------------------------------------------------------------

_DRAFTED = ("type", "missing", "domain", "bins", "periods", "distance", "protect", "hierarchy", "round", "trim")
"""What a draft says of a column beside its role."""
_OF_SECRETS = ("domain", "bins", "periods", "distance", "protect", "prior", "reference", "missing", "shared-by")
_CHOSEN = re.compile(re.escape(chosen("\0")).replace("\0", r"(\S+)"))


def with_role(text: str, column: str, role: str, drafted: Draft | None = None) -> str:
    """A policy in which a column has another role.

    drafted  says what else stands there for the new role. Without it what does not go with the role is removed
    """
    if role not in ROLE_WORDS:
        raise PolicyError(Problem("role", f"no role '{role}'", nearest(role, ROLE_WORDS)))
    document = _objects(text)
    attributes = document.get("attributes") if isinstance(document, Mapping) else None
    names = {str(name): entry for name, entry in attributes.items()} if isinstance(attributes, Mapping) else {}
    place = f"attributes.{json.dumps(column, ensure_ascii=False)}"
    entry = names.get(column)
    lines = None if drafted is None else drafted.lines(column, role)
    if not isinstance(entry, Mapping):
        if names and drafted is None:
            hint = f"{nearest(column, names)} A new column needs its table: --data TABLE"
            raise PolicyError(Problem(f"$.attributes.{column}", "the policy has no such column", hint))
        return edited(text, place, _drafted_entry(lines) if lines else {"role": role})
    before, told = entry.get("role"), _role_remark(lines)
    if before == role:
        return text
    node = _find(text, place).node
    if lines is not None and _is_block(node):
        text = _redrafted(text, place, entry, lines)
    else:
        text = _adjusted(text, place, entry, role, _drafted_entry(lines) if lines else None)
    text = _put(text, f"{place}.role", role)
    return _beside(
        text,
        ("attributes", column, "role"),
        lambda remark: is_reason(remark) or _CHOSEN.fullmatch(remark) is not None,
        told or _choice_told(text, column, str(before), role),
    )


def _role_remark(lines: Sequence[str] | None) -> str | None:
    return None if lines is None else lines[1].partition("   # ")[2]


def _choice_told(text: str, column: str, before: str, role: str) -> str | None:
    """What stands beside a chosen role without a table; the draft's role stays known."""
    inner = _find(text, f"attributes.{json.dumps(column, ensure_ascii=False)}.role")
    remark = _BESIDE.match(text, _end(inner.node))
    known = _CHOSEN.fullmatch(remark[2].rstrip()) if remark else None
    said = known[1] if known else before
    return None if said == role else chosen(said)


def _drafted_entry(lines: Sequence[str]) -> dict[str, Any]:
    (entry,) = load("\n".join(lines)).values()
    return dict(entry)


def _adjusted(text: str, place: str, entry: Mapping[str, Any], role: str, new: Mapping[str, Any] | None) -> str:
    """An entry key by key: what does not fit the role is removed, what is drafted is added."""
    for key in _obsolete(entry, role) if new is None else [key for key in _DRAFTED if key in entry]:
        text = _taken_out(text, f"{place}.{key}")
    for key, value in (new or {}).items():
        if key != "role":
            text = _put(text, f"{place}.{key}", value)
    return text


def _obsolete(entry: Mapping[str, Any], role: str) -> list[str]:
    """Keys that say nothing of a column with this role, or are refused."""
    if role == "identifier":
        return [key for key in entry if key != "role"]
    if role == "weight":
        return [key for key in entry if key not in ("role", "type", "round", "trim")]
    if Role(role).is_secret:
        return [key for key in ("hierarchy", "round", "trim") if key in entry]
    return [key for key in (*_OF_SECRETS, "round", "trim") if key in entry]


def _taken_out(text: str, place: str) -> str:
    return _without(_find(text, place))


def _redrafted(text: str, place: str, entry: Mapping[str, Any], lines: Sequence[str]) -> str:
    """An entry in block style, with the draft's lines in place of those of the old role."""
    text = _without_comments(text, place)
    new = _drafted_entry(lines)
    gone = {key for key in _DRAFTED if key in entry} | set(_obsolete(entry, str(new["role"])))
    for key in sorted(gone):
        text = _taken_out(text, f"{place}.{key}")
    found = _find(text, place)
    if not _is_block(found.node):  # only what is drafted stood there
        return _adjusted(text, place, {}, str(new["role"]), new)
    role = _find(text, f"{place}.role")
    indent = " " * found.node.value[0][0].start_mark.column
    drafted = [f"{indent}{line[4:]}" for line in lines[2:]]
    return _with_lines(text, role.node, drafted) if drafted else text


def _without_comments(text: str, place: str) -> str:
    """A text without the draft's lines of remarks about values of a secret, within one entry."""
    node = _find(text, place).node
    first, last = _line_start(text, int(node.start_mark.index)), int(node.end_mark.index)
    parts = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text[first:last])
    return text[:first] + "".join(part for part in parts if part.strip() not in COMMENTS) + text[last:]
