from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from polyseme.cli.console import (
    PathType,
    TableType,
    allow_outside_option,
    busy,
    engine_options,
    force_option,
    json_option,
    policy_places,
    print_json,
    require_spark,
    say,
    show,
    show_values_option,
    write_text,
)

if TYPE_CHECKING:
    from polyseme.policy import Policy
    from polyseme.release import Release
    from polyseme.results.explanation import Explanation
    from polyseme.tables.io.source import Source


@click.command("anonymize")
@click.argument("policy", type=PathType)
@click.argument("data", type=TableType)
@click.option(
    "--out", type=PathType, help="The folder of the release; must not exist yet. Required unless --preview is given."
)
@click.option(
    "--form",
    type=click.Choice(["set", "long"]),
    default="set",
    show_default=True,
    help="A set of candidates for each record, or a row for each candidate.",
)
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["parquet", "csv"]),
    default="parquet",
    show_default=True,
    help="The format of the data.",
)
@engine_options
@click.option("--key-file", type=PathType, help="Secret key for sticky decoys (polyseme key new FILE).")
@click.option(
    "--records-per-person",
    type=click.FloatRange(min=1),
    help="With --key-file, how many records people have on average at most. A record key with more than 10 (100 in "
    "a table of that many people) is refused without this option: it hardly identifies people.",
)
@click.option(
    "--allow-changed-strata",
    is_flag=True,
    help="With --key-file, publish although records of one person, with the same value, can have other decoys because "
    "other values are impossible for them.",
)
@click.option(
    "--earlier", type=PathType, help="An earlier release of the same people: warns of what can be intersected with it."
)
@click.option(
    "--ledger",
    type=PathType,
    help="What was published about the same people (polyseme ledger): read before, updated afterwards. Sets that "
    "could be intersected are refused with exit code 1.",
)
@click.option("--people", help="With --ledger, whom the table is about; needed unless the ledger knows one group only.")
@click.option(
    "--accept-risk",
    is_flag=True,
    help="Publish although models of the policy do not hold, as the manifest then says; with --ledger, although sets "
    "can be intersected; and although the sets of several attributes together break a promise about learners.",
)
@click.option(
    "--apply",
    type=PathType,
    help="An earlier release whose levels of generalization are used again, for further rows of the same kind. Rows "
    "that would break a promise are suppressed; more than the policy allows are refused.",
)
@click.option(
    "--explain",
    type=PathType,
    help="With the method rules, write which rule was effective on which class and what was done about it into this "
    "CSV file, or show it (-). It is for you: it tells what the release must not.",
)
@click.option(
    "--seed", type=int, help="Repeatable random numbers, for experiments only: the release is then not for publication."
)
@click.option(
    "--rows-per-file",
    type=click.IntRange(min=1),
    metavar="N",
    help="Write several data files with at most N rows each, instead of one; rows are shuffled over all of them. For "
    "the local engine.",
)
@click.option(
    "--memory",
    metavar="SIZE",
    help="The most memory that the local engine may take while it draws and shuffles, such as 2GB (default: about half "
    "a gigabyte). Rows that do not fit wait in temporary files beside the release.",
)
@click.option(
    "--population",
    type=TableType,
    help="People with the same quasi-identifiers, for k-map, in the place of the reference that the policy names.",
)
@click.option(
    "--keep-best",
    is_flag=True,
    help="Ctrl-C ends the search of full-domain and publishes the best levels found so far, with their gap. Ctrl-C at "
    "any other time, or again, stops the command.",
)
@click.option(
    "--preview",
    type=click.IntRange(min=1),
    metavar="N",
    help="Show N random records before and after, on a terminal only, and write nothing.",
)
@click.option(
    "--force-preview", is_flag=True, help="With --preview, show original values even if the output is not a terminal."
)
@allow_outside_option
@force_option
@json_option
@show_values_option
@policy_places
def command(
    policy: Path,
    data: Path | str,
    out: Path | None,
    form: str,
    file_format: str,
    engine: str,
    master: str | None,
    key_file: Path | None,
    records_per_person: float | None,
    allow_changed_strata: bool,
    earlier: Path | None,
    ledger: Path | None,
    people: str | None,
    accept_risk: bool,
    apply: Path | None,
    explain: Path | None,
    seed: int | None,
    rows_per_file: int | None,
    memory: str | None,
    population: Path | str | None,
    keep_best: bool,
    preview: int | None,
    force_preview: bool,
    allow_outside: bool,
    force: bool,
    as_json: bool,
    show_values: bool,
) -> None:
    """Publish the table DATA as POLICY says, into the folder --out.

    DATA is a file, a folder, a quoted pattern or an address; with --engine spark also the name of a table in
    Spark's catalog. It streams through in bounded memory. Rows are published in random order, without identifiers.
    If anything is wrong, nothing is written; exit code 1 means that a model of the policy does not hold.

    \b
    Examples:
      polyseme anonymize policy.yaml people.csv --out release
      polyseme anonymize policy.yaml 'people-*.csv' --out parts --rows-per-file 1000000
    """
    from polyseme.cli.console import is_explanation
    from polyseme.cli.progress import keeping_best
    from polyseme.kernel.files import require_place
    from polyseme.policy import Policy
    from polyseme.publishing.inputs import source_given, with_population
    from polyseme.verbs.anonymize import anonymize

    if engine == "spark" and file_format != "parquet":
        raise click.UsageError("--engine spark writes --format parquet only.")
    for name, given in (("--rows-per-file", rows_per_file), ("--memory", memory)):
        if engine == "spark" and given is not None:
            raise click.UsageError(f"{name} is for --engine local.")
    by_spark = require_spark(engine, master=master)
    if preview is not None:
        _require_terminal(force_preview, as_json)
    elif out is None:
        raise click.UsageError("Missing option '--out'.")
    if explain is not None and str(explain) != "-":
        require_place(explain, force, is_explanation)
    rules = with_population(Policy.load(policy, allow_outside), population)
    publish = _by_spark(master) if by_spark else anonymize
    by_name = by_spark and preview is None
    source = _opened_by_spark(data, rules, master) if by_name else source_given(data, rules)
    if preview is not None:
        from polyseme.verbs.preview import preview as previewed

        with busy("Anonymizing"):
            shown = previewed(
                source,
                rules,
                preview,
                seed=seed,
                key_file=key_file,
                records_per_person=records_per_person,
                allow_changed_strata=allow_changed_strata,
            )
        show(shown)
        return
    heard: list[str] = []
    try:
        with busy("Anonymizing"), keeping_best() if keep_best else nullcontext():
            release = publish(
                source,
                rules,
                out,
                form=form,
                file_format=file_format,
                seed=seed,
                key_file=key_file,
                earlier=earlier,
                records_per_person=records_per_person,
                allow_changed_strata=allow_changed_strata,
                ledger=ledger,
                people=people,
                accept_risk=accept_risk,
                apply=apply,
                overwrite=force,
                warn=heard.append,
                explain=_explained(explain, force) if explain is not None else None,
                rows_per_file=rows_per_file,
                memory=memory,
            )
        _tell(release, rules, source.schema.names, out, as_json)
    finally:
        # Last, so that they are what is read.
        for text in heard:
            say(f"Warning: {text}", err=True, hang=2)


