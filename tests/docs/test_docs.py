"""README, documentation and help texts are executed as they stand."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import polars as pl
import pytest
from command_line import Result, polyseme
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from polyseme.cli import cli
from polyseme.collection.operations import open_document
from polyseme.collection.store import Credential, State, open_store
from polyseme.collection.survey import Survey
from polyseme.demo.walkthrough import INCOME_POLICY, income_table
from polyseme.device.reports import answer

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "docs"))

import check  # noqa: E402 - it lives beside the documentation

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.S | re.M)


def blocks(page: Path, language: str) -> list[str]:
    return [text for name, text in BLOCK.findall(page.read_text(encoding="utf-8")) if name == language]


ON_SPARK = ROOT / "docs" / "beyond-one-machine.md"
"""Needs a server: see tests/engines/spark/test_spark_docs.py."""
WITH_PYTHON = [page for page in PAGES if page != ON_SPARK and blocks(page, "python")]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_python_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "example"}
    for text in blocks(page, "python"):
        exec(compile(text, name_of(page), "exec"), namespace)  # noqa: S102 - our own documentation


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A shell line as a user types it, with `polyseme` being the package under test."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    script = f'polyseme() {{ "{sys.executable}" -m polyseme "$@"; }}\n{command}'
    return subprocess.run(
        ["bash", "-euc", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


SHELL = re.compile(r"[|<>;&$`]")


def example(line: str, folder: Path) -> Result | subprocess.CompletedProcess[str]:
    """One command: in this process, which imported everything long ago, unless it takes a shell to understand it."""
    return run(line, folder) if SHELL.search(line) else polyseme(*shlex.split(line, comments=True)[1:], cwd=folder)


def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    income_table(3_000).write_csv(tmp_path / "people.csv")
    for command in [line for text in blocks(ROOT / "README.md", "sh") for line in text.splitlines()]:
        result = example(command, tmp_path)
        assert result.returncode == 0, (command, result.stderr)
    assert (tmp_path / "report.html").stat().st_size > 10_000


def helps(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """The help text of a command and of those below it, by what a user types."""
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from helps(below, click.Context(below, info_name=name, parent=context))


HELPS = dict(helps(cli, click.Context(cli, info_name="polyseme", max_content_width=120)))
EXAMPLE = re.compile(r"^ +(?:Example: )?(polyseme \S.*)$", re.M)
ELSEWHERE = (
    ("polyseme demo", "polyseme demo --records 2000"),
    ("of disease", "of income"),
    ("--out campaign", "--out campaign-2"),
    ("collect purge", "collect purge --yes"),
    ("collect demo", "collect demo --devices 200"),
    ("reproduce posterior", "reproduce posterior --jobs 1"),
)
"""What the examples leave out, call by another name than the table at hand, or do at a length that tests need not."""


LEVELS = """\
attributes:
  id: {role: identifier}
  age: {role: quasi-identifier, hierarchy: {intervals: [10, 20]}}
  sex: {role: quasi-identifier, hierarchy: suppress}
  income: {role: sensitive, protect: {diversity: {l: 3}}}
models: [{k-anonymity: {k: 20}}]
method: {full-domain: {loss: loss, suppression: 0.05}}
"""


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the examples speak of."""
    folder = tmp_path_factory.mktemp("examples")
    people = income_table(3_000)
    people.select("age", diagnosis=pl.lit("J45")).write_csv(folder / "patients.csv")
    people.write_csv(folder / "people.csv")
    people.head(50).write_csv(folder / "table.csv")
    visits = pl.concat([people.head(200).with_row_index("patient")] * 2)
    visits.write_csv(folder / "visits.csv")
    for number, rows in enumerate(people.iter_slices(2_000)):
        rows.write_csv(folder / f"people-{number}.csv")
    (folder / "policy.yaml").write_text(INCOME_POLICY)
    people.group_by("age", "sex", "income").len("number").write_csv(folder / "income-by-age-sex.csv")
    (folder / "models.yaml").write_text(
        "attributes: {sex: {role: quasi-identifier}, income: {role: sensitive}}\nmodels: [{k-anonymity: {k: 2}}]\n"
    )
    (folder / "visits.yaml").write_text(
        INCOME_POLICY.replace("attributes:", "record-key: patient\nattributes:\n  patient: {role: identifier}", 1)
        + "models: [{k-anonymity: {k: 1}}]\n"
    )
    (folder / "levels.yaml").write_text(LEVELS)
    _survey(folder)
    made = ("release --seed 1", "published", "before --ledger ledger.json --people patients")
    commands = [f"polyseme anonymize policy.yaml people.csv --out {rest}" for rest in made]
    for command in (*commands, "polyseme anonymize visits.yaml visits.csv --out visits"):
        result = example(command, folder)
        assert result.returncode == 0, result.stderr
    return folder


