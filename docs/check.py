"""Checks of the documentation: links, generated pages, purposes, words that are refused, and its length."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
ANCHOR = re.compile(r"\[[^\]]*\]\(([^)#\s]*)#([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.M)
PURPOSE = re.compile(r"# .+\n\n\*(Tutorial|How-to|Reference|Explanation|Decision): ")
REFUSED = re.compile(r"\b(?:somebody|nobody|whoever|anew|beforehand)\b", re.I)
"""Words that name no actor, or that no colleague would say."""
BRITISH = re.compile(
    r"\b\w*(?:behaviour|colour|neighbour|labelled(?!by)|learnt|judgement|[mn]imis[ei]|recognis[ei])\w*", re.I
)
"""Spellings that are American elsewhere."""
KEPT = {"learnt", "neighbours", "recognise"}
"""The name of a study, a key of campaign documents, and a name that plugins may import."""
SENTENCE, FIRST_LINE, README_LINES = 40, 90, 120
"""Words of a sentence, characters of a docstring's first line, lines of the README: at most."""
BUDGET = 60_000
"""Words of all pages below `docs/`: what is added has to replace something."""


def pages() -> list[Path]:
    top = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG", "SECURITY", "ARTIFACT")]
    return [*top, *sorted((ROOT / "docs").rglob("*.md"))]


def broken_links() -> list[str]:
    broken = []
    for page in pages():
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
        targets = [target for target in LINK.findall(text) if "://" not in target]
        broken += [f"{page.relative_to(ROOT)}: {target}" for target in targets if not (page.parent / target).exists()]
    return broken


def broken_anchors() -> list[str]:
    """Links to headings that are not there."""
    broken = []
    for page in pages():
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
        for target, anchor in ANCHOR.findall(text):
            there = page.parent / target if target else page
            if "://" not in target and there.suffix == ".md" and there.exists() and anchor not in _anchors(there):
                broken.append(f"{page.relative_to(ROOT)}: {target}#{anchor}")
    return broken


def _anchors(page: Path) -> set[str]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in HEADING.findall(text))
    made = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in plain}
    return made | set(re.findall(r'<a id="([^"]+)">', text))


def orphans() -> list[str]:
    """Pages that no other page links to."""
    linked = set()
    for page in pages():
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            if "://" not in target:
                path = (page.parent / target).resolve()
                linked.update([path] if path.suffix == ".md" else path.glob("*.md") if path.is_dir() else [])
    return [
        str(page.relative_to(ROOT)) for page in pages() if page.resolve() not in linked and page.name != "README.md"
    ]


def refused_words(page: Path, text: str) -> list[str]:
    """Words that documentation does without, with their lines."""
    lines = enumerate(text.splitlines(), start=1)
    found = [(number, word) for number, line in lines for word in REFUSED.findall(line)]
    return [f"{page.relative_to(ROOT)}:{number}: '{word}': name the actor, or say it plainly" for number, word in found]


def without_purpose(page: Path, text: str) -> list[str]:
    """A page whose first line does not say what it is and what readers get."""
    below = page.suffix == ".md" and page.parent != ROOT and page.name != "README.md"
    said = not below or PURPOSE.match(text)
    return [] if said else [f"{page.relative_to(ROOT)}: begin with *How-to: ...*, or another of {PURPOSE.pattern}"]


def british(text: str) -> list[str]:
    """Words of a text that are not spelled the American way."""
    return [word for word in BRITISH.findall(text) if word not in KEPT]


def long_sentences(text: str) -> list[str]:
    """Sentences with too many words, outside of code, tables and headings."""
    plain = re.sub(r"```.*?```|^(?:    |[|#]).*$", "\n\n", text, flags=re.S | re.M)
    plain = re.sub(r"`[^`]*`", "code", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain))
    blocks = (" ".join(block.split()) for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*] |\d+\. ))", plain))
    parts = (part for block in blocks for part in re.split(r"(?<=[.!?:;])\s", block))
    return [part for part in parts if len(re.findall(r"\S*\w\S*", part)) > SENTENCE]


