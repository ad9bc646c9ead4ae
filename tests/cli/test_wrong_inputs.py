"""Every command with every wrong input: exit code 2, one clear message that names the place, nothing written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from command_line import polyseme

MARK = "QQMARKQQ"
POLICY = """
attributes:
  name: {role: identifier}
  age: {role: quasi-identifier}
  level:
    role: sensitive
    domain: [a, b, c, d, e, f, g, h]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 2, d: 2}}
"""
MODELS = "attributes: {age: {role: quasi-identifier}, level: {role: sensitive}}\nmodels: [{k-anonymity: {k: 2}}]\n"
JUNK = bytes(np.random.default_rng(7).integers(128, 256, 4_000, dtype=np.uint8))
HEADER = "name,age,level\n"

TABLES: Mapping[str, str | bytes] = {
    "empty.csv": "",
    "junk.csv": JUNK,
    "junk.parquet": JUNK,
    "junk.arrow": JUNK,
    "double.csv": f"name,age,level,age,level\n{MARK},2,a,3,b\n",
    "ragged.csv": HEADER + f"{MARK},2,a\n{MARK},2\n{MARK},3,a,{MARK}\n",
    "quote.csv": HEADER + f'{MARK},2,"a\n{MARK},3,b\n',
    "policy.yaml": POLICY,
}
WHOLE_TABLES = ("absent.csv", "folder", "release", *TABLES)

POLICIES: Mapping[str, str | bytes] = {
    "empty.yaml": "",
    "junk.yaml": JUNK,
    "list.yaml": "- 1\n- 2\n",
    "word.yaml": "hello\n",
    "syntax.yaml": "attributes:\n  a: {role: sensitive\n  b: [\n",
    "tabs.yaml": "attributes:\n\ta: {role: sensitive}\n",
    "twice.yaml": "attributes:\n  a: {role: identifier}\n  a: {role: identifier}\n",
    "keys.yaml": POLICY.replace("role: identifier", "rle: identifier"),
    "roles.yaml": POLICY.replace("role: identifier", "role: identifer"),
    "promise.yaml": POLICY.replace("semantic-diversity", "semantic-divresity"),
    "lmany.yaml": POLICY.replace("l: 2", "l: many"),
    "distance.yaml": POLICY.replace("line: rank", "lnie: rank"),
    "tree.yaml": POLICY.replace("line: rank", "tree: absent-tree.csv"),
    "model.yaml": POLICY + "models: [{k-anonimity: {k: 2}}, {k-anonymity: {k: 0}}]\n",
    "method.yaml": POLICY + "method: full-doman\n",
    "table.yaml": POLICY + "table: {encoding: utf-99, separator: ab}\n",
}
WHOLE_POLICIES = ("absent.yaml", "folder", "release", "people.csv", *POLICIES)


def _manifest(change: Callable[[dict[str, object]], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / "manifest.json"
        document = json.loads(path.read_text())
        path.write_text(json.dumps(change(document)))

    return damage


def _write(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


DAMAGES: Mapping[str, Callable[[Path], None]] = {
    "no-data": lambda folder: (folder / "data.parquet").unlink(),
    "no-manifest": lambda folder: (folder / "manifest.json").unlink(),
    "junk-data": _write("data.parquet", JUNK),
    "empty-data": _write("data.parquet", b""),
    "junk-manifest": _write("manifest.json", JUNK),
    "empty-manifest": _write("manifest.json", b""),
    "half-manifest": lambda folder: (folder / "manifest.json").write_text(
        (folder / "manifest.json").read_text()[:200]
    ) and None,
    "list-manifest": _manifest(lambda document: [document]),
    "newer": _manifest(lambda document: {**document, "format": 99}),
    "changed": _manifest(lambda document: {**document, "records": 7}),
    "keyless": _manifest(lambda document: {"format": document["format"]}),
}  # fmt: skip
RELEASES = ("absent", "folder", "people.csv", "policy.yaml", *DAMAGES)

TABLE_COMMANDS = (
    "init {}",
    "plan policy.yaml --data {}",
    "anonymize policy.yaml {} --out out",
    "verify {} --policy models.yml",
    "risk {}",
    "attack release --original {}",
    "evaluate release --original {} --of level",
    "report release --original {} --out out.html",
    "prior from-table {} --of level --epsilon 1",
    "taxonomy check icd10 {} --column level",
    "hierarchy check suppress {} --column level",
    "hierarchy build intervals 5 {} --column age --out out.csv",
    "hierarchy show suppress --values {} --column level",
)
POLICY_COMMANDS = (
    "plan {}",
    "anonymize {} people.csv --out out",
    "verify people.csv --policy {}",
    "prior from-table people.csv --of level --epsilon 1 --policy {} --out out.csv",
)
RELEASE_COMMANDS = (
    "verify {}",
    "estimate {} --of level",
    "attack {}",
    "attack release --other {}",
    "evaluate {} --original people.csv",
    "report {} --out out.html",
    "prior from-release {} --of level --out out.csv",
    "ledger add out.json {} --people us",
    "anonymize policy.yaml people.csv --out out --earlier {}",
)
OPTIONS: Mapping[str, str] = {
    "frobnicate": "frobnicate",
    "init": "DATA",
    "init people.csv --frob": "--frob",
    "init people.csv --encoding utf-99": "utf-99",
    "init people.csv --separator ab": "separator",
    "init people.csv --out people.csv": "people.csv: exists already",
    "plan policy.yaml --records 0": "--records",
    "plan policy.yaml --records many": "--records",
    "plan policy.yaml --chart out.doc": "out.doc",
    "plan policy.yaml --distribution absent.csv": "absent.csv",
    "plan policy.yaml --distribution level=absent.csv": "absent.csv",
    "plan policy.yaml --distribution levle=stats.csv": "levle",
    "plan policy.yaml --advise --learner 7": "learner",
    "anonymize policy.yaml people.csv": "--out",
    "anonymize policy.yaml people.csv --out release": "release: exists already",
    "anonymize policy.yaml people.csv --out people.csv --force": "people.csv",
    "anonymize policy.yaml people.csv --out out --form wide": "--form",
    "anonymize policy.yaml people.csv --out out --format xls": "--format",
    "anonymize policy.yaml people.csv --out out --engine dask": "--engine",
    "anonymize policy.yaml people.csv --out out --engine spark --format csv": "--format parquet only",
    "anonymize policy.yaml people.csv --out out --memory 10MB": "memory: 10MB is too little: the program itself needs",
    "anonymize policy.yaml people.csv --out out --memory much": "memory: expected a size, got 'much'",
    "anonymize policy.yaml people.csv --out out --rows-per-file 0": "--rows-per-file",
    "anonymize policy.yaml absent/*.csv --out out": "absent/*.csv: there is no folder absent",
    "anonymize policy.yaml folder/*.csv --out out": "folder/*.csv: no file matches this pattern",
    "anonymize policy.yaml ftp://host/people.csv --out out": "ftp://host/people.csv: no such kind of address",
    "anonymize keyed.yml people.csv --out out --key-file absent.key": "absent.key",
    "anonymize keyed.yml people.csv --out out --key-file people.csv": "people.csv: not a key file",
    "anonymize policy.yaml people.csv --out out --ledger people.csv --people us": "people.csv",
    "anonymize policy.yaml people.csv --out out --seed many": "--seed",
    "anonymize policy.yaml column.csv --out out": "$.attributes.level: no such column",
    "anonymize policy.yaml value.csv --out out": "column 'level'",
    "anonymize policy.yaml header.csv --out out": "header.csv",
    "verify people.csv --policy policy.yaml": "no models",
    "risk people.csv --qi aeg": "did you mean 'age'",
    "risk people.csv --sensitive levle": "did you mean 'level'",
    "risk people.csv --qi ,": "--qi",
    "estimate release": "--of",
    "estimate release --of levle": "did you mean 'level'",
    "estimate release --of age": "'age' is published as it is",
    "estimate release --of level --by levle": "by: no attribute 'levle'",
    "estimate release --of level --by level": "by: 'level'",
    "estimate release --of level --by age,age": "by: the same",
    "estimate release --of level --using level": "using: 'level'",
    "estimate release --of level --using levle": "using: no attribute",
    "estimate release --of level,level": "of: the same",
    "estimate release --of level --estimator lm": "no estimator 'lm'",
    "estimate release --of level --level 7": "--level",
    "estimate release --of level --level high": "--level",
    "estimate release --of level --population everybody": "--population",
    "estimate release --of level --nonnegative yes": "--nonnegative",
    "estimate release --of level --csv --json": "--csv and --json",
    "estimate release --of level --chart out.doc": "out.doc",
    "estimate release --of level --chart people.png": "people.png: exists already",
    "attack release --other release": "other: this is the same release",
    "attack release --original column.csv": "column.csv",
    "attack release --original fewer.csv": "fewer.csv",
    "attack release --original value.csv": "value.csv",
    "evaluate release": "--original",
    "evaluate release --original fewer.csv": "fewer.csv",
    "evaluate release --original column.csv": "column.csv",
    "evaluate release --original people.csv --of levle": "did you mean 'level'",
    "evaluate release --original people.csv --by levle": "by: no attribute",
    "evaluate release --original people.csv --estimator lm": "no estimator 'lm'",
    "report release": "--out",
    "report release --out people.csv": "people.csv: exists already",
    "report release --out people.csv --force": "people.csv: not made by this command",
    "report release --out folder --force": "folder: a folder",
    "report release --out out.html --by levle": "by: no attribute 'levle'",
    "report release --out out.html --original fewer.csv": "fewer.csv",
    "ledger add people.csv release --people us": "people.csv",
    "ledger add out.json release": "--people",
    "ledger show absent.json": "absent.json",
    "ledger show people.csv": "people.csv",
    "ledger show folder": "folder",
    "ledger show release/manifest.json": "manifest.json",
    "prior from-release release --of levle": "did you mean 'level'",
    "prior from-release release --of level --by levle": "by: no attribute",
    "prior from-release release --of level --out people.csv": "people.csv: exists already",
    "prior from-table people.csv --of level": "epsilon",
    "prior from-table people.csv --of levle --epsilon 1": "levle",
    "prior from-table people.csv --of level --epsilon nan": "epsilon",
    "prior from-table people.csv --of level --epsilon -1": "epsilon",
    "prior from-table people.csv --of level --epsilon 1 --publish-exact": "exact",
    "demo --records 3": "--records",
    "demo --out people.csv --records 100": "people.csv",
    "demo --out release --records 100": "release",
    "key new people.csv": "people.csv: the file already exists",
    "key new folder": "folder",
    "key new people.csv/below": "people.csv",
    "taxonomy show icd01": "did you mean 'icd10'",
    "taxonomy check icd01 people.csv": "did you mean 'icd10'",
    "taxonomy check icd10 people.csv --column levle": "levle",
    "hierarchy check moods people.csv --column age": "moods",
    "hierarchy check absent-tree.csv people.csv --column age": "absent-tree.csv",
    "hierarchy check suppress people.csv --column aeg": "aeg",
    "hierarchy check suppress people.csv": "--column",
    "hierarchy build circles 5 people.csv --column age": "circles",
    "hierarchy build intervals five people.csv --column age": "intervals",
    "hierarchy build intervals 0 people.csv --column age": "intervals",
    "hierarchy build intervals nan people.csv --column age": "intervals",
    "hierarchy build intervals 5 people.csv --column age --out people.csv": "people.csv: exists already",
    "hierarchy build intervals 5 people.csv --column level": "numbers",
    "hierarchy build dates month people.csv --column level": "dates",
    "hierarchy build dates monht people.csv --column level": "monht",
    "hierarchy show suppress": "values",
    "hierarchy show suppress --values people.csv": "--column",
    "hierarchy show suppress --values people.csv --column age --level 9": "levels",
    "rules show icd01": "icd10",
    "completion tcsh": "tcsh",
}


def _cases() -> Iterator[tuple[str, str]]:
    """Each command with what it must name."""
    for commands, inputs in (
        (TABLE_COMMANDS, WHOLE_TABLES),
        (POLICY_COMMANDS, WHOLE_POLICIES),
        (RELEASE_COMMANDS, RELEASES),
    ):
        yield from ((command.format(wrong), wrong) for command in commands for wrong in inputs)
    yield from OPTIONS.items()


CASES = list(_cases())


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, a policy, a release, and everything that is wrong with such things."""
    folder = tmp_path_factory.mktemp("wrong")
    drawn = np.random.default_rng(3)
    people = pl.DataFrame(
        {
            "name": [f"{MARK}{number}" for number in range(60)],
            "age": [20 + number % 9 for number in range(60)],
            "level": drawn.choice(list("abcdefgh"), 60),
        }
    )
    people.write_csv(folder / "people.csv")
    people.head(30).write_csv(folder / "fewer.csv")
    people.drop("level").write_csv(folder / "column.csv")
    people.with_columns(level=pl.lit(MARK)).write_csv(folder / "value.csv")
    (folder / "header.csv").write_text(HEADER)
    (folder / "models.yml").write_text(MODELS)
    (folder / "keyed.yml").write_text(POLICY + "record-key: name\n")
    (folder / "people.png").write_text("mine")
    (folder / "stats.csv").write_text("level,number\na,1\n")
    (folder / "folder").mkdir()
    (folder / "folder" / "mine.txt").write_text("mine")
    for name, content in (TABLES | POLICIES).items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    made = polyseme("anonymize", "policy.yaml", "people.csv", "--out", "release", cwd=folder)
    assert made.returncode == 0, made.stderr
    for name, damage in DAMAGES.items():
        shutil.copytree(folder / "release", folder / name)
        damage(folder / name)
    return folder


def _everything(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 200
    assert len({command for command, _ in CASES}) == len(CASES)


@pytest.mark.parametrize(("command", "named"), CASES, ids=[command for command, _ in CASES])
def test_wrong_input_is_named_and_nothing_is_written(work: Path, command: str, named: str) -> None:
    before = _everything(work)
    result = polyseme(*command.split(), cwd=work)
    said = result.stdout + result.stderr
    assert result.returncode == 2, said
    assert named in result.stderr
    assert not result.stdout, "a message belongs on standard error, and comes before the work"
    assert "Error: " in result.stderr
    assert not [word for word in ("Traceback", "Internal error", MARK, ".partial", ".lock") if word in said]
    assert _everything(work) == before