def _survey(folder: Path) -> None:
    """A campaign: what it is made of, itself, and a key to sign it with."""
    (folder / "survey.yaml").write_text(
        "attributes:\n  sex: {role: quasi-identifier, domain: [f, m]}\n"
        "  income: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}}\n"
    )
    (folder / "questions.yaml").write_text(
        "name: incomes\ntitle: Incomes\nquestions: {sex: Your sex, income: Your income}\n"
        "collection: {planned: 5000, purpose: To see., contact: survey@example.org}\n"
    )
    key = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(key)
    result = example("polyseme campaign new survey.yaml --questions questions.yaml --out campaign", folder)
    assert result.returncode == 0, result.stderr


def _collected(command: str, workplace: Path, folder: Path) -> None:
    """A store as a command of `collect` finds it."""
    document = (workplace / "campaign" / "campaign.json").read_bytes()
    if command == "invite":
        document = document.replace(b'"tokens":"none"', b'"tokens":"invitation"')
    store = open_store(f"sqlite:///{folder}/reports.db")
    store.add_credential(Credential("ben", "analyst", bytes(32)))
    if command not in ("", "open"):
        survey = Survey.read(document)
        open_document(store, document)
        reports = [
            answer(survey.campaign, {"sex": "f", "income": "c"}) for _ in range(100 if command == "release" else 0)
        ]
        store.append([survey.entry(report.body(survey.size)) for report in reports])
        if command in ("release", "purge"):
            store.move(survey.id, State.CLOSED)
    store.close()


ELSEWHERE_TRIED = ("collect serve", "collect relay", "issuer serve", "polyseme workbench", "--engine spark")
"""Until the user stops them: see tests/collection and tests/workbench; with a cluster: see tests/engines/spark."""


@pytest.mark.parametrize("path", HELPS)
def test_the_examples_of_every_help_text_run(
    path: str, workplace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    examples = EXAMPLE.findall(HELPS[path])
    assert examples or path == "polyseme key", f"{path} --help has no example"
    # Examples that begin with a table of one's own make the policy and the release themselves.
    own = any(" init " in written for written in examples)
    for place in workplace.iterdir():
        if place.suffix == ".yaml" and path.startswith("polyseme policy"):
            shutil.copy(place, tmp_path / place.name)
        elif not own or place.suffix == ".csv":
            (tmp_path / place.name).symlink_to(place)
    if path.startswith("polyseme collect"):
        _collected(path.removeprefix("polyseme collect").strip(), workplace, tmp_path)
    for written in examples:
        if any(words in written for words in ELSEWHERE_TRIED):
            continue
        line = written.replace("--out release", "--out release-2") if not own else written
        for words, others in ELSEWHERE:
            line = line.replace(words, others)
        result = example(line, tmp_path)
        assert result.returncode == 0, (line, result.stderr)


def test_documentation_leads_somewhere() -> None:
    result = subprocess.run([sys.executable, "docs/check.py"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_the_check_refuses_words_and_pages_without_a_purpose() -> None:
    page, said = ROOT / "docs" / "policy.md", "# Policies\n\n*Reference: every key.*\n"
    assert check.refused_words(page, said) == check.without_purpose(page, said) == []
    (found,) = check.refused_words(page, said + "A table that Nobody reads.\n")
    assert found.startswith("docs/policy.md:4: 'Nobody'")
    assert check.refused_words(page, "Somebodyness is another word.") == []
    assert check.without_purpose(page, "# Policies\n\nA policy is a file.\n") != []


def test_the_check_finds_long_sentences_long_first_lines_and_british_words() -> None:
    assert check.long_sentences("word " * 40 + ".\n\n" + "more " * 40) == []
    assert len(check.long_sentences("word " * 41)) == 1
    assert check.long_first_lines(f'def _f():\n    """{"x" * 90}"""\n') == []
    assert check.long_first_lines(f'def _f():\n    """{"x" * 91}"""\n') == ["x" * 91]
    assert check.british("A neighbor of another color.") == []
    assert check.british("A neighbour of another colour.") == ["neighbour", "colour"]
