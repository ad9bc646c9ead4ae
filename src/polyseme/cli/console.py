"""What commands share on the terminal: output, progress, options of several commands.

Several commands have an option for the engine that does the work. `--force` may replace a file of the kind that the
command writes, or an empty one; never a user's table.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeVar, cast

import click

from polyseme.engines import ENGINES

__all__ = [
    "PathType",
    "TableType",
    "allow_outside_option",
    "busy",
    "chart_place",
    "engine_options",
    "explain_option",
    "force_option",
    "is_explanation",
    "is_hierarchy",
    "is_policy",
    "is_prior",
    "json_option",
    "names",
    "policy_places",
    "print_json",
    "require_spark",
    "say",
    "screen_width",
    "show",
    "show_explained",
    "show_hint",
    "show_offending",
    "show_values_option",
    "text_table_options",
    "write_text",
]


def is_policy(file: Path) -> bool:
    """Whether a file reads as a policy: YAML that says something of attributes."""
    from polyseme.kernel.yaml_schema import NotYaml, load

    try:
        document = load(file.read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, NotYaml):
        return False
    if document is None:
        return _is_empty(file)
    return isinstance(document, Mapping) and not {"attributes", "protect-all-but"}.isdisjoint(document)


def is_hierarchy(file: Path) -> bool:
    """Whether every line of a file goes from a value up to the same root."""
    rows = _rows(file)
    widths, roots = {len(cells) for cells in rows}, {cells[-1] for cells in rows}
    return _is_empty(file) or (len(widths) == 1 and min(widths) > 1 and len(roots) == 1)


def is_prior(file: Path) -> bool:
    """Whether a file has the header of a prior."""
    rows = [cells for cells in _rows(file) if not cells[0].startswith("#")]
    return _is_empty(file) or (bool(rows) and rows[0][-1] == "people")


def is_explanation(file: Path) -> bool:
    """Whether a file has the header of an explanation."""
    from polyseme.results.explanation import HEAD

    rows = _rows(file)
    return _is_empty(file) or (bool(rows) and tuple(rows[0][-len(HEAD) :]) == HEAD)


def _is_empty(file: Path) -> bool:
    return file.stat().st_size == 0


def _rows(file: Path) -> list[list[str]]:
    """The records of a CSV file; none where it is something else."""
    from polyseme.kernel.delimited import read_rows
    from polyseme.kernel.errors import InvalidInput

    try:
        return [cells for _, cells in read_rows(file)]
    except InvalidInput:
        return []


EngineCommand = TypeVar("EngineCommand", bound=Callable[..., Any])


def engine_options(command: EngineCommand) -> EngineCommand:
    """`--engine` and `--master`."""
    command = click.option(
        "--master",
        metavar="ADDRESS",
        help="With --engine spark, where: local[4], spark://HOST:7077, yarn, k8s://URL, or sc://HOST:15002 for a Spark "
        "Connect server. Default: what spark-submit or SPARK_REMOTE says, or all cores of this machine.",
    )(command)
    return click.option(
        "--engine",
        type=click.Choice(list(ENGINES)),
        default="local",
        show_default=True,
        help="Where the work is done: on this machine, or by Spark (needs polyseme[spark]).",
    )(command)


def require_spark(engine: str, **only: object) -> bool:
    """Whether Spark does the work; options that only it understands are refused otherwise."""
    if engine == "spark":
        from polyseme.kernel.plugins import require

        require("spark", "--engine spark")
        # It speaks of a package that we hand nothing to.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        return True
    for name, value in only.items():
        if value is not None:
            raise click.UsageError(f"--{name} is for --engine spark.")
    return False


if TYPE_CHECKING:
    from rich.console import RenderableType

    from polyseme.kernel.errors import Problem


PathType = click.Path(path_type=Path)


class Explained(Protocol):
    """A result that can say what its rows mean."""

    def view(self, explain: bool = False) -> RenderableType:
        """The tables for a terminal."""
        ...


class _Table(click.ParamType[Path | str]):
    """A file, a folder, a pattern or an address; only an address is not a path."""

    name = "table"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path | str:
        return value if isinstance(value, str) and "://" in value else Path(value)


TableType = _Table()
Command = TypeVar("Command", bound=Callable[..., Any])


def json_option(command: Command) -> Command:
    """`--json`: one JSON document on standard output and nothing else there."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def explain_option(command: Command) -> Command:
    """`--explain`: below a table, what each of its rows and columns means."""
    return click.option("--explain", is_flag=True, help="Also print what each row and column means.")(command)


