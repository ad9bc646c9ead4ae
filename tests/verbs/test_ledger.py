"""What was published about the same people: kept, shown, and asked before the next release."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import polyseme as ps
from polyseme.cli import cli
from polyseme.kernel.files import turn
from polyseme.kernel.randomness import new_key

POLICY = """
attributes:
  id: {role: identifier}
  sex: {role: quasi-identifier}
  ill:
    role: sensitive
    domain: [a, b, c, d, e, f, g, h]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 2, d: 2}}
record-key: id
"""
LYING = POLICY.replace("protect: {semantic-diversity: {l: 2, d: 2}}", "protect: {ldp: {epsilon: 1.5}}").replace(
    "    distance: {line: rank}\n", ""
)


def people(rows: int = 3_000) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "id": range(rows),
            "sex": rng.choice(["f", "m"], rows),
            "ill": rng.choice(list("abcdefgh"), rows, p=[0.3, 0.05, 0.2, 0.1, 0.02, 0.18, 0.1, 0.05]),
        }
    )


def publish(path: Path | None = None, policy: str = POLICY, **options: object) -> ps.Release:
    return ps.anonymize(people(), ps.Policy.loads(policy), path, warn=lambda text: None, **options)  # type: ignore[arg-type]


@pytest.fixture
def key(tmp_path: Path) -> Path:
    new_key(tmp_path / "key")
    return tmp_path / "key"


def test_two_fresh_releases_can_be_intersected() -> None:
    ledger = ps.Ledger()
    for _ in range(2):
        ledger = ps.record(ledger, publish(), "patients")
    (found,) = ps.exposures(ledger).items
    assert (found.releases, found.draws, found.intersected) == (2, 2, True)
    assert found.epsilon == float("inf")
    assert found.alone.exact
    assert found.success.exact
    first = np.array(ledger.publications[-1].learned["ill"])
    mechanism = ledger.publications[0].sets[0].mechanism
    _, channel = mechanism.channel()
    both = first[:, None, None] * channel[:, :, None] * channel[:, None, :]
    assert found.success.low == pytest.approx(both.max(axis=0).sum())
    assert found.single.low == pytest.approx((first[:, None] * channel).max(axis=0).sum())
    assert found.assumed.startswith("as estimated from the release of")


def test_sticky_releases_tell_as_much_as_one(key: Path) -> None:
    ledger = ps.Ledger()
    for rows in (1, 2):
        release = ps.anonymize(
            people().head(1_500 * rows), ps.Policy.loads(POLICY), key_file=key, warn=lambda text: None
        )
        ledger = ps.record(ledger, release, "patients")
    (found,) = ps.exposures(ledger).items
    assert (found.releases, found.draws, found.intersected) == (2, 1, False)
    assert found.alone.high == 0.0
    assert found.success == found.single


def test_sticky_sets_that_changed_are_drawn_again(key: Path) -> None:
    other = POLICY.replace("d: 2}", "d: 3}")
    ledger = ps.record(ps.Ledger(), publish(key_file=key), "patients")
    ledger = ps.record(ledger, publish(policy=other, key_file=key), "patients")
    (found,) = ps.exposures(ledger).items
    assert (found.draws, found.intersected) == (2, True)
    assert "d 2" in found.reasons[0]


def test_epsilons_add_up_over_fresh_releases_and_not_over_sticky_ones(key: Path) -> None:
    fresh = sticky = ps.Ledger()
    for count in (2_900, 3_000):
        table = people().head(count)
        policy = ps.Policy.loads(LYING)
        fresh = ps.record(fresh, ps.anonymize(table, policy, warn=lambda text: None), "all")
        sticky = ps.record(sticky, ps.anonymize(table, policy, key_file=key, warn=lambda text: None), "all")
    (found,) = ps.exposures(fresh).items
    assert found.epsilon == pytest.approx(3.0, rel=1e-6)
    assert found.intersected is False
    assert ps.exposures(fresh).spent("all") == pytest.approx(3.0, rel=1e-6)
    assert ps.exposures(sticky).spent("all") == pytest.approx(1.5, rel=1e-6)
    assert found.success.high > ps.exposures(sticky).items[0].success.high


def test_what_is_published_as_it_is_elsewhere_is_known() -> None:
    bare = POLICY.replace("quasi-identifier}", "sensitive, protect: {ldp: {epsilon: 1}}}")
    bare = bare[: bare.index("  ill:")] + "  ill: {role: quasi-identifier}\n"
    ledger = ps.record(ps.record(ps.Ledger(), publish(), "p"), publish(policy=bare), "p")
    found = {item.attribute: item for item in ps.exposures(ledger).items}
    assert found["ill"].intersected
    assert found["ill"].alone.low == 1.0
    assert "as it is" in found["ill"].reasons[0]


def test_other_people_are_kept_apart() -> None:
    ledger = ps.record(ps.record(ps.Ledger(), publish(), "one"), publish(), "two")
    assert ledger.people == ("one", "two")
    assert not ps.exposures(ledger).intersected
    assert [item.people for item in ps.exposures(ledger, "two").items] == ["two"]
    with pytest.raises(ps.QuestionError, match="no release about 'three'"):
        ps.exposures(ledger, "three")


def test_a_file_holds_everything_and_no_secret(tmp_path: Path, key: Path) -> None:
    file = tmp_path / "ledger.json"
    ps.record(file, publish(tmp_path / "a", key_file=key), "patients")
    ledger = ps.record(file, publish(), "patients")
    assert ps.Ledger.load(file) == ledger
    assert ps.exposures(file) == ps.exposures(ledger)
    text = file.read_text()
    assert key.read_text().strip() not in text
    assert str(tmp_path) not in text
    entry = json.loads(text)["releases"][0]
    assert entry["manifest"] == json.loads((tmp_path / "a" / "manifest.json").read_text())["checksum"]
    assert entry["attributes"][-1]["summary"]["l"] == 2
    assert ps.Exposures.from_dict(json.loads(json.dumps(ps.exposures(ledger).to_dict()))) == ps.exposures(ledger)


def test_a_release_is_recorded_once(tmp_path: Path) -> None:
    release = publish(tmp_path / "a")
    ledger = ps.record(ps.Ledger(), release, "patients")
    with pytest.raises(ps.InvalidInput, match="already"):
        ps.record(ledger, release, "patients")
    with pytest.raises(ps.QuestionError, match="seed"):
        ps.record(ledger, publish(seed=1), "patients")


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"sticky": false', '"sticky": true'),
        lambda text: "[]",
        lambda text: '{"ledger": 9, "releases": [], "checksum": ""}',
        lambda text: '{"ledger": 1}',
    ],
)
def test_a_damaged_file_is_noticed(tmp_path: Path, damage: object) -> None:
    file = tmp_path / "ledger.json"
    ps.record(file, publish(), "patients")
    file.write_text(damage(file.read_text()))  # type: ignore[operator]
    with pytest.raises(ps.InvalidInput, match=r"ledger\.json: not readable as a ledger"):
        ps.Ledger.load(file)


def test_anonymize_asks_the_ledger_and_tells_it(tmp_path: Path) -> None:
    file = tmp_path / "ledger.json"
    with pytest.raises(ps.QuestionError, match="whom the release is about"):
        publish(tmp_path / "a", ledger=file)
    publish(tmp_path / "a", ledger=file, people="patients")
    with pytest.raises(ps.RiskError, match="2 different sets") as refused:
        publish(tmp_path / "b", ledger=file)
    assert refused.value.exit_code == 1
    assert not (tmp_path / "b").exists()
    assert len(ps.Ledger.load(file).publications) == 1
    said: list[str] = []
    ps.anonymize(people(), ps.Policy.loads(POLICY), tmp_path / "b", ledger=file, accept_risk=True, warn=said.append)
    assert any("2 different sets" in text for text in said)
    assert len(ps.Ledger.load(file).publications) == 2
    with pytest.raises(ps.QuestionError, match="seed"):
        publish(ledger=file, seed=1)


def test_sticky_releases_pass_the_ledger(tmp_path: Path, key: Path) -> None:
    file = tmp_path / "ledger.json"
    for rows in (2_000, 3_000):
        ps.anonymize(
            people().head(rows),
            ps.Policy.loads(POLICY),
            key_file=key,
            ledger=file,
            people="patients",
            warn=lambda text: None,
        )
    assert len(ps.Ledger.load(file).publications) == 2


def test_another_key_is_refused_by_the_ledger(tmp_path: Path, key: Path) -> None:
    """Sticky releases with two keys are two draws."""
    file = tmp_path / "ledger.json"
    new_key(tmp_path / "wrong")
    publish(key_file=key, ledger=file, people="patients")
    with pytest.raises(ps.RiskError, match="another key"):
        publish(key_file=tmp_path / "wrong", ledger=file)
    publish(key_file=key, ledger=file)
    publish(key_file=tmp_path / "wrong", ledger=file, accept_risk=True)
    (found,) = ps.exposures(file).items
    assert (found.releases, found.draws, found.intersected) == (3, 2, True)


def test_sets_that_may_lie_only_warn(tmp_path: Path) -> None:
    file, said = tmp_path / "ledger.json", list[str]()
    for rows in (2_000, 3_000):
        ps.anonymize(people().head(rows), ps.Policy.loads(LYING), ledger=file, people="p", warn=said.append)
    assert any("2 draws about 'p' have an epsilon of 3 together" in text for text in said)


def test_the_commands(tmp_path: Path) -> None:
    people().write_csv(tmp_path / "people.csv")
    (tmp_path / "policy.yaml").write_text(POLICY)
    publish(tmp_path / "a")
    run = CliRunner().invoke
    file = str(tmp_path / "ledger.json")
    assert run(cli, ["ledger", "add", file, str(tmp_path / "a"), "--people", "patients"]).exit_code == 0
    shown = run(cli, ["ledger", "show", file])
    assert shown.exit_code == 0
    assert "patients" in shown.output
    document = json.loads(run(cli, ["ledger", "show", file, "--json"]).output)
    assert document["exposures"][0]["draws"] == 1
    command = ["anonymize", str(tmp_path / "policy.yaml"), str(tmp_path / "people.csv"), "--out", str(tmp_path / "b")]
    refused = run(cli, [*command, "--ledger", file])
    assert isinstance(refused.exception, ps.RiskError)
    assert not (tmp_path / "b").exists()
    assert run(cli, [*command, "--ledger", file, "--accept-risk"]).exit_code == 0
    assert "yes" in run(cli, ["ledger", "show", file]).output


ADDING = """
import sys, time
from pathlib import Path
import polyseme as ps
release, ledger, ready = sys.argv[1:]
release = ps.Release.open(release)
Path(ready).touch()
while len(list(Path(ready).parent.glob("ready-*"))) < 2:
    time.sleep(0.001)
