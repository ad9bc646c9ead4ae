"""Every command as a user runs it: output, exit codes, bad input, and nothing of the data where it must not be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from command_line import polyseme

ROOT = Path(__file__).resolve().parents[2]
MARK = "MARKEDVALUE77"

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


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, a policy and a release."""
    folder = tmp_path_factory.mktemp("work")
    rows = 2_000
    pl.DataFrame(
        {
            "name": [f"{MARK}-{number}" for number in range(rows)],
            "age": [20 + number % 50 for number in range(rows)],
            "level": ["abcdefgh"[(number * number) % 8] for number in range(rows)],
        }
    ).write_csv(folder / "people.csv")
    (folder / "policy.yaml").write_text(POLICY)
    result = polyseme("anonymize", "policy.yaml", "people.csv", "--out", "release", cwd=folder)
    assert result.returncode == 0, result.stderr
    return folder


def test_help_is_instant() -> None:
    code = (
        "import sys; from polyseme.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'polars', 'scipy', 'altair', 'pyarrow', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_version() -> None:
    assert polyseme("--version").stdout.startswith("polyseme ")


def test_json_is_one_document_and_nothing_else(work: Path) -> None:
    for arguments in (
        ("plan", "policy.yaml", "--records", 1000),
        ("verify", "release"),
        ("estimate", "release", "--of", "level"),
        ("evaluate", "release", "--original", "people.csv", "--of", "level"),
        ("attack", "release"),
    ):
        result = polyseme(*arguments, "--json", cwd=work)
        assert result.returncode == 0, (arguments, result.stderr)
        json.loads(result.stdout)


def test_json_keys_of_the_contract(work: Path) -> None:
    plan = json.loads(polyseme("plan", "policy.yaml", "--records", 1000, "--json", cwd=work).stdout)
    keys = {"mechanism", "l", "d", "p", "feasible", "identifiable", "worst_posterior", "epsilon", "expected_mse"}
    assert keys <= plan["attributes"]["level"].keys()
    verify = json.loads(polyseme("verify", "release", "--json", cwd=work).stdout)
    assert verify["holds"] is True
    assert {"model", "attribute", "parameters", "holds", "worst"} <= verify["verdicts"][0].keys()
    estimate = json.loads(polyseme("estimate", "release", "--of", "level", "--json", cwd=work).stdout)
    assert {"level", "estimate", "stderr", "low", "high"} <= estimate["cells"][0].keys()
    evaluate = json.loads(
        polyseme("evaluate", "release", "--original", "people.csv", "--of", "level", "--json", cwd=work).stdout
    )
    assert {"mse", "l1", "l2", "hellinger"} <= evaluate.keys()
    attack = json.loads(polyseme("attack", "release", "--json", cwd=work).stdout)
    assert {"attack", "attribute", "success", "bound", "exceeded"} <= attack["findings"][0].keys()
    risk = json.loads(polyseme("risk", "people.csv", "--qi", "age", "--sensitive", "level", "--json", cwd=work).stdout)
    assert {"k", "l", "t", "unique", "classes"} <= risk.keys()


def test_csv_of_an_estimate_reads_back(work: Path) -> None:
    result = polyseme("estimate", "release", "--of", "level", "--by", "age", "--csv", cwd=work)
    frame = pl.read_csv(result.stdout.encode())
    assert frame.columns == ["age", "level", "estimate", "stderr", "low", "high"]
    assert frame.height == 50 * 8
    assert abs(frame["estimate"].sum() - 2_000) < 1e-3


def test_charts_and_reports_are_written_whole(work: Path, tmp_path: Path) -> None:
    result = polyseme("estimate", "release", "--of", "level", "--chart", tmp_path / "c.png", cwd=work)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    result = polyseme("report", "release", "--out", tmp_path / "r.html", cwd=work)
    assert result.returncode == 0, result.stderr
    assert "<html" in (tmp_path / "r.html").read_text()
    again = polyseme("report", "release", "--out", tmp_path / "r.html", cwd=work)
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_frontier(work: Path, tmp_path: Path) -> None:
    result = polyseme("plan", "policy.yaml", "--records", 1000, "--frontier", "--chart", tmp_path / "f.svg", cwd=work)
    assert result.returncode == 0, result.stderr
    assert "<svg" in (tmp_path / "f.svg").read_text()


def test_init_drafts_a_policy_that_loads_and_works(work: Path, tmp_path: Path) -> None:
    drafted = tmp_path / "draft.yaml"
    assert polyseme("init", "people.csv", "--out", drafted, cwd=work).returncode == 0
    text = drafted.read_text()
    assert "role: identifier" in text
    assert "#" in text
    assert MARK not in text


def test_adult_the_whole_way(adult: Path, tmp_path: Path) -> None:
    assert polyseme("init", adult, "--out", tmp_path / "policy.yaml").returncode == 0
    steps = [
        ("plan", "policy.yaml", "--records", 30162),
        ("anonymize", "policy.yaml", adult, "--out", "release"),
        ("verify", "release"),
        ("estimate", "release", "--of", "occupation", "--by", "sex"),
        # Not by sex, which the draft generalizes: the original does not say who is shown as *.
        ("evaluate", "release", "--original", adult, "--of", "occupation"),
        ("report", "release", "--original", adult, "--out", "report.html"),
    ]
    for step in steps:
        result = polyseme(*step, cwd=tmp_path)
        assert result.returncode == 0, (step, result.stderr)


def test_verify_any_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("zip;ill\n1*;flu\n1*;cold\n2*;flu\n2*;flu\n")
    (tmp_path / "p.yaml").write_text(
        "attributes: {zip: {role: quasi-identifier}, ill: {role: sensitive}}\n"
        "models: [{k-anonymity: {k: 2}}, {distinct-diversity: {l: 2}}]\n"
    )
    result = polyseme("verify", "t.csv", "--policy", "p.yaml", "--json", cwd=tmp_path)
    assert result.returncode == 1
    assert [verdict["holds"] for verdict in json.loads(result.stdout)["verdicts"]] == [True, False]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("plan", "none.yaml"), "no such policy file"),
        (("plan", "broken.yaml"), "problems"),
        (("plan", "impossible.yaml"), ""),
        (("anonymize", "policy.yaml", "none.csv", "--out", "x"), "no such file"),
        (("anonymize", "policy.yaml", "empty.csv", "--out", "x"), "empty"),
        (("anonymize", "policy.yaml", "header.csv", "--out", "x"), "no records"),
        (("anonymize", "policy.yaml", "double.csv", "--out", "x"), "more than once"),
        (("anonymize", "policy.yaml", "column.csv", "--out", "x"), "no such column"),
        (("anonymize", "policy.yaml", "value.csv", "--out", "x"), "not in the declared domain"),
        (("anonymize", "impossible.yaml", "people.csv", "--out", "x"), "$.attributes.level.protect"),
        (("anonymize", "policy.yaml", "people.csv", "--out", "release"), "exists already"),
        (("anonymize", "bins.yaml", "people.csv", "--out", "x"), "2,000 values"),
        (("verify", "nowhere"), "no release here"),
        (("verify", "newer"), "newer"),
        (("verify", "people.csv"), "needs a policy"),
        (("estimate", "release", "--of", "age"), "published as it is"),
        (("estimate", "release", "--of", "levle"), "did you mean 'level'"),
        (("estimate", "release", "--of", "level", "--estimator", "lm"), "no estimator 'lm'"),
        (("evaluate", "release", "--original", "column.csv", "--of", "level"), "no column"),
        (("key", "new", "policy.yaml"), "already"),
        (("risk", "absent.csv"), "no such file"),
        (("risk", "double.csv"), "columns 2 and 4"),
        (("risk", "people.csv", "--qi", "aeg", "--sensitive", "level"), "did you mean 'age'"),
        (("frobnicate",), "No such command"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_bad_input_is_explained(work: Path, arguments: tuple[str, ...], word: str) -> None:
    files = {
        "empty.csv": "",
        "header.csv": "name,age,level\n",
        "double.csv": "name,age,level,age\n1,2,a,3\n",
        "column.csv": "name,age\n1,2\n",
        "value.csv": f"name,age,level\n1,2,{MARK}\n",
        "broken.yaml": "attributes: {a: {rle: x}, b: {role: y}}\n",
        "impossible.yaml": POLICY.replace("{l: 2, d: 2}", "{l: 5, d: 4}"),
        "bins.yaml": POLICY.replace(
            "domain: [a, b, c, d, e, f, g, h]\n    distance: {line: rank}", "bins: [0, 1, 2, 3, 4, 5, 6]"
        ),
    }
    for name, text in files.items():
        (work / name).write_text(text)
    (work / "newer").mkdir(exist_ok=True)
    (work / "newer" / "manifest.json").write_text('{"format": 99}')
    before = sorted(path.name for path in work.iterdir())
    result = polyseme(*arguments, cwd=work)
    assert result.returncode == 2, result.stdout + result.stderr
    assert word in result.stderr + result.stdout
    assert MARK not in result.stderr + result.stdout
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in work.iterdir()) == before, "nothing half-written"


