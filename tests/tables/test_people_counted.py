"""With a record-key people are counted, not rows: against a plain count of different people by class."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from draws import Generator, generators, seeds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import polyseme as ps
from polyseme.grouping.application import treat
from polyseme.kernel.errors import ImpossibleError, PolicyError, ReleaseError, TableError
from polyseme.kernel.work import Cancellation
from polyseme.publishing.inputs import source_given
from polyseme.publishing.publication import resolved_for
from polyseme.release import Manifest
from polyseme.release.data import checksum
from polyseme.schema import Role
from polyseme.tables.equivalence_classes import classes_of

POLICY = """
attributes:
  pid: {{role: identifier}}
  age: {{role: quasi-identifier, hierarchy: {{intervals: [5, 10, 20, 40]}}}}
  sex: {{role: quasi-identifier, hierarchy: suppress}}
  zip: {{role: quasi-identifier, hierarchy: {{prefix: 4}}}}
  ill: {{role: sensitive, domain: [a, b, c, d, e, f]}}
models: [{models}]
method: {{{method}}}
{key}
"""
KEYS = ("age", "sex", "zip")
NOTHING = ("*", "*", "*")


def visits(people: int = 400, rows: int = 2, seed: int = 1) -> pl.DataFrame:
    """Some rows for each person, who may move and fall ill with something else in between."""
    rng = np.random.default_rng(seed)
    pid = np.repeat(np.arange(people), rows)
    zips = rng.integers(1000, 1060, people)[pid]
    ill = rng.choice(6, people, p=np.array([6, 5, 4, 3, 2, 1]) / 21)[pid]
    moved, changed = rng.random((2, len(pid))) < np.array([[0.1], [0.2]])
    frame = pl.DataFrame(
        {
            "pid": pid,
            "age": rng.integers(18, 90, people)[pid],
            "sex": rng.choice(["f", "m"], people)[pid],
            "zip": np.where(moved, rng.integers(1000, 1060, len(pid)), zips).astype(str),
            "ill": np.array(list("abcdef"))[np.where(changed, rng.integers(0, 6, len(pid)), ill)],
        }
    )
    return frame.sample(fraction=1.0, shuffle=True, seed=seed)


def policy(models: str, method: str, key: str = "record-key: pid") -> ps.Policy:
    return ps.Policy.loads(POLICY.format(models=models, method=method, key=key))


def recoded(frame: pl.DataFrame, rules: ps.Policy) -> pl.DataFrame:
    """The rows as they would be published, with the key of each."""
    source = source_given(frame, rules)
    made = treat(rules, resolved_for(rules, source), source, 1, Cancellation())
    return pl.concat([pl.DataFrame(pl.from_arrow(batch)) for batch in made.source.batches()])


class ByPeople:
    """A plain count: for each class its people, and for each value of it the people who have it."""

    def __init__(self, rows: pl.DataFrame, keys: tuple[str, ...] = KEYS) -> None:
        self.people: dict[tuple, set] = defaultdict(set)
        self.holders: dict[tuple, dict] = defaultdict(lambda: defaultdict(set))
        self.all: set = set()
        self.table: dict = defaultdict(set)
        for row in rows.iter_rows(named=True):
            shown = tuple(row[key] for key in keys)
            if shown == NOTHING:
                continue
            self.people[shown].add(row["pid"])
            self.holders[shown][row["ill"]].add(row["pid"])
            self.all.add(row["pid"])
            self.table[row["ill"]].add(row["pid"])

    @property
    def fewest(self) -> int:
        return min(map(len, self.people.values()))

    def shares(self) -> Iterator[tuple[int, Counter]]:
        """People of each class, and of them those with each value."""
        for shown, people in self.people.items():
            yield len(people), Counter({value: len(who) for value, who in self.holders[shown].items()})

    @property
    def largest_share(self) -> float:
        return max(max(held.values()) / size for size, held in self.shares())

    @property
    def distance(self) -> float:
        """t with equal ground distances, between distributions of (person, value)."""
        pairs = sum(map(len, self.table.values()))
        whole = {value: len(who) / pairs for value, who in self.table.items()}
        return max(
            sum(abs(held[value] / held.total() - share) for value, share in whole.items()) / 2
            for _, held in self.shares()
        )

    @property
    def effective(self) -> float:
        """The smallest e to the entropy."""
        return min(
            math.exp(-sum(n / held.total() * math.log(n / held.total()) for n in held.values()))
            for _, held in self.shares()
        )

    @property
    def gain(self) -> float:
        """The largest relative gain of a value."""
        whole = {value: len(who) / len(self.all) for value, who in self.table.items()}
        return max(n / size / whole[value] - 1 for size, held in self.shares() for value, n in held.items())


# -- a table, checked ----------------------------------------------------------------------------------------------


CHECKED = """
attributes:
  pid: {role: identifier}
  age: {role: quasi-identifier}
  sex: {role: quasi-identifier}
  zip: {role: quasi-identifier}
  ill: {role: sensitive}
