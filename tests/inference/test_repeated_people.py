"""People with several records and sticky decoys: intervals count draws, not records."""

import hashlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme.kernel.randomness import new_key

POLICY = """
record-key: person
attributes:
  person: {role: identifier}
  ward: {role: quasi-identifier}
  state: {role: sensitive, domain: [a, b, c, d, e, f, g, h], distance: {line: rank},
          protect: {semantic-diversity: {l: 2, d: 2}}}
"""


def people(count: int, times: int) -> tuple[pl.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    codes = np.repeat(np.minimum(rng.geometric(0.35, count) - 1, 7), times)
    frame = pl.DataFrame(
        {
            "person": np.repeat(np.arange(count), times).astype(str),
            "ward": np.tile(["north", "south"], len(codes))[: len(codes)],
            "state": ["abcdefgh"[code] for code in codes],
        }
    )
    return frame, np.bincount(codes, minlength=8)


def fixed_key(folder: Path, name: str) -> Path:
    key = folder / f"{name}.key"
    key.write_text(hashlib.sha256(name.encode()).hexdigest())
    key.chmod(0o600)
    return key


@pytest.mark.parametrize(
    ("times", "estimator"),
    [
        pytest.param(1, "ml", marks=pytest.mark.slow),
        (5, "ml"),
        pytest.param(5, "inverse", marks=pytest.mark.slow),
        pytest.param(9, "ml", marks=pytest.mark.slow),
    ],
)
def test_intervals_hold_the_truth_however_many_records_people_have(tmp_path: Path, times: int, estimator: str) -> None:
    frame, truth = people(300, times)
    policy, held, widths = ps.Policy.loads(POLICY), [], []
    for number in range(25):
        release = ps.anonymize(frame, policy, key_file=fixed_key(tmp_path, f"{times} {number}"))
        assert release.manifest["state"].repeats == times
        table = ps.estimate(release, of=["state"], estimator=estimator)
        assert (times == 1) != any("same decoys" in note for note in table.notes)
        held.append((table.low[0] <= truth) & (truth <= table.high[0]))
        widths.append((table.high - table.low).mean() / times)
        by_ward = ps.estimate(release, of=["state"], by=["ward"], estimator=estimator).margin(by=[])
        np.testing.assert_allclose(by_ward.high, table.high, rtol=1e-4, atol=1e-2)
    # Without counting people it was 67% with 5 records each, and 37% with 20.
    assert np.mean(held) >= 0.92
    # 300 draws tell what 300 draws tell: shares are as uncertain as with one record each.
    assert 15 < np.mean(widths) < 60


@pytest.mark.slow
def test_a_group_whose_people_have_more_records_than_others_is_seen(tmp_path: Path) -> None:
    """The manifest states the effect for the whole table; in this ward it was covered by 60% of the intervals."""
    rng, policy, held, widths, honest = np.random.default_rng(1), ps.Policy.loads(POLICY), [], [], []
    for number in range(30):
        codes = rng.choice(8, 1_250, p=rng.dirichlet(np.full(8, 2.0)))
        person = np.concatenate([np.arange(1_200), np.repeat(np.arange(1_200, 1_250), 10)])
        ward, state = np.where(person < 1_200, "north", "south"), codes[person]
        frame = pl.DataFrame(
            {"person": person.astype(str), "ward": ward, "state": ["abcdefgh"[code] for code in state]}
        )
        release = ps.anonymize(frame, policy, key_file=fixed_key(tmp_path, f"ward {number}"))
        assert 3.0 < release.manifest["state"].repeats < 4.5
        table = ps.estimate(release, of=["state"], by=["ward"], estimator="ml")
        south = table.by["ward"].index("south")
        truth = np.bincount(state[ward == "south"], minlength=8)
        held.append((table.low[south] <= truth) & (truth <= table.high[south]))
        widths.append((table.high - table.low)[south].mean())
        # The same 50 people with one record each, ten times over: no analyst can know more about them.
        once = frame.filter(pl.col("ward") == "south").unique("person", maintain_order=True)
        alone = ps.anonymize(once, policy, key_file=fixed_key(tmp_path, f"ward {number}"))
        direct = ps.estimate(alone, of=["state"], estimator="ml")
        honest.append(10 * (direct.high - direct.low).mean())
    assert np.mean(held) >= 0.92
    assert np.mean(widths) <= 1.3 * np.mean(honest)


def test_a_key_that_names_a_few_groups_is_refused(tmp_path: Path) -> None:
    frame, _ = people(300, 1)
    new_key(tmp_path / "secret.key")
    wards = ps.Policy.loads(POLICY.replace("record-key: person", "record-key: ward"))
    with pytest.raises(ps.InvalidInput, match="300 records"):
        ps.anonymize(frame, wards, key_file=tmp_path / "secret.key")