def test_a_marked_value_appears_in_no_output(work: Path, tmp_path: Path) -> None:
    table = pl.read_csv(work / "people.csv").with_columns(level=pl.lit(MARK), age=pl.lit(MARK))
    table.write_csv(tmp_path / "marked.csv")
    (tmp_path / "policy.yaml").write_text(POLICY.replace("age: {role", "age: {type: integer, role"))
    (tmp_path / "taxonomy.yaml").write_text(
        "attributes: {name: {role: identifier}, age: {role: insensitive}, level: {role: sensitive,"
        " distance: {taxonomy: icd10}, protect: {semantic-diversity: {l: 2, d: 2}}}}"
    )
    (tmp_path / "models.yaml").write_text(
        "attributes: {age: {role: quasi-identifier}, level: {role: sensitive}}\n"
        "models: [{k-anonymity: {k: 99999}}, {distinct-diversity: {l: 2}}, {closeness: {t: 0.1}}]\n"
    )
    release = work / "release"
    for arguments in (
        ("plan", "policy.yaml", "--data", "marked.csv"),
        ("plan", "taxonomy.yaml", "--data", "marked.csv"),
        ("anonymize", "policy.yaml", "marked.csv", "--out", "x"),
        ("anonymize", "taxonomy.yaml", "marked.csv", "--out", "x"),
        ("verify", "marked.csv", "--policy", "models.yaml"),
        ("verify", "marked.csv", "--policy", "models.yaml", "--json"),
        ("evaluate", release, "--original", "marked.csv"),
        ("attack", release, "--original", "marked.csv"),
        ("report", release, "--original", "marked.csv", "--out", "r.html"),
        ("taxonomy", "check", "icd10", "marked.csv", "--column", "level"),
        ("hierarchy", "check", "intervals: [5]", "marked.csv", "--column", "level"),
        ("hierarchy", "show", "intervals: [5]", "--values", "marked.csv", "--column", "level"),
        ("init", "policy.yaml"),
        ("risk", "marked.csv"),
        ("risk", "marked.csv", "--qi", "age,name", "--sensitive", "level,age", "--json"),
        ("risk", "marked.csv", "--qi", "level,nmae"),
    ):
        result = polyseme(*arguments, cwd=tmp_path)
        assert MARK not in result.stdout + result.stderr, arguments
        assert "Internal error" not in result.stderr, (arguments, result.stderr)