def allow_outside_option(command: Command) -> Command:
    text = "Allow the policy to refer to files outside its own folder."
    return click.option("--allow-outside", is_flag=True, help=text)(command)


def force_option(command: Command) -> Command:
    return click.option("--force", is_flag=True, help="Replace what is there already.")(command)


def chart_place(chart: Path | None, force: bool) -> None:
    """Raise before the work where a chart cannot be drawn, or may not be put."""
    if chart is None:
        return
    from polyseme.kernel.files import require_place
    from polyseme.kernel.plugins import require
    from polyseme.results.drawing.distribution import picture_kind

    picture_kind(chart)
    require("charts", "--chart")
    require_place(chart, force)


def policy_places(command: Command) -> Command:
    """A context in which errors of a command's policy name its file and line."""

    @wraps(command)
    def placed(*arguments: Any, **options: Any) -> Any:
        from polyseme.kernel.errors import InvalidInput

        try:
            return command(*arguments, **options)
        except InvalidInput as error:
            if options.get("policy") is None:
                raise
            from polyseme.kernel.documents import in_file

            raise in_file(error, options["policy"]) from None

    return cast("Command", placed)


def show_values_option(command: Command) -> Command:
    """`--show-values`: show the values that cause a problem, on the terminal, never in files.

    The command is given `show_values` where it has something to show itself.
    """

    @wraps(command)
    def shown(*arguments: Any, force_show_values: bool, **options: Any) -> Any:
        from polyseme.kernel.errors import InvalidInput

        options["show_values"] = options["show_values"] or force_show_values
        if options["show_values"] and not force_show_values:
            _require_watcher()
        try:
            return command(*arguments, **options)
        except InvalidInput as error:
            if options["show_values"]:
                show_offending(error.problems)
            raise

    text = "Also list the values that a problem is about, on a terminal only; they are values of your table."
    show_values = click.option("--show-values", is_flag=True, help=text)
    text = "List them even if the output is not a terminal."
    return show_values(click.option("--force-show-values", is_flag=True, help=text)(cast("Command", shown)))


def _require_watcher() -> None:
    from polyseme.kernel.errors import QuestionError

    if not sys.stderr.isatty():
        raise QuestionError(
            "--show-values shows values of the table, and they would not go to a terminal",
            "run it on a terminal, or use --force-show-values if every reader of the output may see them",
        )


_LISTED = 50
"""Values of one problem that are listed."""


def show_offending(problems: Iterable[Problem]) -> None:
    """Print the values behind some problems on standard error, with their counts and first rows."""
    from rich.console import Console, Group
    from rich.text import Text

    from polyseme.results.views.terminal import titled_view

    views: list[Any] = []
    for problem in problems:
        seen = problem.seen
        if seen is None or not seen.values:
            continue
        found = sorted(seen.values.items(), key=lambda entry: (-entry[1][0], entry[1][1]))
        rows = [("(missing)" if text is None else text, f"{count:,}", f"{first:,}") for text, (count, first) in found]
        head = (("value", False), ("records", True), (f"first {seen.unit}", True))
        left = [f"{len(rows) - _LISTED:,} more values are not listed"] if len(rows) > _LISTED else []
        title = f"{problem.where}: {problem.what}" if problem.where else problem.what
        views += [titled_view(title, head, rows[:_LISTED], left), Text()]
    width = screen_width(sys.stderr) or _PIPE_WIDTH
    Console(stderr=True, highlight=False, width=width).print(Group(*(views or [Text("There are no values to show.")])))


