"""The command line: the library in another skin, one file a command.

A command's module is imported only when the command runs, so `polyseme --help` answers at once.
Exit codes: 0 done or holds, 1 a model is violated, 2 invalid input, 3 our own fault.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from polyseme.cli.progress import Interruption
from polyseme.kernel.errors import Cancelled, InternalError, InvalidInput, PolysemeError
from polyseme.kernel.work import working

__all__ = ["COMMANDS", "cli", "main"]

COMMANDS = {
    "workbench": "Open a page in the browser: from a table to a release, without YAML.",
    "init": "Look at a table and draft a policy for it.",
    "policy": "Change one place of a policy and keep every other byte.",
    "plan": "Show the risk and the error of a policy before you publish.",
    "anonymize": "Publish a table as a release.",
    "verify": "Check every promise of a release, or of any table.",
    "risk": "Measure what k, l and t a table has, without a policy.",
    "estimate": "Recover a cross-tabulation of the true values, with intervals.",
    "attack": "Run the attacks against a release.",
    "evaluate": "Measure how much information a release lost, given the original.",
    "report": "Write one self-contained page about a release.",
    "ledger": "Track several releases about the same people.",
    "prior": "Make a prior file from an earlier release or from a table.",
    "campaign": "Make a survey in which devices draw the sets.",
    "collect": "Collect reports from devices, and turn them into a release.",
    "demo": "Run every step on generated data.",
    "reproduce": "Reproduce the papers' experiments.",
    "key": "Make a secret key for sticky decoys.",
    "taxonomy": "List, show and check the built-in taxonomies.",
    "hierarchy": "Show, check and build generalization hierarchies.",
    "rules": "List and show the built-in semantic rules.",
    "completion": "Print the completion script for a shell.",
}


class LazyGroup(click.Group):
    """Knows the commands' names and first lines; imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        if name == "completion":
            return completion
        command = importlib.import_module(f"polyseme.cli.{name}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"polyseme.cli.{name} has no command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from polyseme.kernel.version import __version__

        click.echo(f"polyseme {__version__}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@click.option("-v", "--verbose", count=True, help="Log progress to standard error; -vv logs more.")
@click.option(
    "--progress",
    type=click.Choice(["bars", "json", "none"]),
    default="bars",
    help="Progress on standard error: bars on a terminal, or JSON lines for another program.",
)
@click.pass_context
def cli(context: click.Context, verbose: int, progress: str) -> None:
    """Share personal records without revealing secrets, and still get the statistics right.

    Every published cell is a set of candidates that are far apart in meaning; the true cross-tabulations
    are recovered from the sets, with error bars.

    \b
    Begin with
      polyseme demo
    or, with a table of your own,
      polyseme init people.csv --out policy.yaml
      polyseme plan policy.yaml --data people.csv
      polyseme anonymize policy.yaml people.csv --out release
      polyseme estimate release --of disease --by sex
    """
    if verbose:
        _log_to_terminal(context, logging.DEBUG if verbose > 1 else logging.INFO)
    if progress == "json":
        from polyseme.cli.progress import ProgressLines

        context.with_resource(working(progress=ProgressLines()))


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    Example:
      polyseme completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise InternalError(f"no completion for {shell}")
    click.echo(kind(cli, {}, "polyseme", "_POLYSEME_COMPLETE").source())


def _log_to_terminal(context: click.Context, level: int) -> None:
    """As long as the command runs, what the library logs goes to standard error."""
    logger, handler = logging.getLogger("polyseme"), logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    before = logger.level
    logger.setLevel(level)
    logger.addHandler(handler)

    @context.call_on_close
    def quiet() -> None:
        logger.removeHandler(handler)
        logger.setLevel(before)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    # Many small matrices: the threads of a BLAS library would spend their time waiting for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    interruption = Interruption()
    interruption.listen()
    try:
        with working(cancellation=interruption.cancellation):
            code = cli.main(args=arguments, prog_name="polyseme", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("Stopped.", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except Cancelled:
        _leave(interruption)
    except PolysemeError as error:
        _say(error)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output has closed the pipe, as `head` does: not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        # The system refuses: no permission, no space, no such folder. Its words name files, never their content.
        place = f"{error.filename}: " if error.filename else ""
        _say(InvalidInput(f"{place}{error.strerror or type(error).__name__}"))
        sys.exit(2)
    except SystemExit:
        if interruption.cancellation.cancelled:
            _leave(interruption)
        raise
    except BaseException as error:  # noqa: BLE001 - the last door: nothing of the data may leave through it
        # A library interrupted in the middle of its own start may raise something else than the interruption.
        if interruption.cancellation.cancelled:
            _leave(interruption)
        _confess(error)
        sys.exit(3)
    sys.exit(code if isinstance(code, int) else 0)


def _leave(interruption: Interruption) -> NoReturn:
    """Say that the run was stopped, and exit with the code for it."""
    click.echo("Stopped.", err=True)
    sys.exit(interruption.exit_code)


def _say(error: PolysemeError) -> None:
    from polyseme.cli.console import say

    if not isinstance(error, InvalidInput):
        say(f"Error: {error}", err=True)
        return
    if len(error.problems) > 1:
        say(f"{len(error.problems)} problems:", err=True)
    for problem in error.problems:
        where = f"{problem.where}: " if problem.where else ""
        say(f"{click.style('Error', fg='red', bold=True)}: {where}{problem.what}", err=True, hang=2)
        if problem.hint:
            say(f"  {click.style('hint', fg='cyan')}: {problem.hint}", err=True, hang=2)


def _confess(error: BaseException) -> None:
    """A fault of ours. The message may quote data, so only where it happened is shown."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).name}:{frame.lineno}"
    click.echo(
        f"Internal error ({type(error).__name__} at {place}). This is a bug in polyseme; please report it.", err=True
    )
