"""Documentation that leads somewhere: relative links resolve, and the page of commands is what --help says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def pages() -> list[Path]:
    top = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG", "SECURITY")]
    return [*top, *sorted((ROOT / "docs").rglob("*.md"))]


def broken_links() -> list[str]:
    broken = []
    for page in pages():
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
        targets = [target for target in LINK.findall(text) if "://" not in target]
        broken += [f"{page.relative_to(ROOT)}: {target}" for target in targets if not (page.parent / target).exists()]
    return broken


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


def commands_page() -> str:
    """The help of every command, as one page."""
    import click

    from polyseme.cli import COMMANDS, cli

    parts = ["# The commands", "", "Made from `--help` by `python docs/check.py --write`.", ""]
    root = click.Context(cli, info_name="polyseme")
    for name in COMMANDS:
        parts += _help(cli.get_command(root, name), root, name)
    return "\n".join(parts).rstrip() + "\n"


def _help(command, parent, name: str) -> list[str]:
    import click

    context = click.Context(command, info_name=name, parent=parent, max_content_width=100, terminal_width=100)
    parts = [f"## {context.command_path}", "", "```text", command.get_help(context), "```", ""]
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            below = command.get_command(context, inner)
            parts += _help(below, context, inner)
    return parts


def main() -> int:
    page = ROOT / "docs" / "commands.md"
    if "--write" in sys.argv:
        page.write_text(commands_page(), encoding="utf-8")
    problems = [f"broken link: {link}" for link in broken_links()]
    problems += [f"no page links to {name}" for name in orphans()]
    if not page.exists() or page.read_text(encoding="utf-8") != commands_page():
        problems.append("docs/commands.md is not what --help says: run python docs/check.py --write")
    print("\n".join(problems) or f"{len(pages())} pages, all links lead somewhere")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