def long_first_lines(source: str) -> list[str]:
    """First lines of docstrings, private ones too, that are longer than allowed."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    texts = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    return [first for text in texts if len(first := text.partition("\n")[0]) > FIRST_LINE]


def style() -> list[str]:
    """What pages and modules have that `long_sentences`, `british` and `long_first_lines` refuse."""
    found = []
    for page in [page for page in pages() if page.name not in {"CHANGELOG.md", *MADE}]:
        text, name = page.read_text(encoding="utf-8"), page.relative_to(ROOT)
        found += [f"{name}: sentence of more than {SENTENCE} words: {part[:60]}" for part in long_sentences(text)]
        found += [f"{name}: '{word}' is not American" for word in british(text) if "reproduc" not in page.name]
    for module in sorted((ROOT / "src").rglob("*.py")):
        text, name = module.read_text(encoding="utf-8"), module.relative_to(ROOT)
        found += [f"{name}: first line of a docstring is too long: {first}" for first in long_first_lines(text)]
        found += [f"{name}: '{word}' is not American" for word in british(text)]
    lines = (ROOT / "README.md").read_text(encoding="utf-8").count("\n")
    return found + ([f"README.md has {lines} lines, at most {README_LINES}"] if lines > README_LINES else [])


def too_long() -> list[str]:
    """Whether all pages together have more words than readers can be asked for."""
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in (ROOT / "docs").rglob("*.md"))
    return [f"docs/ has {words:,} words, and at most {BUDGET:,} are allowed"] if words > BUDGET else []


def commands_page() -> str:
    """The help of every command, as one page."""
    import click

    from polyseme.cli import COMMANDS, cli

    parts = [
        "# The commands",
        "",
        "*Reference: the help of every command, written by `python docs/check.py --write`.*",
        "",
    ]
    root = click.Context(cli, info_name="polyseme")
    common = {option.name: option for option in _common().params}
    context = click.Context(_common(), info_name="VERB", max_content_width=100, terminal_width=100)
    options = context.get_help().partition("Options:\n")[2]
    parts += ["The options below are the same wherever a command has them.", "", "```text", options, "```", ""]
    for name in COMMANDS:
        parts += _help(cli.get_command(root, name), root, name, common)
    return "\n".join(parts).rstrip() + "\n"


def _common() -> Any:
    """A command with the options that many commands have, and nothing else."""
    import click

    from polyseme.cli import console

    made = console.json_option(console.force_option(console.explain_option(lambda: None)))
    return click.command("VERB")(
        console.text_table_options(console.show_values_option(console.allow_outside_option(made)))
    )


_HELP = re.compile(r"\n  (-h, )?--help +Show this message and exit\.")


def _help(command, parent, name: str, common: dict[str, Any]) -> list[str]:
    import click

    context = click.Context(command, info_name=name, parent=parent, max_content_width=100, terminal_width=100)
    alike = [one for one in command.params if getattr(one, "help", "") == getattr(common.get(one.name), "help", None)]
    for option in alike:
        option.hidden = True
    text = _HELP.sub("", command.get_help(context)).replace("\n\nOptions:\n\n", "\n\n").removesuffix("\n\nOptions:")
    for option in alike:
        option.hidden = False
    parts = [f"## {context.command_path}", "", "```text", text, "```", ""]
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            below = command.get_command(context, inner)
            parts += _help(below, context, inner, common)
    return parts


def _is_error(thing: Any) -> bool:
    return inspect.isclass(thing) and issubclass(thing, Exception)


PARTS = {
    "Verbs": lambda thing: not inspect.isclass(thing),
    "Nouns": lambda thing: inspect.isclass(thing) and not _is_error(thing),
    "Errors and warnings": _is_error,
}
"""The chapters of the page of Python, and what each takes."""


def python_page() -> str:
    """Every public name: how it is called, and its docstring."""
    import polyseme as ps

    parts = [
        "# Python",
        "",
        "*Reference: every name of `import polyseme as ps`, from its docstring.*",
        "",
        PYTHON_NOTE,
        "",
    ]
    things = {name: getattr(ps, name) for name in ps.__all__}
    for title, takes in PARTS.items():
        taken = {name: thing for name, thing in things.items() if takes(thing)}
        parts += [f"## {title}", "", *(line for name, thing in taken.items() for line in _described(name, thing))]
    return "\n".join(parts).rstrip() + "\n"


PYTHON_NOTE = """\
Tables may be polars, pandas or pyarrow objects, or paths. [Results](results.md) says how results are shown and stored,
and how a program cancels runs, handles warnings and logs. Most nouns also have `to_dict` and `from_dict`,
which write and read [documents](results.md#json).

Written by `python docs/check.py --write`."""


def _described(name: str, thing: Any) -> list[str]:
    head = f"ps.{name}" if inspect.isclass(thing) else f"ps.{name}{_signature(thing)}"
    head = textwrap.fill(head, 110, subsequent_indent="    ", break_on_hyphens=False)
    lines = [f"### {name}", "", "```text", head, "", inspect.getdoc(thing) or "", "```", ""]
    return lines[:-2] + _methods(thing) if inspect.isclass(thing) and not _is_error(thing) else lines


DOCUMENTS = ("from_dict", "to_dict")
"""Methods that nearly every result has; the page of results explains them once."""


def _methods(noun: type) -> list[str]:
    """The ways in and out of a noun, each with the first line of its docstring."""
    lines = []
    for name, member in sorted(inspect.getmembers(noun)):
        if hasattr(str, name):  # a draft is a text, and has its methods
            continue
        if not name.startswith("_") and name not in DOCUMENTS and callable(member) and inspect.getdoc(member):
            lines += [f"    .{name}{_signature(member)}", f"        {inspect.getdoc(member).splitlines()[0]}"]
    return ["", *lines, "```", ""] if lines else ["```", ""]


def _signature(thing: Any) -> str:
    """The names and defaults of the parameters: types are for the type checker."""
    given = inspect.signature(thing)
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in given.parameters.values() if one.name != "self"]
    text = str(given.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    return re.sub(r"<(?:[^<>]|<[^<>]*>)*>", "...", text)


MADE = {"commands.md": commands_page, "python.md": python_page}
"""Pages that the program writes."""


def main() -> int:
    made = {ROOT / "docs" / name: page() for name, page in MADE.items()}
    if "--write" in sys.argv:
        for page, text in made.items():
            page.write_text(text, encoding="utf-8")
    problems = [f"broken link: {link}" for link in [*broken_links(), *broken_anchors()]]
    problems += [f"no page links to {name}" for name in orphans()]
    problems += [
        f"docs/{page.name} is not what the program says: run python docs/check.py --write"
        for page, text in made.items()
        if not page.exists() or page.read_text(encoding="utf-8") != text
    ]
    for page in [*pages(), *(ROOT / "docs" / "notebooks").glob("*.ipynb")]:
        if page.name == "CHANGELOG.md":
            continue  # says what texts were, too
        text = page.read_text(encoding="utf-8")
        problems += [*refused_words(page, text), *without_purpose(page, text)]
    problems += [*style(), *too_long()]
    print("\n".join(problems) or f"{len(pages())} pages, all links lead somewhere")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
