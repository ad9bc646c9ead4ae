"""The optimum over the whole lattice on the Adult records, as the ARX tool's own tests have it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from polyseme.methods.full_domain import full_domain, optimum
from polyseme.methods.goal import Goal
from polyseme.methods.losses import Loss
from polyseme.methods.microdata import Ladder, Microdata, Sensitive
from polyseme.models import Background, check_models
from polyseme.semantics.hierarchies import fit
from polyseme.semantics.hierarchies.builders import read_listed

NAMES = [
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
]
JOB = "occupation"
K = {"k-anonymity": {"k": 5}}


def closeness(ground):
    return {"closeness": {"t": 0.2, "ground": ground}}


REFERENCES = [
    ([K], 0.0, "entropy", 407289.5388925293, (1, 2, 1, 1, 3, 2, 2, 1, 1)),
    ([K], 0.04, "entropy", 255559.85455731067, (1, 0, 1, 1, 3, 2, 2, 0, 1)),
    ([{"entropy-diversity": {"l": 5}}], 0.0, "entropy", 324620.5269918692, (1, 1, 1, 1, 3, 2, 2, 1)),
    ([{"recursive-diversity": {"c": 4, "l": 5}}], 0.0, "entropy", 324620.5269918692, (1, 1, 1, 1, 3, 2, 2, 1)),
    ([closeness("equal"), K], 0.0, "discernibility", 456853172, (1, 4, 1, 1, 3, 2, 2, 1)),
    ([closeness("hierarchical"), K], 0.0, "entropy", 398400.0741806447, (0, 4, 1, 1, 3, 2, 2, 1)),
    ([closeness("ordered"), K], 0.04, "discernibility", 2712340, (0, 0, 1, 1, 2, 2, 2, 0)),
    ([{"distinct-diversity": {"l": 5}}], 0.04, "discernibility", 3729686, (0, 0, 1, 1, 2, 2, 2, 1)),
]


@pytest.fixture(scope="module")
def records(adult):
    return pl.read_csv(adult, separator=";", infer_schema=False)


@pytest.fixture(scope="module")
def ladders(adult):
    folder = adult.parent / "hierarchies"
    return {name: fit(read_listed(folder / f"{name}.csv")) for name in NAMES}


@pytest.fixture(scope="module")
def background(adult):
    lines = (adult.parent / "hierarchies" / f"{JOB}.csv").read_text().splitlines()
    return Background(hierarchies={JOB: [line.split(";") for line in lines]})


def microdata(records, ladders, count):
    """With nine quasi-identifiers, or with eight and the occupation as sensitive attribute."""
    names = NAMES if count == 9 else [name for name in NAMES if name != JOB]
    codes = np.column_stack([ladders[name].codes(records[name]) for name in names])
    labels = tuple(records[JOB].unique().sort().to_list())
    secret = records[JOB].replace_strict(list(labels), range(len(labels))).cast(pl.Int64).to_numpy()
    sensitive = {} if count == 9 else {JOB: Sensitive(JOB, secret, labels)}
    return Microdata(tuple(Ladder.of(name, ladders[name]) for name in names), codes, sensitive)


def published(records, ladders, data, made):
    columns = [
        pl.when(pl.Series(made.suppressed)).then(pl.lit("*")).otherwise(ladders[name].generalize(records[name], level))
        for name, level in zip(data.names, made.levels)
    ]
    return records.with_columns(column.alias(name) for name, column in zip(data.names, columns))


@pytest.mark.parametrize(
    "reference",
    [
        pytest.param(item, marks=pytest.mark.slow if item[2] == "discernibility" and item[1] else ())
        for item in REFERENCES
    ],
    ids=lambda item: f"{next(iter(item[0][0]))}-{item[1]}",
)
def test_reference_optima(records, ladders, background, reference):
    specs, suppression, loss, expected, levels = reference
    data = microdata(records, ladders, len(levels))
    made = full_domain(data, Goal.of(specs, data, background), loss=Loss(loss), suppression=suppression)
    assert made.levels == levels
    assert made.loss == pytest.approx(expected, rel=1e-9)
    assert made.gap == 0.0
    sensitive = [] if len(levels) == 9 else [JOB]
    frame = published(records, ladders, data, made)
    verdicts = check_models(frame, data.names, specs, sensitive=sensitive, background=background)
    assert all(verdict.holds for verdict in verdicts)


def test_few_nodes_are_looked_at(records, ladders):
    data = microdata(records, ladders, 9)
    assert optimum(data, Goal.of([K], data), suppression=0.04).checks < 600  # of 12,960


@pytest.mark.slow
def test_local_recoding_shows_most_of_what_would_be_suppressed(records, ladders):
    data = microdata(records, ladders, 9)
    goal = Goal.of([K], data)
    made = full_domain(data, goal, suppression=0.04)
    local = full_domain(data, goal, suppression=0.04, local_recoding=True)
    assert made.suppressed.sum() == 906
    assert local.suppressed.sum() < 91
    assert local.sizes.min() >= 5
    assert local.loss < Loss().of_recoding(data, made)
