"""Without the extras everything works but what they are for, and that says what is missing."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import polyseme as ps
from polyseme.cli import main
from polyseme.demo.walkthrough import INCOME_POLICY, income_table
from polyseme.kernel.errors import QuestionError
from polyseme.kernel.plugins import EXTRAS, installed, require

ROOT = Path(__file__).resolve().parents[2]
PIP = "pip install 'polyseme[charts]'"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, a policy and a release of it."""
    folder = tmp_path_factory.mktemp("extras")
    income_table(1_000).write_parquet(folder / "people.parquet")
    (folder / "policy.yaml").write_text(INCOME_POLICY, encoding="utf-8")
    ps.anonymize(folder / "people.parquet", ps.Policy.load(folder / "policy.yaml"), folder / "release")
    return folder


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no extra were installed."""
    for module in (module for modules in EXTRAS.values() for module in modules):
        monkeypatch.setitem(sys.modules, module, None)


def leaves(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code and both outputs of a command."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return int(left.value.code or 0), *capsys.readouterr()


def test_the_extras_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"])
    required = " ".join(project["dependencies"])
    assert not [name for name in ("altair", "vl-convert", "scikit-learn", "pandas") if name in required]


def test_nothing_but_charts_needs_charts(folder: Path) -> None:
    """The whole way in a process that cannot import what draws and what learns."""
    blocked = [*EXTRAS["charts"], *EXTRAS["learn"]]  # pyarrow itself looks for pandas, and trips over a blocked one
    program = f"""
import sys
sys.modules.update(dict.fromkeys({blocked!r}))
import polyseme as ps
policy = ps.Policy.load({str(folder / "policy.yaml")!r})
people = {str(folder / "people.parquet")!r}
assert ps.plan(policy, 1000).usable
release = ps.anonymize(people, policy)
assert ps.verify(release).holds
assert ps.estimate(release, of=["income"], by=["sex"]).values.size == 28
assert ps.evaluate(release, people, of=["income"]) is not None
assert ps.attack(release, people)
page = ps.report(release, people, by="sex")
assert "<svg class" not in page and "polyseme[charts]" in page
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("bare")
def test_a_page_without_charts_has_the_numbers_and_says_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, said = leaves(capsys, "report", folder / "release", "--by", "sex", "--out", folder / "report.html")
    assert code == 0
    assert PIP in said
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert '<svg class="chart"' not in text
    assert 'class="legend"' not in text
    assert text.count("<details open>") == 1
    assert "polyseme[charts]" in text
    for part in ("sex = F", "sex = M", "15-20"):
        assert part in text


@pytest.mark.usefixtures("bare")
def test_what_needs_an_extra_names_it(folder: Path) -> None:
    release = ps.Release.open(folder / "release")
    table = ps.estimate(release, of=["income"])
    with pytest.raises(QuestionError, match=r"polyseme\[charts\]"):
        table.plot()
    with pytest.raises(QuestionError, match=r"polyseme\[pandas\]"):
        table.to_pandas()
    with pytest.raises(QuestionError, match=r"training predictors needs the extra 'learn'"):
        require("learn", "training predictors")
    assert not any(map(installed, EXTRAS))


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("command", [["estimate", "release", "--of", "income"], ["plan", "policy.yaml"]])
def test_a_chart_on_the_command_line_is_refused_before_any_work(
    folder: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    verb, given, *rest = command
    chart = folder / f"{verb}.svg"
    code, out, said = leaves(capsys, verb, folder / given, *rest, "--chart", chart)
    assert code == 2
    assert PIP in said
    assert not out
    assert not chart.exists()


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("store", "extra"), [("sqlite:///reports.db", "collect"), ("postgresql:///reports", "postgres")]
)
def test_a_store_names_the_extra_that_it_needs(store: str, extra: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, said = leaves(capsys, "collect", "status", "--store", store)
    assert (code, out) == (2, "")
    assert f"pip install 'polyseme[{extra}]'" in said


@pytest.mark.usefixtures("bare")
def test_a_collector_names_the_extra_that_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, said = leaves(capsys, "collect", "serve", "--store", "postgresql:///reports")
    assert code == 2
    assert "pip install 'polyseme[collect]'" in said