def test_warnings_before_publishing(work: Path, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY + "repeats: true\n")
    result = polyseme("anonymize", "policy.yaml", work / "people.csv", "--out", "r", "--seed", 1, cwd=tmp_path)
    assert result.returncode == 0
    assert "intersected" in result.stderr
    assert "not for publication" in result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    result = polyseme("completion", shell)
    assert result.returncode == 0
    assert "_POLYSEME_COMPLETE" in result.stdout


def test_keys(tmp_path: Path) -> None:
    assert polyseme("key", "new", tmp_path / "k").returncode == 0
    assert (tmp_path / "k").stat().st_mode & 0o077 == 0


def test_three_protected_attributes_by_two_untouched_ones(tmp_path: Path) -> None:
    rows = 3_000
    pl.DataFrame(
        {
            "sex": ["fm"[number % 2] for number in range(rows)],
            "region": ["nsw"[number % 3] for number in range(rows)],
            "level": ["abcdefgh"[number * number % 8] for number in range(rows)],
            "job": ["clerk", "nurse", "smith", "cook"] * (rows // 4),
            "mood": ["good", "fair", "poor"] * (rows // 3),
        }
    ).write_csv(tmp_path / "people.csv")
    (tmp_path / "policy.yaml").write_text(
        "attributes:\n  sex: {role: quasi-identifier}\n  region: {role: quasi-identifier}\n"
        "  level: {role: sensitive, domain: [a, b, c, d, e, f, g, h], distance: {line: rank},"
        " protect: {semantic-diversity: {l: 2, d: 2}}}\n"
        "  job: {role: sensitive-qid, domain: [clerk, cook, nurse, smith], protect: {diversity: {l: 2}}}\n"
        "  mood: {role: sensitive-qid, domain: [good, fair, poor], protect: {ldp: {epsilon: 2.0, size: 1}}}\n"
    )
    assert polyseme("anonymize", "policy.yaml", "people.csv", "--out", "r", cwd=tmp_path).returncode == 0
    command = ("estimate", "r", "--of", "level,job,mood", "--by", "sex,region", "--estimator", "ml")
    shown = polyseme(*command, "--chart", "chart.svg", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "there are too few records for a table this detailed" in " ".join(shown.stdout.split())
    assert "<svg" in (tmp_path / "chart.svg").read_text()
    document = json.loads(polyseme(*command, "--json", cwd=tmp_path).stdout)
    table = pl.read_csv(polyseme(*command, "--csv", cwd=tmp_path).stdout.encode())
    assert table.columns == ["sex", "region", "level", "job", "mood", "estimate", "stderr", "low", "high"]
    assert table.height == len(document["cells"]) == 6 * 8 * 4 * 3
    assert table.equals(pl.DataFrame(document["cells"], infer_schema_length=None).select(table.columns))
    assert abs(table["estimate"].sum() - rows) < 1e-6


@pytest.mark.parametrize(
    "arguments",
    [
        ("init", "people.csv", "--out", "LINK"),
        ("plan", "policy.yaml", "--chart", "LINK.svg"),
        ("anonymize", "policy.yaml", "people.csv", "--out", "LINK"),
        ("anonymize", "policy.yaml", "people.csv", "--out", "LINK/below"),
        ("estimate", "release", "--of", "level", "--chart", "LINK.svg"),
        ("report", "release", "--out", "LINK"),
        ("demo", "--records", "100", "--out", "LINK"),
        ("key", "new", "LINK"),
    ],
    ids=lambda arguments: " ".join(arguments),
)
@pytest.mark.parametrize("force", [False, True])
def test_no_command_follows_a_link_that_leads_to_nothing(
    work: Path, tmp_path: Path, arguments: tuple[str, ...], force: bool
) -> None:
    if force and arguments[0] == "key":
        pytest.skip("a key is never overwritten")
    for name in ("LINK", "LINK.svg"):
        (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    placed = [str(tmp_path / part) if part.startswith("LINK") else part for part in arguments]
    result = polyseme(*placed, *(["--force"] if force else []), cwd=work)
    assert result.returncode == 2, result.stderr
    assert "dangling symbolic link" in result.stderr or "the file already exists" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["LINK", "LINK.svg"]
    assert all(path.is_symlink() for path in tmp_path.iterdir())


def test_a_key_that_does_not_fit_on_the_disk_leaves_nothing(tmp_path: Path) -> None:
    """The limit on the size of files stands for a full disk: writing stops in the middle."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10));"
        "from polyseme.cli import main; main(['key', 'new', sys.argv[1]])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "secret.key")], capture_output=True, text=True, check=False
    )
    assert run.returncode == 2, run.stderr
    assert "File too large" in run.stderr
    assert not list(tmp_path.iterdir())
