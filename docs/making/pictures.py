"""The pictures of the README and the documentation: `make pictures` draws them again from the tutorial's table.

Terminals are drawn from what the commands print, charts by the package, and the report by a browser. Without Chromium
(its path may be given as `CHROMIUM`) the picture of the report stays as it is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import vl_convert
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text
from transcripts import BLOCK, DOCS, FILES, run

import polyseme as ps
from polyseme.demo.walkthrough import INCOME_CLASSES, INCOME_POLICY, income_table
from polyseme.reports.contents import Distribution
from polyseme.results.drawing.bars import distribution_chart
from polyseme.results.drawing.distribution import COLORS

PICTURES = DOCS / "pictures"
LARGEST = 150_000
COLUMNS = 100
NARROW, LEGIBLE = 320, 13
"""Width of the chart of the README and size of its letters: a telephone shows the picture unscaled."""
COLORS_OF_TERMINALS = "3b4252 e06c75 98c379 e5c07b 61afef c678dd 56b6c2 d8dee9"
THEME = TerminalTheme((24, 28, 36), (216, 222, 233), [tuple(bytes.fromhex(one)) for one in COLORS_OF_TERMINALS.split()])
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SCREEN = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: %s; font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Like that of `rich`, without its fonts: those would come from another host."""


def prepare(folder: Path) -> None:
    """The files of the tutorial, and its release."""
    for name in FILES:
        shutil.copyfile(DOCS / name, folder / name)
    for block in BLOCK.finditer((DOCS / "tutorial.md").read_text(encoding="utf-8")):
        if block["file"]:
            (folder / block["file"]).write_text(block["text"], encoding="utf-8")
    run("polyseme anonymize policy.yaml patients.csv --out trial --seed 1", folder)
    run("polyseme anonymize policy.yaml patients.csv --out release", folder)


def terminal(name: str, command: str, folder: Path, lines: int) -> None:
    """What a command prints in a terminal with colors; the first `lines` of it."""
    shown = run(command, folder, COLUMNS=str(COLUMNS))
    with (folder / "nowhere").open("w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True, legacy_windows=False)
        console.print(Text(f"$ {command}", style="bold"))
        console.print(Text.from_ansi("\n".join(shown.rstrip().splitlines()[:lines])))
        drawn = console.export_svg(title="", theme=THEME, code_format=SCREEN % FONT, unique_id=name)
    keep(f"{name}.svg", drawn)


def tutorial_chart(folder: Path) -> None:
    """The true numbers of the tutorial's patients (bars), and the estimates with their intervals."""
    true = pl.read_csv(folder / "patients.csv")["diagnosis"].value_counts(name="true")
    estimate = ps.estimate(ps.Release.open(folder / "trial"), of="diagnosis")
    table = estimate.to_polars().join(true, on="diagnosis").sort("diagnosis")
    base = alt.Chart(table).encode(x=alt.X("diagnosis", title=None, axis=alt.Axis(labelAngle=0)))
    bars = base.mark_bar(color=COLORS["original"]).encode(y=alt.Y("true", title="patients"))
    whiskers = base.mark_rule(color=COLORS["estimate"], strokeWidth=2).encode(y="low", y2="high")
    dots = base.mark_point(color=COLORS["estimate"], filled=True, opacity=1, size=50).encode(y="estimate")
    save("estimate.svg", (bars + whiskers + dots).properties(width=600, height=240).to_dict())


def income_chart() -> None:
    """Women of the demo's table: the truth, the candidates and the estimates, legible on a telephone."""
    people = income_table(20_000)
    release = ps.anonymize(people, ps.Policy.loads(INCOME_POLICY), seed=1, warn=lambda text: None)
    table = ps.estimate(release, of="income", by="sex")
    shown = pl.DataFrame(pl.from_arrow(release.table)).select("sex", "income").explode("income")
    women = Distribution(
        attribute="income",
        labels=INCOME_CLASSES,
        published=_counted(shown, "F") / 3,
        estimate=table.values[0],
        low=table.low[0],
        high=table.high[0],
        original=_counted(people, "F"),
        ordered=True,
    )
    chart = distribution_chart(women, width=NARROW).to_dict()
    chart["height"] = 220
    for part in ("axis", "legend"):
        chart["config"][part] |= {"labelFontSize": LEGIBLE, "titleFontSize": LEGIBLE}
    chart["config"]["axis"]["titlePadding"] = 14
    # Below each other in the empty corner: side by side, the words of another font than was measured overlap.
    for layer in chart["layer"]:
        legend = layer["encoding"].get("color", {}).get("legend")
        if legend:
            legend |= {"orient": "top-right", "direction": "vertical", "symbolSize": 120}
    save("income.svg", chart)


def _counted(table: pl.DataFrame, sex: str) -> np.ndarray:
    """How often each income is in a column, among people of one sex."""
    counts = dict(table.filter(pl.col("sex") == sex)["income"].cast(pl.String).value_counts().iter_rows())
    return np.array([counts.get(label, 0) for label in INCOME_CLASSES], dtype=float)


def save(name: str, chart: dict[str, Any]) -> None:
    """A chart on white, which can be read on light and dark pages."""
    chart["config"] = {**chart["config"], "background": "white", "padding": 12, "view": {"stroke": None}}
    keep(name, vl_convert.vegalite_to_svg(chart, allowed_base_urls=[]))


def report_picture(folder: Path) -> None:
    """The beginning of the report, as a browser shows it."""
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("no Chromium here: docs/pictures/report.png stays as it is")
        return
    run("polyseme report release --original patients.csv --out report.html", folder)
    subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--hide-scrollbars",
            "--disable-background-networking",
            f"--user-data-dir={folder / 'browser'}",
            "--window-size=1000,720",
            f"--screenshot={folder / 'report.png'}",
            (folder / "report.html").as_uri(),
        ],
        check=True,
        capture_output=True,
    )
    shutil.copyfile(folder / "report.png", PICTURES / "report.png")


def keep(name: str, svg: str) -> None:
    """Write a drawing, with as few digits as the eye can see."""
    short = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\d+\.\d{2})\d+", r"\1", tag.group()), svg)
    (PICTURES / name).write_text(short.rstrip() + "\n", encoding="utf-8")


def main() -> int:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        prepare(folder)
        terminal("verify", "polyseme verify release", folder, 40)
        tutorial_chart(folder)
        income_chart()
        report_picture(folder)
    large = [path.name for path in PICTURES.iterdir() if path.stat().st_size > LARGEST]
    print(f"too large: {', '.join(large)}" if large else f"{len(list(PICTURES.iterdir()))} pictures in {PICTURES}")
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main())