def text_table_options(command: Command) -> Command:
    """How a table is stored: the options of `TableOptions`."""
    text = "The encoding of a text table."
    encoding = click.option("--encoding", default="utf-8", show_default=True, callback=_encoding, help=text)
    text = "The separator of a text table; detected when omitted."
    separator = click.option("--separator", callback=_separator, help=text)
    sheet = click.option("--sheet", help="The sheet of a workbook; the first one when omitted.")
    decimal = click.option(
        "--decimal",
        type=click.Choice(["point", "comma"]),
        default="point",
        show_default=True,
        help="What stands before the fraction of a number in a text table.",
    )
    dates = click.option("--dates", help="How dates are written in a text table, as dd.mm.yyyy; ISO 8601 when omitted.")
    return separator(encoding(sheet(decimal(dates(command)))))


def _encoding(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    try:
        "".encode(value)
    except (LookupError, ValueError):
        raise click.BadParameter(f"no encoding '{value}'; utf-8, latin-1, cp1252 ...", ctx, parameter) from None
    return value


def _separator(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is None or value == "\\t":
        return value and "\t"
    if len(value) != 1:
        raise click.BadParameter("a separator is one character, such as ';' or '\\t'", ctx, parameter)
    return value


def print_json(document: Any) -> None:
    click.echo(json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False, default=str))


def _plain(value: Any) -> Any:
    """JSON has no infinity and no NaN: both are null."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def names(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """`A,B,C`, or a repeated option, as names; a name with a comma is in double quotes."""
    from polyseme.kernel.delimited import names_in

    found = names_in(value)
    if value and not found:
        raise click.BadParameter("it names nothing", ctx, parameter)
    return found


_PIPE_WIDTH = 120
"""Characters in a line of a table outside of a terminal, unless COLUMNS says otherwise."""


def screen_width(stream: IO[str]) -> int | None:
    """The width of the terminal, or COLUMNS; None in a pipe or a file, where nothing is wrapped."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def say(text: str, err: bool = False, hang: int = 0) -> None:
    """Print lines for people; a terminal wraps them between words and keeps the indentation.

    hang  so many characters more
    """
    width = screen_width(sys.stderr if err else sys.stdout)
    lines = text.splitlines() or [""]
    click.echo(
        "\n".join(lines if width is None else (part for line in lines for part in _broken(line, width, hang))), err=err
    )


def _broken(line: str, width: int, hang: int) -> list[str]:
    """A line in lines that fit; colors take no room, and a word that is too long stays whole."""
    indent = " " * (len(line) - len(line.lstrip()) + hang)
    lines = [""]
    for word in re.split(r"(?<=\S)(?=\s)", line):
        if lines[-1].strip() and len(click.unstyle(lines[-1] + word)) > width:
            lines.append(indent + word.lstrip())
        else:
            lines[-1] += word
    return lines


def show(view: Any) -> None:
    """Print a rich renderable on standard output; in a pipe it is not wrapped."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=screen_width(sys.stdout) or _PIPE_WIDTH)
    console.print(view)


def show_explained(result: Explained, explain: bool) -> None:
    """A result on standard output: with what its rows mean, or with how to see that."""
    show(result.view(explain))
    if not explain:
        show_hint()


def show_hint() -> None:
    """How to see what the rows above mean."""
    click.secho("Add --explain for what each row means.", dim=True)


def write_text(
    text: str, out: Path | None, force: bool, ours: Callable[[Path], bool] | None = None, private: bool = False
) -> None:
    """Text to standard output, or whole into a file that must not exist yet.

    ours     which files `--force` may replace; any when omitted
    private  whether only the owner may read the file
    """
    if out is None:
        click.echo(text, nl=False)
        return
    from polyseme.kernel.files import whole_file

    with whole_file(out, force, ours=ours, private=private) as partial:
        partial.write_text(text, encoding="utf-8")
    click.echo(f"Wrote {out}", err=True)


@contextmanager
def busy(label: str) -> Iterator[None]:
    """Show the progress and remaining time of each stage, on a terminal only.

    It is all on standard error, and gone when the work is done; in a pipe there is nothing. With `--progress json` the
    same is reported in lines, and no bar is drawn.
    """
    if not sys.stderr.isatty() or _progress_wanted() != "bars":
        yield
        return
    from polyseme.cli.progress import shown_progress

    with shown_progress(label):
        yield


def _progress_wanted() -> str:
    """How progress is to be shown, as the option before the command says."""
    context = click.get_current_context(silent=True)
    return "bars" if context is None else str(context.find_root().params.get("progress", "bars"))