record-key: pid
models:
  - {k-anonymity: {k: 2}}
  - {distinct-diversity: {l: 2}}
  - {frequency-diversity: {l: 2}}
  - {entropy-diversity: {l: 2}}
  - {closeness: {t: 0.5}}
  - {beta-likeness: {beta: 1}}
  - {alpha-k-anonymity: {alpha: 0.5, k: 2}}
  - {recursive-diversity: {c: 3, l: 2}}
"""


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.integers(1, 3), seed=seeds)
def test_a_table_with_a_key_is_checked_by_people(rows: int, seed: int, tmp_path: Path) -> None:
    frame = visits(60, rows, seed).with_columns(pl.col("age") // 40, zip=pl.lit("1"))
    people = ByPeople(frame)
    file = tmp_path / "visits.csv"
    frame.write_csv(file)
    for data in (frame, file):
        found = {verdict.model: verdict for verdict in ps.verify(data, ps.Policy.loads(CHECKED)).verdicts}
        assert {verdict.counts for verdict in found.values()} == {"people"}
        assert found["k-anonymity"].worst == people.fewest
        assert found["distinct-diversity"].worst == min(len(held) for _, held in people.shares())
        assert found["frequency-diversity"].worst == pytest.approx(1 / people.largest_share)
        assert found["alpha-k-anonymity"].worst == pytest.approx(people.largest_share)
        assert found["entropy-diversity"].worst == pytest.approx(people.effective)
        assert found["closeness"].worst == pytest.approx(people.distance)
        assert found["beta-likeness"].worst == pytest.approx(people.gain)
        heads = [(held.most_common(1)[0][1], sum(held.values())) for _, held in people.shares()]
        ratios = [head / (whole - head) if whole > head else math.inf for head, whole in heads]
        assert found["recursive-diversity"].worst == pytest.approx(max(ratios))


def test_without_the_column_rows_are_counted(tmp_path: Path) -> None:
    frame = visits(60, 2).with_columns(pl.col("age") // 40, zip=pl.lit("1"))
    rules = ps.Policy.loads(CHECKED)
    found = ps.verify(frame.drop("pid"), rules).verdicts[0]
    assert found.counts == "rows"
    assert found.worst == min(frame.group_by(KEYS).len()["len"])


def test_wildcards_match_people_once() -> None:
    """A class of a combination with a hole holds all who match; no person is counted twice in it."""

    @settings(max_examples=20)
    @given(generators())
    def check(rng: Generator) -> None:
        size = rng.integers(5, 30)
        rows = {name: rng.choice(["x", "y", None], size, p=[0.5, 0.3, 0.2]).tolist() for name in ("a", "b")}
        frame = pl.DataFrame(
            {**rows, "s": rng.choice(["u", "v", "w"], size)}, schema_overrides={"a": pl.String, "b": pl.String}
        )
        people = rng.integers(0, 8, size)
        made = classes_of(frame, ["a", "b"], ["s"], wildcard=True, people=people)
        for index, row in enumerate(made.first.tolist()):
            here = frame.row(row)[:2]
            matching = [
                place
                for place, other in enumerate(frame.select("a", "b").rows())
                if all(one is None or two is None or one == two for one, two in zip(here, other, strict=True))
            ]
            assert made.sizes[index] == len({people[place] for place in matching})
            held = defaultdict(set)
            for place in matching:
                held[frame["s"][place]].add(people[place])
            counts = made.attributes["s"]
            mine = slice(counts.starts[index], counts.starts[index + 1])
            found = {counts.labels[value]: n for value, n in zip(counts.value[mine], counts.count[mine], strict=True)}
            assert found == {value: len(who) for value, who in held.items()}

    check()


def test_a_record_without_a_key_is_refused(tmp_path: Path) -> None:
    frame = visits(30).with_columns(pl.when(pl.col("age") < 30).then(None).otherwise(pl.col("pid")).alias("pid"))
    with pytest.raises(TableError, match="have no record key"):
        ps.verify(frame, ps.Policy.loads(CHECKED))
    with pytest.raises(TableError, match="have no record key"):
        ps.anonymize(frame, policy("{k-anonymity: {k: 3}}, {distinct-diversity: {l: 2}}", "mondrian: {}"))


# -- methods -------------------------------------------------------------------------------------------------------

METHODS = (
    "mondrian: {mode: strict}",
    "full-domain: {suppression: 0.05}",
    "full-domain: {suppression: 0.1, local-recoding: true}",
)


@pytest.mark.parametrize("method", METHODS)
def test_classes_hold_enough_people(method: str) -> None:
    """By rows, classes of two people with two visits each passed for classes of four."""
    frame = visits()
    k, l = "{k-anonymity: {k: 4}}", "{distinct-diversity: {l: 2}}"
    by_rows = ByPeople(recoded(frame, policy(f"{k}, {l}", method, "")))
    assert by_rows.fewest < 4
    assert ByPeople(recoded(frame, policy(f"{k}, {l}", method))).fewest >= 4
    assert ByPeople(recoded(frame, policy(f"{k}, {{frequency-diversity: {{l: 2}}}}", method))).largest_share <= 0.5
    assert ByPeople(recoded(frame, policy(f"{k}, {l}, {{closeness: {{t: 0.35}}}}", method))).distance <= 0.35 + 1e-12
    assert ByPeople(recoded(frame, policy(f"{k}, {l}, {{beta-likeness: {{beta: 1.5}}}}", method))).gain <= 1.5 + 1e-12


def test_the_relaxed_mode_counts_people_too() -> None:
    rows = recoded(visits(), policy("{k-anonymity: {k: 4}}, {distinct-diversity: {l: 2}}", "mondrian: {mode: relaxed}"))
    assert ByPeople(rows).fewest >= 4
    shares = policy("{k-anonymity: {k: 4}}, {frequency-diversity: {l: 2}}", "mondrian: {mode: relaxed}")
    with pytest.raises(PolicyError, match="look like one class"):
        recoded(visits(), shares)


def test_rules_keep_people_together() -> None:
    rules = """{k-anonymity: {k: 4}}, {distinct-diversity: {l: 2}},
      {semantic-rules: {rules: [{never-all: {ill: [a, b]}}]}}"""
    start = "rules: {start: {full-domain: {suppression: 0.05}}, actions: [merge, suppress-records]}"
    assert ByPeople(recoded(visits(), policy(rules, start))).fewest >= 4


@pytest.mark.parametrize("method", ["anatomy: {l: 2}", "buckets: {l: 2, d: 1}"])
def test_groups_are_refused_where_people_have_several_records(method: str) -> None:
    """Two records of one person are in two groups, and what these have in common is the value."""
    text = POLICY.format(models="", method=method, key="record-key: pid").replace("models: []\n", "")
    rules = ps.Policy.loads(text.replace("f]}", "f], distance: {line: rank}}"))
    with pytest.raises(ImpossibleError, match="800 records belong to 400 people"):
        recoded(visits(), rules)
    assert recoded(visits(400, 1), rules).height > 300


def test_the_best_levels_are_those_of_a_search_through_all() -> None:
    """The limit of suppression counts people who lose a record; the loss is that of records."""

    @settings(max_examples=12)
    @given(st.integers(20, 59), st.integers(1, 3), seeds, st.integers(2, 4), st.sampled_from([0.0, 0.1, 0.3]))
    def check(people: int, rows: int, seed: int, k: int, share: float) -> None:
        frame = visits(people, rows, seed)
        rules = policy(
            f"{{k-anonymity: {{k: {k}}}}}, {{distinct-diversity: {{l: 1}}}}",
            f"full-domain: {{suppression: {share}, loss: precision}}",
        )
        best = best_levels(frame, k, share)
        source = source_given(frame, rules)
        if best is None:
            with pytest.raises(ImpossibleError):
                treat(rules, resolved_for(rules, source), source, 1, Cancellation())
            return
        made = treat(rules, resolved_for(rules, source), source, 1, Cancellation())
        assert made.applied.loss == pytest.approx(best[0])
        assert (made.applied.people or 0) <= share * frame["pid"].n_unique()

    check()


def shown(row: dict, levels: tuple[int, int, int]) -> tuple[str, str, str]:
    widths, (age, sex, zips) = (1, 5, 10, 20, 40), levels
    return (
        "*" if age == 5 else str(row["age"] // widths[age]),
        "*" if sex else row["sex"],
        "*" if zips == 4 else row["zip"][: 4 - zips],
    )


def best_levels(frame: pl.DataFrame, k: int, share: float) -> tuple[float, tuple[int, ...]] | None:
    """The least mean of level / height at which no more people lose a record than may."""
    rows, found = frame.to_dicts(), []
    for levels in product(range(6), range(2), range(5)):
        classes = defaultdict(set)
        for row in rows:
            classes[shown(row, levels)].add(row["pid"])
        lost = set().union(*(people for people in classes.values() if len(people) < k))
        if len(lost) <= share * frame["pid"].n_unique() and any(len(people) >= k for people in classes.values()):
            found.append((sum(level / top for level, top in zip(levels, (5, 1, 4), strict=True)) / 3, levels))
    return min(found) if found else None


# -- drafts, measures and reports ----------------------------------------------------------------------------------


def test_a_draft_proposes_the_column_that_repeats_like_the_number_of_a_person() -> None:
    frame = visits(929)
    text = ps.init(frame)
    rules = ps.Policy.loads(text)
    assert rules.record_key == "pid"
    assert rules.by_name["pid"].role is Role.IDENTIFIER
    assert "929 values in 1,858 rows" in text
    assert "until 5 people share it" in text
    # A column of as many values that are independent of the people is none.
    rng = np.random.default_rng(1)
    other = frame.with_columns(pid=pl.Series(rng.integers(0, 929, frame.height)))
    assert ps.Policy.loads(ps.init(other)).record_key is None


def test_a_draft_says_rows_where_it_does_not_know_people() -> None:
    """It said that five people would share what others may know, and counted rows."""
    rng = np.random.default_rng(2)
    households = np.repeat(np.arange(300), 3)
    frame = pl.DataFrame(
        {
            "household_id": households,
            "region": rng.choice(["north", "south"], 300)[households],
            "sex": rng.choice(["f", "m"], 900),
            "birth_year": rng.integers(1940, 2010, 900),
        }
    )
    text = ps.init(frame)
    assert ps.Policy.loads(text).record_key is None
    assert "until 5 rows share it" in text
    assert "rows, not people" in text


@settings(max_examples=4)
@given(seeds)
def test_risk_counts_people_where_a_column_names_them(seed: int) -> None:
    frame = visits(80, 2, seed).with_columns(pl.col("age") // 20, zip=pl.lit("1"))
    reference = ByPeople(frame)
    found = ps.risk(frame, qi=list(KEYS), sensitive="ill", person="pid")
    sizes = [len(people) for people in reference.people.values()]
    alone = set().union(*(people for people in reference.people.values() if len(people) == 1))
    assert (found.k, found.unique, found.people, found.records) == (
        min(sizes),
        len(alone),
        len(reference.all),
        frame.height,
    )
    assert found.marketer_risk == pytest.approx(len(sizes) / sum(sizes))
    assert found.prosecutor_risk == pytest.approx(1 / min(sizes))
    assert found.sensitive[0].largest_share == pytest.approx(reference.largest_share)
    assert found.sensitive[0].t_equal == pytest.approx(reference.distance)
    assert found.l == min(len(held) for _, held in reference.shares())
    assert type(found).from_dict(found.to_dict()).people == found.people
    rows = ps.risk(frame, qi=list(KEYS), sensitive="ill")
    assert rows.k == min(frame.group_by(KEYS).len()["len"])
    assert rows.to_dict()["counts"] == "rows"
    assert "records are counted, not people" in rows._repr_html_()


def test_a_report_says_whose_the_records_are() -> None:
    rules = policy("{k-anonymity: {k: 4}}, {distinct-diversity: {l: 2}}", "mondrian: {}")
    release = ps.anonymize(visits(), rules, warn=lambda text: None)
    claim = release.manifest.people
    assert claim is not None
    page = ps.report(release)
    assert f"records of {claim.smallest_class} people that fit, which the publisher claims" in page
    assert f"400 in all, at least {claim.smallest_class} in a class: claimed by the publisher" in page
    found = {finding.attack: finding for finding in ps.attack(release)}
    assert found["linkage-prosecutor"].success == pytest.approx(1 / claim.smallest_class)


def test_old_manifests_count_rows_and_false_claims_are_refused() -> None:
    release = ps.anonymize(visits(40, 1), policy("{k-anonymity: {k: 2}}, {distinct-diversity: {l: 1}}", "mondrian: {}"))
    document = release.manifest.to_dict()
    assert document["counts"] == "people"
    rest = {key: value for key, value in document.items() if key not in ("counts", "people", "checksum")}
    assert Manifest.from_dict({**rest, "checksum": checksum(rest)}).people is None
    lie = {**rest, "counts": "people", "people": {"total": 41, "smallest_class": 2}}
    with pytest.raises(ReleaseError, match="more people than records"):
        Manifest.from_dict({**lie, "checksum": checksum(lie)})
    # A claim that the rows contradict does not hold.
    more = {**rest, "counts": "people", "people": {"total": 40, "smallest_class": 40}}
    forged = ps.Release(Manifest.from_dict({**more, "checksum": checksum(more)}), table=release.table)
    assert "people" in {verdict.model for verdict in ps.verify(forged).verdicts if not verdict.holds}
