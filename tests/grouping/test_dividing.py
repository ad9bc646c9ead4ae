"""Mondrian in parts that workers finish: a release as from one machine, whatever the sample was."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import polyseme as ps
from polyseme.engines import Engine, local
from polyseme.grouping import division as dividing
from polyseme.grouping.columns import Treated
from polyseme.kernel.work import listening
from polyseme.publishing.publication import resolved_for
from polyseme.release import Generalized
from polyseme.tables.io.columnar import FrameSource, Source
from polyseme.testing.workers import WorkersHere

ROWS = 2_000
ASKED = """
attributes:
  age: {role: quasi-identifier, hierarchy: {intervals: [5, 20, 60], missing: wildcard}}
  town: {role: quasi-identifier, hierarchy: {tree: {all: {north: [a, b], south: [c, d], east: [e]}}}}
  ill: {role: sensitive, missing: drop}
  weight: {role: insensitive}
table: {missing-values: ['?']}
models: MODELS
method: METHOD
"""
DIVERSE = "[{k-anonymity: {k: 5}}, {distinct-diversity: {l: 3}}]"
CLOSE = "[{k-anonymity: {k: 5}}, {closeness: {t: 0.3}}]"


class Scaled(Engine):
    """An engine that publishes here, and whose workers are here too."""

    scaled = True

    def __init__(self) -> None:
        self.recruited = 0

    def __call__(self, *arguments: Any) -> Any:
        return local.publish(*arguments)

    def workers(self, source: Source, cancellation: Any, columns: Sequence[str]) -> WorkersHere:
        self.recruited += 1
        return WorkersHere(source, columns)


def people(seed: int = 4, rows: int = ROWS) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    ages = random.integers(18, 90, rows).astype(str)
    ages[random.random(rows) < 0.03] = "?"
    return pl.DataFrame(
        {
            "age": ages,
            "town": random.choice([*"abcde"], rows),
            "ill": random.choice(["flu", "cold", "rash", "burn", "?"], rows, p=[0.5, 0.2, 0.15, 0.1, 0.05]),
            "weight": np.arange(rows),
        }
    )


def policy(models: str = DIVERSE, method: str = "mondrian") -> ps.Policy:
    return ps.Policy.loads(ASKED.replace("MODELS", models).replace("METHOD", method))


def in_memory(frame: pl.DataFrame) -> FrameSource:
    return FrameSource(frame.to_arrow())


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A few hundred rows that differ are too many for one machine, and some dozen make a part."""
    monkeypatch.setattr(dividing, "HELD", 300)
    monkeypatch.setattr(dividing, "PART_ROWS", 100)
    return monkeypatch


def published(table: pl.DataFrame, rules: ps.Policy, engine: Any, **options: Any) -> ps.Release:
    return ps.anonymize(table, rules, engine=engine, warn=lambda text: None, **{"accept_risk": True, **options})


