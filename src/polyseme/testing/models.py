"""Laws of privacy models, on a random table with quasi-identifiers `q`, `r` and secret `s`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from polyseme.kernel.randomness import experiment
from polyseme.models import Background, Model, Verdict, check_models
from polyseme.models.registry import spec_of
from polyseme.semantics.distances import LineDistance
from polyseme.testing.distances import agree, hold

__all__ = [
    "background",
    "check_model",
    "fails_closed",
    "ignores_names_of_values",
    "ignores_order",
    "is_monotone",
    "judged",
    "margin_has_the_sign_of_the_answer",
    "random_table",
]

Ladder = Sequence[Mapping[str, Any]]


def check_model(model: Model, ladder: Ladder) -> None:
    """Every law of models.

    ladder  parameters from the most lenient to the strictest: on a random table of 240 rows in 12 classes, with the
            values "0" to "5", the first are to hold and the last are not
    """
    ignores_order(model, ladder)
    ignores_names_of_values(model, ladder)
    is_monotone(model, ladder)
    margin_has_the_sign_of_the_answer(model, ladder)
    if model.about:
        fails_closed(model, ladder)


def random_table(seed: int = 3, rows: int = 240) -> pl.DataFrame:
    """Quasi-identifiers `q` and `r` (with missing values), and `s` that depends on `q`."""
    generator = experiment(seed)
    q = generator.integers(0, 4, rows)
    s = np.minimum(generator.integers(0, 6, rows), generator.integers(0, 6, rows) + q % 2)
    return pl.DataFrame(
        {"q": q, "r": [["m", "f", None][i] for i in generator.integers(0, 3, rows)], "s": s.astype(str)}
    )


def background() -> Background:
    """The domain of `s`, its ranks as a distance, and a population that the table is part of."""
    return Background(
        domains={"s": [str(value) for value in range(6)]},
        distances={"s": LineDistance.ranks(6)},
        reference=pl.concat([random_table(), random_table(4), random_table(5)]),
    )


def judged(
    model: Model,
    parameters: Mapping[str, Any],
    frame: pl.DataFrame | None = None,
    keys: Sequence[str] = ("q", "r"),
    known: Background | None = None,
) -> Verdict:
    """The verdict of one model on a table, the random one unless another is given."""
    table = random_table() if frame is None else frame
    specs = [spec_of(model, parameters)]
    (verdict,) = check_models(table, keys, specs, sensitive=["s"], background=known or background())
    return verdict


def _same(found: Verdict, expected: Verdict, law: str) -> None:
    hold((found.holds, found.violations) == (expected.holds, expected.violations), law)
    hold(found.checked == expected.checked, law)
    hold((found.worst is None) == (expected.worst is None), law)
    if found.worst is not None and expected.worst is not None:
        agree(found.worst, expected.worst, law, rtol=1e-12)


def ignores_order(model: Model, ladder: Ladder) -> None:
    """Rows and columns in another order get the same verdict."""
    shuffled = random_table().sample(fraction=1.0, shuffle=True, seed=1)
    for parameters in ladder:
        expected = judged(model, parameters)
        _same(judged(model, parameters, shuffled), expected, "a verdict does not depend on the order of the rows")
        turned = judged(model, parameters, keys=("r", "q"))
        _same(turned, expected, "a verdict does not depend on the order of the columns")


def ignores_names_of_values(model: Model, ladder: Ladder) -> None:
    """Values under other names get the same verdict."""
    renamed = (pl.col("q") * -7 + 1000).alias("q"), pl.col("r").replace({"m": "zz", "f": "aa"})
    frame = random_table().with_columns(*renamed, pl.concat_str(pl.lit("value "), pl.col("s")).alias("s"))
    here = background()
    there = replace(
        here,
        domains={"s": [f"value {value}" for value in range(6)]},
        reference=None if here.reference is None else here.reference.with_columns(*renamed),
    )
    for parameters in ladder:
        found = judged(model, parameters, frame, known=there)
        _same(found, judged(model, parameters), "a verdict does not depend on the names of the values")


def is_monotone(model: Model, ladder: Ladder, lenient: bool = True) -> None:
    """What holds keeps holding when less is required.

    `lenient`: the first step of the ladder is to hold.
    """
    answers = [judged(model, parameters).holds for parameters in ladder]
    hold(answers == sorted(answers, reverse=True), f"what holds also holds when less is asked for: {answers}")
    hold(answers[0] or not lenient, "the most lenient parameters hold")
    hold(not answers[-1], "the strictest parameters do not hold")


def margin_has_the_sign_of_the_answer(model: Model, ladder: Ladder) -> None:
    """A verdict agrees with itself."""
    for parameters in ladder:
        verdict = judged(model, parameters)
        hold((verdict.violations == 0) == verdict.holds, "a model holds exactly when no class violates it")
        if verdict.margin and not verdict.note:
            hold((verdict.margin > 0) == verdict.holds, "the margin is positive exactly when the model holds")


def fails_closed(model: Model, ladder: Ladder) -> None:
    """What cannot be checked does not hold, and the note says why without quoting the table."""
    frame = random_table()
    holed = frame.with_columns(pl.when(pl.int_range(pl.len()) == 7).then(None).otherwise(pl.col("s")).alias("s"))
    foreign = holed.with_columns(pl.col("s").fill_null("never declared"))
    starred = holed.with_columns(pl.col("s").fill_null("*"))
    for broken in (holed, starred, foreign, frame.drop("s"), frame.drop("q"), frame.head(0)):
        verdict = judged(model, ladder[0], broken)
        hold(not verdict.holds, "what cannot be checked does not hold")
        hold(bool(verdict.note), "the verdict on what cannot be checked says why")
        hold(verdict.worst is None, "what cannot be checked has no worst class")
        hold("never declared" not in repr(verdict), "a verdict quotes no value of the table")