ps.record(ledger, release, "patients")
"""


def test_processes_that_add_at_the_same_moment_lose_nothing(tmp_path: Path) -> None:
    """Each begins when the other is ready too; without turns both read the empty ledger, and the last one wins."""
    for name in ("one", "two"):
        publish(tmp_path / name)
    ledger = tmp_path / "ledger.json"
    running = [
        subprocess.Popen([sys.executable, "-c", ADDING, tmp_path / name, ledger, tmp_path / f"ready-{name}"])
        for name in ("one", "two")
    ]
    assert [process.wait(timeout=120) for process in running] == [0, 0]
    assert len(ps.Ledger.load(ledger).publications) == 2
    assert not list(tmp_path.glob(".*lock"))


PUBLISHING = """
import sys, time
from pathlib import Path
import polars as pl
import polyseme as ps
from polyseme.kernel.errors import RiskError
folder, name = Path(sys.argv[1]), sys.argv[2]
people = pl.read_parquet(folder / "people.parquet")
policy = ps.Policy.load(folder / "policy.yaml")
(folder / f"ready-{name}").touch()
while len(list(folder.glob("ready-*"))) < 2:
    time.sleep(0.001)
try:
    ps.anonymize(
        people, policy, folder / name, warn=lambda text: None, ledger=folder / "ledger.json", people="patients"
    )
except RiskError:
    sys.exit(3)
"""


def test_of_two_fresh_releases_at_the_same_moment_the_second_is_refused(tmp_path: Path) -> None:
    people().write_parquet(tmp_path / "people.parquet")
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    running = [subprocess.Popen([sys.executable, "-c", PUBLISHING, tmp_path, name]) for name in ("one", "two")]
    assert sorted(process.wait(timeout=120) for process in running) == [0, 3]
    assert len(ps.Ledger.load(tmp_path / "ledger.json").publications) == 1


def test_a_turn_ends_with_its_process(tmp_path: Path) -> None:
    """A process that is killed in its turn keeps no other waiting."""
    script = "import sys, os; from pathlib import Path; from polyseme.kernel.files import turn\n"
    script += "with turn(Path(sys.argv[1])): os._exit(9)"
    killed = subprocess.run([sys.executable, "-c", script, tmp_path / "ledger.json"], check=False)
    assert killed.returncode == 9
    with turn(tmp_path / "ledger.json"):
        pass
    assert not list(tmp_path.glob(".*lock"))