def _by_spark(master: str | None) -> Callable[..., Release]:
    """The verb as Spark does it."""
    from polyseme import spark

    return partial(spark.anonymize, master=master)


def _opened_by_spark(data: Path | str, rules: Policy, master: str | None) -> Source:
    """A table of files, or one that Spark knows by its name."""
    from polyseme import spark

    return spark.open_table(str(data), rules, master=master)


def _require_terminal(forced: bool, as_json: bool) -> None:
    """Original values are shown to people, not to files."""
    from polyseme.kernel.errors import QuestionError

    if as_json:
        raise QuestionError("--preview and --json exclude each other: original values are shown to people only")
    if not forced and not sys.stdout.isatty():
        raise QuestionError(
            "--preview shows values of the original table, and the output is no terminal",
            "run it on a terminal, or add --force-preview if every reader of the output may see them",
        )


def _tell(release: Release, policy: Policy, columns: Sequence[str], out: Path | None, as_json: bool) -> None:
    """What was published, and what happened to each column."""
    done = column_lines(release, policy, columns)
    manifest = release.manifest
    if as_json:
        print_json(
            {
                "release": str(out),
                "records": manifest.records,
                "rows": manifest.rows,
                "dropped": manifest.dropped,
                "counts": "rows" if manifest.people is None else "people",
                "people": None if manifest.people is None else manifest.people.to_dict(),
                "for_publication": not manifest.seeded,
                "repeats": {item.name: item.repeats for item in manifest.sets},
                "accepted_risk": list(manifest.accepted),
                "columns": [dict(zip(("name", "role", "published"), line)) for line in done],
                "suppressed": manifest.applied.suppressed if manifest.applied is not None else 0,
                "method": {"name": manifest.method} if manifest.applied is None else manifest.applied.to_dict(),
            }
        )
        return
    if manifest.applied is not None:
        from polyseme.results.method import applied_lines

        withheld = manifest.applied.suppressed if manifest.applied.withheld else 0
        for line in applied_lines(manifest.applied, manifest.records + withheld):
            say(line)
    from polyseme.results.views.terminal import FittedTable

    show(FittedTable((("column", False), ("role", False), ("published", False)), done))
    dropped = f", {manifest.dropped:,} dropped for missing values" if manifest.dropped else ""
    from polyseme.kernel.errors import people_words

    whose = "" if manifest.people is None else f" of {people_words(manifest.people.total)}"
    say(f"Released {manifest.records:,} records{whose} ({manifest.rows:,} rows{dropped}) in {out}")
    for item in manifest.sets:
        if item.repeats > 1.0:
            whose = f"one group of {item.shared_by}" if item.shared_by else "one person"
            say(
                f"{item.name}: records of {whose} with one value share a draw, {item.repeats:g} on average: "
                f"intervals are as wide as for {manifest.records / item.repeats:,.0f} records"
            )


def column_lines(release: Release, policy: Policy, columns: Sequence[str]) -> list[tuple[str, str, str]]:
    """Each column of the table and each new one: its name, role, and how it was published."""
    published = {column.name: column for column in release.manifest.columns}
    joined = {part.name: column.name for column in published.values() for part in column.attribute.members}
    lines = []
    for name in dict.fromkeys([*columns, *published]):
        if name in published:
            lines.append((name, published[name].attribute.role.value, published[name].in_words))
        elif name in joined:
            lines.append((name, policy.by_name[name].role.value, f"in {joined[name]}"))
        else:
            lines.append((name, "identifier", "not published"))
    return lines


def _explained(file: Path, force: bool) -> Callable[[Explanation], None]:
    """Shows an explanation on standard error, or writes it into a file."""

    def show(explanation: Explanation) -> None:
        if str(file) == "-":
            say(str(explanation), err=True)
        else:
            from polyseme.cli.console import is_explanation

            write_text(explanation.to_csv(), file, force, is_explanation)

    return show
