"""Pages whose commands are run as they stand, and whose outputs are what the commands said.

On these pages a fenced block `yaml title="policy.yaml"` is a file, and in a block `console` the lines that begin with
`$ ` are commands; what follows them is their output. A line `...` stands for lines that are left out.

    python docs/making/transcripts.py           run all of it, and tell where an output differs
    python docs/making/transcripts.py --write   put the outputs of today into the pages
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from repeatable import said

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = ("tutorial.md", "protecting-icd-codes.md", "publishing-every-month.md")
FILES = ("patients.csv", "statistics.csv")
"""What lies beside the reader; these files are in `docs/` too."""
BLOCK = re.compile(r'^```(?:console|(?:yaml|csv) title="(?P<file>[^"]+)")\n(?P<text>.*?)^```$', re.S | re.M)
NUMBER = re.compile(r"^([^\d]*?)(\d[\d,]*\.?\d*)(\D*)$")
TOLERANCE = 0.05
"""How far numbers may be off: libraries round differently. A tenth is too much."""
SKIPPED = "..."
BARS = set("█▉▊▋▌▍▎▏")
SHELL = re.compile(r"[|;<>&`$\\]")
"""What only a shell understands."""
WIDTH, WIDE = 88, 100
SETTINGS = {
    "COLUMNS": str(WIDTH),
    "FORCE_COLOR": "1",
    "NO_COLOR": "",
    "TERM": "xterm-256color",
    "OPENBLAS_NUM_THREADS": "1",
}
"""A terminal that is as wide as a page."""
COLOR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Step:
    """A command and what it says; `skips` is where lines are left out."""

    command: str
    output: list[str]


def steps(text: str) -> list[Step]:
    """The commands of a console block; a command that ends in a backslash goes on in the next line."""
    found: list[Step] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(Step(line[2:], []))
        elif found and not found[-1].output and found[-1].command.endswith("\\"):
            found[-1] = Step(f"{found[-1].command}\n{line}", [])
        else:
            found[-1].output.append(line)
    return found


def run(command: str, folder: Path, **settings: str) -> str:
    """What a line prints that a reader types, with `polyseme` being the package beside these pages, and repeatable."""
    settings = {**SETTINGS, "HOME": str(folder), **settings}
    command = command.replace("\\\n", " ")
    words = shlex.split(command)
    if words[0] == "polyseme" and not SHELL.search(command):
        return said(words[1:], folder, settings)
    script = f'polyseme() {{ "{sys.executable}" "{Path(__file__).with_name("repeatable.py")}" "$@"; }}\n{command}'
    return subprocess.run(
        ["bash", "-uc", script],
        cwd=folder,
        env={**os.environ, **settings, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    ).stdout


def lines_of(output: str) -> list[str]:
    """The lines of an output as a terminal shows them, without colors and without blanks at their ends."""
    lines = [line.rstrip() for line in COLOR.sub("", output).rstrip().splitlines()]
    wrapped = [textwrap.wrap(line, WIDTH, break_on_hyphens=False) if len(line) > WIDE else [line] for line in lines]
    return [part for parts in wrapped for part in parts]


def shortened(lines: list[str], like: list[str]) -> list[str]:
    """As many lines at the beginning and at the end as `like` has around its `...`."""
    if SKIPPED not in like:
        return lines
    first, last = like.index(SKIPPED), len(like) - like.index(SKIPPED) - 1
    return [*lines[:first], SKIPPED, *(lines[-last:] if last else [])]


def alike(one: str, other: str) -> bool:
    """Whether two lines say the same, with a little freedom for numbers."""
    words = list(zip(one.split(), other.split(), strict=False))
    return len(one.split()) == len(other.split()) and all(_same(first, second) for first, second in words)


def _same(one: str, other: str) -> bool:
    if set(one + other) <= BARS:
        return abs(len(one) - len(other)) <= 1
    first, second = NUMBER.match(one), NUMBER.match(other)
    if not first or not second:
        return one == other
    wanted, came = (float(match[2].replace(",", "")) for match in (first, second))
    return first[1] == second[1] and first[3] == second[3] and abs(wanted - came) <= TOLERANCE * abs(wanted) + 1e-9


def outputs(text: str, folder: Path) -> Iterator[tuple[Step, list[str]]]:
    """Run a page in a folder: each command with what it said."""
    for name in FILES:
        shutil.copyfile(DOCS / name, folder / name)
    for block in BLOCK.finditer(text):
        if block["file"]:
            (folder / block["file"]).write_text(block["text"], encoding="utf-8")
            continue
        for step in steps(block["text"]):
            yield step, shortened(lines_of(run(step.command, folder)), step.output)


def differences(page: str, folder: Path) -> list[str]:
    """Where the commands of a page say something else than it shows."""
    found = []
    for step, lines in outputs((DOCS / page).read_text(encoding="utf-8"), folder):
        pairs = list(zip(step.output, lines, strict=False))
        if len(step.output) != len(lines) or not all(alike(shown, came) for shown, came in pairs):
            came = "\n".join(lines)
            found.append(f"docs/{page}: $ {step.command}\nshown:\n" + "\n".join(step.output) + f"\ncame:\n{came}")
    return found


def rewritten(text: str, folder: Path) -> str:
    """The page with the outputs of today."""
    made = iter([(step, lines) for step, lines in outputs(text, folder)])

    def renewed(block: re.Match[str]) -> str:
        if block["file"]:
            return block.group()
        parts = [f"$ {step.command}\n" + "".join(f"{line}\n" for line in lines) for step, lines in _take(block, made)]
        return "```console\n" + "".join(parts) + "```"

    return BLOCK.sub(renewed, text)


def _take(block: re.Match[str], made: Iterator[tuple[Step, list[str]]]) -> list[tuple[Step, list[str]]]:
    return [next(made) for _ in steps(block["text"])]


def main() -> int:
    failed = 0
    for page in PAGES:
        with tempfile.TemporaryDirectory() as folder:
            if "--write" in sys.argv:
                text = rewritten((DOCS / page).read_text(encoding="utf-8"), Path(folder))
                (DOCS / page).write_text(text, encoding="utf-8")
                continue
            problems = differences(page, Path(folder))
            failed += len(problems)
            print("\n\n".join(problems) or f"docs/{page}: every command says what the page shows")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
