"""The library logs counts and seconds under `polyseme`, and no trace of the data."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polyseme as ps
from polyseme.cli import main
from polyseme.policy import Policy

MARK = "MARKEDVALUE77"
POLICY = f"""
attributes:
  name: {{role: identifier}}
  group: {{role: quasi-identifier}}
  level: {{role: sensitive, domain: [a, b, c, {MARK}], protect: {{diversity: {{l: 2}}}}}}
"""
TABLE = pl.DataFrame(
    {
        "name": [f"{MARK}-{number}" for number in range(400)],
        "group": [MARK, "x"] * 200,
        "level": ["a", "b", "c", MARK] * 100,
    }
)
STRANGE = TABLE.with_columns(level=pl.lit(f"{MARK}-unheard-of"))


def traces(caplog: pytest.LogCaptureFixture) -> str:
    """All that a handler could write of the records."""
    shown = [f"{record.getMessage()} {record.args!r} {record.exc_info!r} {vars(record)!r}" for record in caplog.records]
    return "\n".join([*shown, caplog.text])


def ours(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.split(".")[0] == "polyseme"]


def test_a_marked_value_leaves_no_trace_in_the_log(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="polyseme")
    rules = Policy.loads(POLICY)
    TABLE.write_csv(tmp_path / "t.csv")
    TABLE.head(0).write_csv(tmp_path / "empty.csv")
    (tmp_path / "headless.csv").write_text("\n".join(f"{MARK},{number},a" for number in range(20)))
    quiet: Any = lambda text: None  # noqa: E731
    ps.init(tmp_path / "t.csv")
    ps.plan(rules, data=tmp_path / "t.csv")
    release = ps.anonymize(tmp_path / "t.csv", rules, tmp_path / "release", warn=quiet)
    ps.save(ps.anonymize(TABLE, rules, warn=quiet), tmp_path / "saved", file_format="csv")
    assert ps.verify(release).holds
    ps.estimate(release, of=["level"], by=["group"])
    ps.evaluate(release, TABLE, of=["level"], by=["group"])
    ps.attack(release, TABLE)
    ps.report(release, TABLE)
    for table in (STRANGE, tmp_path / "headless.csv", tmp_path / "empty.csv"):
        with pytest.raises(ps.PolysemeError):
            ps.anonymize(table, rules, tmp_path / "again", warn=quiet)
    with pytest.raises(ps.PolysemeError):
        ps.evaluate(release, STRANGE.rename({"level": MARK}), of=["level"])
    said = ours(caplog)
    for verb in ("init", "plan", "anonymize", "save", "verify", "estimate", "evaluate", "attack", "report"):
        assert f"{verb}: begins" in said
        assert any(line.startswith(f"{verb}: done in ") for line in said), verb
    assert "anonymize: 400 records, 400 rows, 0 dropped" in said
    assert any(line.startswith("anonymize: ended by TableError after ") for line in said)
    assert MARK not in traces(caplog)


def test_the_library_is_silent_unless_asked(tmp_path: Path) -> None:
    """Not even an error falls through to the handler of last resort; no handler but the empty one is ours."""
    code = (
        "import logging, polyseme\n"
        "logging.getLogger('polyseme').error('x')\n"
        "assert [type(item) for item in logging.getLogger('polyseme').handlers] == [logging.NullHandler]\n"
        "assert not logging.getLogger().handlers"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize(("flag", "more"), [("-v", False), ("--verbose", False), ("-vv", True)])
def test_verbose_logs_to_standard_error_while_the_command_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str, more: bool
) -> None:
    TABLE.write_csv(tmp_path / "t.csv")
    (tmp_path / "p.yaml").write_text(POLICY)
    logger = logging.getLogger("polyseme")
    before = (logger.level, list(logger.handlers))
    with pytest.raises(SystemExit) as left:
        main(
            [
                flag,
                "anonymize",
                str(tmp_path / "p.yaml"),
                str(tmp_path / "t.csv"),
                "--out",
                str(tmp_path / "r"),
                "--json",
            ]
        )
    assert left.value.code == 0
    shown = capsys.readouterr()
    assert "anonymize: 400 records, 400 rows, 0 dropped" in shown.err
    assert ("anonymize: begins" in shown.err) is more
    assert "records, 400 rows" not in shown.out
    assert MARK not in shown.out + shown.err
    assert (logger.level, list(logger.handlers)) == before