@pytest.mark.parametrize("models", [DIVERSE, CLOSE])
@pytest.mark.parametrize("sample", [30, 400, 100_000])
def test_a_table_is_published_in_parts(small: pytest.MonkeyPatch, models: str, sample: int) -> None:
    small.setattr(dividing, "SAMPLE", sample)
    small.setattr(dividing, "_SAMPLED", 1)
    table, engine = people(), Scaled()
    release = published(table, policy(models), engine)
    assert engine.recruited == 1
    shown, manifest = release.to_polars(), release.manifest
    there = table.filter(pl.col("ill") != "?")
    # No record is lost or doubled, and each has its own value.
    assert shown["weight"].sort().equals(there["weight"].sort())
    assert (manifest.records, manifest.dropped) == (there.height, ROWS - there.height)
    true = shown.join(table, on="weight", suffix=" true")
    assert (true["ill"] == true["ill true"]).all()
    # What is shown stands for what was there.
    (town,) = (item for item in manifest.columns if isinstance(item, Generalized) and item.name == "town")
    pairs = true.select("town true", "town").unique().rows()
    # Nothing is listed where every label is a value.
    assert all(here in town.stands_for.get(shows, (shows,)) for here, shows in pairs)
    # A reader finds as many classes as the manifest says, and that everything holds.
    assert manifest.applied is not None
    assert manifest.applied.classes == shown.group_by("age", "town").len().height
    assert ps.verify(release).holds
    verdict = ps.verify(shown.drop("weight"), policy(models, "decoys"))
    assert verdict.holds
    # As fine as on one machine, up to what the first cuts cost.
    here = published(table, policy(models), "local", seed=1).manifest.applied
    assert here is not None
    assert manifest.applied.classes >= (0.6 if sample == 30 else 0.85) * here.classes
    assert manifest.applied.classes <= 1.15 * here.classes


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6), rows=st.integers(40, 250), k=st.integers(2, 6), parts=st.integers(10, 80))
def test_whatever_the_table(monkeypatch: pytest.MonkeyPatch, seed: int, rows: int, k: int, parts: int) -> None:
    table, rules = people(seed, rows), policy(f"[{{k-anonymity: {{k: {k}}}}}, {{closeness: {{t: 0.45}}}}]")
    with monkeypatch.context() as patch:
        patch.setattr(dividing, "HELD", 0)
        patch.setattr(dividing, "PART_ROWS", parts)
        patch.setattr(dividing, "SAMPLE", rows // 2)
        patch.setattr(dividing, "_SAMPLED", 1)
        try:
            release = published(table, rules, Scaled(), seed=seed)
        except ps.ImpossibleError:
            with pytest.raises(ps.ImpossibleError):
                published(table, rules, "local", seed=1)
            return
    shown = release.to_polars()
    assert shown["weight"].sort().equals(table.filter(pl.col("ill") != "?")["weight"].sort())
    assert release.manifest.applied is not None
    assert release.manifest.applied.classes == shown.group_by("age", "town").len().height
    assert ps.verify(release).holds


def test_a_table_with_few_different_rows_is_cut_as_a_whole(small: pytest.MonkeyPatch) -> None:
    table = people()
    whole = published(table, policy(), "local", seed=1)
    differ = table.select("age", "town", "ill").n_unique()
    for held, recruited in ((ROWS, 0), (differ, 1)):
        small.setattr(dividing, "HELD", held)
        engine = Scaled()
        other = published(table, policy(), engine)
        assert engine.recruited == recruited, "rows are counted before those that differ"
        assert other.manifest.applied == whole.manifest.applied
        assert other.to_polars().sort("weight").equals(whole.to_polars().sort("weight"))
    small.setattr(dividing, "HELD", differ - 1)
    small.setattr(dividing, "SAMPLE", 0)
    small.setattr(dividing, "_SAMPLED", 0)
    # Without a sample there is one part, which is the whole table.
    one = published(table, policy(), Scaled())
    assert one.manifest.applied == whole.manifest.applied
    assert one.manifest.to_dict()["attributes"] == whole.manifest.to_dict()["attributes"]
    assert one.to_polars().sort("weight").equals(whole.to_polars().sort("weight"))


def divided(table: pl.DataFrame, rules: ps.Policy, source: Source | None = None, seed: int = 1) -> Treated:
    read = in_memory(table)
    workers = WorkersHere(source or read, ["age", "town", "ill"])
    return dividing.divide(rules, resolved_for(rules, read), read, workers, table.height, workers.different(), seed)


def test_what_was_decided_follows_from_the_sample(small: pytest.MonkeyPatch) -> None:
    small.setattr(dividing, "SAMPLE", 200)
    small.setattr(dividing, "_SAMPLED", 1)
    table = people()
    one, two, other = (divided(table, policy(), seed=seed) for seed in (1, 1, 2))
    rows = [pl.concat([pl.DataFrame(batch) for batch in made.source.batches()]) for made in (one, two, other)]
    assert rows[0].equals(rows[1])
    assert not rows[0].equals(rows[2])
    rule = pickle.loads(pickle.dumps(one.rule))  # noqa: S301
    (batch,) = table.to_arrow().combine_chunks().to_batches()
    assert pl.DataFrame(rule.apply(batch)).equals(rows[0])


def test_a_goal_that_nothing_reaches_is_refused(small: pytest.MonkeyPatch) -> None:
    rules = policy("[{k-anonymity: {k: 5}}, {entropy-diversity: {l: 3.9}}]")
    with pytest.raises(ps.ImpossibleError, match="does not meet entropy-diversity of ill"):
        divided(people(), rules)
    with pytest.raises(ps.PolicyError, match="lists none"):
        divided(people(), ps.Policy.loads(NOTHING))


NOTHING = """
attributes:
  age: {role: quasi-identifier}
  town: {role: quasi-identifier}
  ill: {role: insensitive}
  weight: {role: insensitive}
method: mondrian
"""


def test_too_many_classes_are_refused(small: pytest.MonkeyPatch) -> None:
    classes = divided(people(), policy()).applied.classes
    small.setattr(dividing, "CLASSES", classes - 1)
    with pytest.raises(ps.ImpossibleError, match=rf"{classes} classes would be formed, more than the {classes - 1}"):
        divided(people(), policy())
    # Parts that have too many hold their cuts back; if all are few enough together, they are asked again.
    small.setattr(dividing, "CLASSES", classes)
    small.setattr(dividing, "_UNEVEN", 0.5)
    assert divided(people(), policy()).applied.classes == classes


class Changing(FrameSource):
    """A table in which a record more is found whenever it is read again."""

    read = 0

    def batches(self, columns: Sequence[str] | None = None) -> Any:
        self.read += 1
        yield from super().batches(columns)
        for batch in super().batches(columns):
            yield batch.slice(0, self.read)
            break


def test_a_table_that_changes_is_refused(small: pytest.MonkeyPatch) -> None:
    with pytest.raises(ps.TableError, match="the table changed while it was read"):
        divided(people(), policy(), Changing(people().to_arrow()))
    with pytest.raises(ps.TableError, match="no records to publish"):
        divided(people().with_columns(ill=pl.lit("?")), policy())


class Blind(WorkersHere):
    """Workers whose sample misses some branches."""

    def sample(self, share: float, seed: int) -> Any:
        for batch in super().sample(share, seed):
            towns = pl.Series(batch.column("town")).is_in(["b", "c"])
            yield batch.filter(towns.to_arrow())


@pytest.mark.parametrize("absent", ["violates", "ignored"])
def test_classes_that_look_alike_are_one_or_refused(small: pytest.MonkeyPatch, absent: str) -> None:
    """Two branches that the sample has not seen, and are too small to be cut off, make two parts look alike."""
    towns, ills = [*"abcd"], ["flu", "cold"]
    table = pl.DataFrame({"town": towns[:1] * 2 + ["b", "c"] * 200 + towns[-1:] * 2, "ill": ills * 202})
    rules = ps.Policy.loads(f"""
attributes:
  town: {{role: quasi-identifier, hierarchy: {{tree: {{all: [a, b, c, d]}}}}}}
  ill: {{role: sensitive}}
models: [{{k-anonymity: {{k: 5}}}}, {{delta-disclosure: {{delta: 3, absent: {absent}}}}}]
method: mondrian
""")
    source = in_memory(table.with_columns(pl.Series("ill", ills).sample(404, with_replacement=True, seed=1)))
    workers = Blind(source, ["town", "ill"])
    if absent == "violates":
        made = dividing.divide(rules, resolved_for(rules, source), source, workers, 404, 200)
        assert made.applied.classes == 1
        assert pl.concat([pl.DataFrame(batch) for batch in made.source.batches()])["town"].unique().to_list() == ["all"]
    else:
        with pytest.raises(ps.ImpossibleError, match="look alike, and together need not meet delta-disclosure of ill"):
            dividing.divide(rules, resolved_for(rules, source), source, workers, 404, 200)


SEMANTIC = """
attributes:
  age: {role: quasi-identifier, hierarchy: {intervals: [5, 20, 60], missing: wildcard}}
  town: {role: quasi-identifier, hierarchy: {tree: {all: {north: [a, b], south: [c, d], east: [e]}}}}
  ill: {role: sensitive, missing: drop, distance: {tree: {any: {air: [flu, cold], skin: [rash, burn]}}}}
  weight: {role: identifier}
table: {missing-values: ['?']}
models: [{k-anonymity: {k: 5}}, {semantic-diversity: {l: 2, d: 2, reading: exists, attribute: ill}}]
method: mondrian
"""


def test_models_that_need_a_distance_travel(small: pytest.MonkeyPatch) -> None:
    release = published(people(), ps.Policy.loads(SEMANTIC), Scaled())
    assert ps.verify(release).holds
    here = published(people(), ps.Policy.loads(SEMANTIC), "local", seed=1)
    assert release.manifest.applied is not None
    assert here.manifest.applied is not None
    assert release.manifest.applied.classes == pytest.approx(here.manifest.applied.classes, rel=0.15)


def test_stages_are_told(small: pytest.MonkeyPatch) -> None:
    class Listener:
        def __init__(self) -> None:
            self.names: list[str] = []

        def begin(self, name: str, total: int | None) -> None:
            self.names.append(name)

        def reach(self, task: None, done: int) -> None: ...

        def end(self, task: None) -> None: ...

    listener = Listener()
    with listening(listener):
        published(people(), policy(), Scaled())
    labels = ["Counting rows that differ", "Drawing a sample", "Counting values in each part", "Cutting parts"]
    assert [name for name in listener.names if name in labels] == labels
