"""The documentation as a site: pages are gathered in a folder of their own, and zensical makes HTML of them.

The pages are written to be read where they lie: they link to files outside `docs/`, and folders have a README. On the
way to the site these links are put right, notebooks become pages, and a page that the navigation of `zensical.toml`
does not name is an error. Broken links and anchors are errors too (`--strict`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from notebooks import page_of

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "zensical.toml"
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(#[^)]*)?\)")
FENCE = re.compile(r"(^```.*?^```$)", re.S | re.M)
TOP = {"README.md": "index.md", "docs/README.md": "contents.md"}
"""Pages that have another name on the site. Other pages at the top are there in lower case."""
COPIED = {".svg", ".png", ".webp", ".css", ".js", ".csv", ".yaml"}


def sources() -> dict[PurePosixPath, PurePosixPath]:
    """What the site is made of: where it lies in the project, and where on the site."""
    top = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG", "SECURITY")]
    kinds = {".md", ".ipynb", *COPIED}
    below = [path for path in sorted((ROOT / "docs").rglob("*")) if path.suffix in kinds]
    places = [PurePosixPath(path.relative_to(ROOT).as_posix()) for path in (*top, *below)]
    return {place: _on_site(place) for place in places}


def _on_site(place: PurePosixPath) -> PurePosixPath:
    if str(place) in TOP:
        return PurePosixPath(TOP[str(place)])
    if place.parts[0] != "docs":
        return PurePosixPath(place.name.lower())
    inside = place.relative_to("docs")
    if inside.name == "README.md":
        return inside.with_name("index.md")
    return inside.with_suffix(".md") if inside.suffix == ".ipynb" else inside


def relinked(text: str, place: PurePosixPath, known: dict[PurePosixPath, PurePosixPath]) -> str:
    """The page with links that lead to the same things on the site; what is not on the site loses its link."""

    def moved(match: re.Match[str]) -> str:
        picture, words, target, anchor = match.groups()
        if "://" in target or not target:
            return match.group()
        there = PurePosixPath(os.path.normpath(place.parent / target))
        there = there if there in known else there / "README.md"
        if there not in known:
            # A path that leads nowhere stays, so that the build fails; other files of the project have no page.
            return words if (ROOT / place.parent / target).exists() else match.group()
        way = os.path.relpath(known[there], known[place].parent)
        return f"{picture}[{words}]({PurePosixPath(way)}{anchor or ''})"

    parts = FENCE.split(text)
    parts[::2] = [LINK.sub(moved, part) for part in parts[::2]]
    return "".join(parts)


def stage(folder: Path) -> None:
    """The pages as the generator wants them, below `folder`."""
    known = sources()
    for place, on_site in known.items():
        source, target = ROOT / place, folder / on_site
        target.parent.mkdir(parents=True, exist_ok=True)
        if place.suffix == ".ipynb":
            target.write_text(relinked(page_of(source), place, known), encoding="utf-8")
        elif place.suffix == ".md":
            target.write_text(relinked(source.read_text(encoding="utf-8"), place, known), encoding="utf-8")
        else:
            shutil.copyfile(source, target)


def named(nav: list[Any]) -> Iterator[str]:
    """The pages of a navigation, at any depth."""
    for entry in nav:
        for inner in entry.values() if isinstance(entry, dict) else [entry]:
            yield from [inner] if isinstance(inner, str) else named(inner)


def unnamed() -> list[str]:
    """Pages that the navigation leaves out, or names in vain."""
    nav = set(named(tomllib.loads(CONFIG.read_text(encoding="utf-8"))["project"]["nav"]))
    pages = {str(place) for place in sources().values() if place.suffix == ".md"}
    left_out = [f"zensical.toml: the navigation does not name {page}" for page in sorted(pages - nav)]
    return left_out + [
        f"zensical.toml: the navigation names {page}, which is not there" for page in sorted(nav - pages)
    ]


def generate(folder: Path) -> subprocess.CompletedProcess[str]:
    """Turn the pages below `folder` into a site there; whatever is broken makes it fail."""
    shutil.copyfile(CONFIG, folder / CONFIG.name)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def build(out: Path) -> int:
    """Make the site in `out`, which is replaced once it is whole; 0 if all went well."""
    with tempfile.TemporaryDirectory() as folder:
        stage(Path(folder) / "docs")
        made = generate(Path(folder))
        if made.returncode:
            print(made.stdout + made.stderr)
            return made.returncode
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(Path(folder) / "site", out)
    return 0


def main() -> int:
    problems = unnamed()
    if problems:
        print("\n".join(problems))
        return 1
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"
    failed = build(out)
    if not failed:
        print(f"{len(list(out.rglob('*.html')))} pages in {out}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
