"""The rule paper's experiment on Adult: classes that are diverse and still lie in one group of occupations.

45,222 records of `adult.data` and `adult.test` without unknowns, seven quasi-identifiers in the hierarchies of the ARX
tool, occupation in the three groups of the paper's Table 7. Classes that miss the diversity are left out first, as in
the paper. The text names neither its levels nor its hierarchies, so its 10 and 20 vulnerable classes are looked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from polyseme.hierarchies import fit, values_of
from polyseme.hierarchies.listed import read_listed
from polyseme.methods.goal import Goal
from polyseme.methods.microdata import Ladder, Microdata, Recoding, Sensitive
from polyseme.methods.rules.costs import class_losses
from polyseme.methods.rules.matching import exact, greedy
from polyseme.methods.rules.merging import merged, options_of
from polyseme.methods.rules.state import State
from polyseme.metrics.groupings import average_class_size, discernibility
from polyseme.models.semantic_rules import read_rules
from polyseme.studies.adult_files import adult_rows

__all__ = ["GROUPS", "QUASI_IDENTIFIERS", "Outcome", "nodes_with", "prevented", "read_adult", "vulnerable_classes"]

QUASI_IDENTIFIERS = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass")
GROUPS: Mapping[str, Sequence[str]] = {
    "1": ("Tech-support", "Craft-repair", "Prof-specialty", "Machine-op-inspct"),
    "2": ("Sales", "Exec-managerial", "Handlers-cleaners"),
    "3": (
        "Other-service",
        "Adm-clerical",
        "Farming-fishing",
        "Transport-moving",
        "Priv-house-serv",
        "Protective-serv",
        "Armed-Forces",
    ),
}
ENTROPY = {"entropy-diversity": {"l": 3}}
RECURSIVE = {"recursive-diversity": {"c": 4, "l": 3}}


def read_adult(folder: Path) -> Microdata:
    """The records without unknowns, from a folder with `adult.data`, `adult.test` and `hierarchies/`."""
    table = pl.DataFrame(adult_rows(folder, both=True))
    ladders, codes = [], []
    for name in QUASI_IDENTIFIERS:
        hierarchy = fit(read_listed(folder / "hierarchies" / f"{name}.csv"), values_of([table[name]]), "wildcard")
        ladders.append(Ladder.of(name, hierarchy))
        codes.append(hierarchy.codes(table[name]))
    labels = tuple(sorted(table["occupation"].unique().to_list()))
    place = table["occupation"].replace_strict(list(labels), list(range(len(labels)))).to_numpy().astype(np.int64)
    return Microdata(
        tuple(ladders), np.column_stack(codes).astype(np.int32), {"occupation": Sensitive("occupation", place, labels)}
    )


@dataclass(frozen=True)
class Outcome:
    """What became of the vulnerable classes of one generalization.

    classes, vulnerable   before
    left                  vulnerable classes afterwards
    greedy, least         what merging cost, cheapest first and by the integer program, in records
    suppressing           what leaving the vulnerable classes out would cost
    size, size_after      average class size
    cost, cost_after      discernibility, without what was left out at the start
    """

    classes: int
    vulnerable: int
    left: int
    greedy: float
    least: float
    suppressing: int
    size: float
    size_after: float
    cost: int
    cost_after: int
    loss: float
    loss_after: float


def diverse(data: Microdata, levels: Sequence[int], model: Mapping[str, Any]) -> State:
    """The classes of some levels that reach a model, and the rules about occupations."""
    rules = read_rules([{"never-all": {"occupation": list(held)}, "name": name} for name, held in GROUPS.items()])
    none = np.zeros(data.records, dtype=np.bool_)
    whole = Recoding.of_levels(data, levels, none, None, None)
    goal = Goal.of([model], data)
    fine = goal.fine(*goal.counted(whole.classes, len(whole.shown)))
    return State(data, rules, whole, data.sensitive).without(np.flatnonzero(~fine))


def prevented(data: Microdata, levels: Sequence[int], model: Mapping[str, Any]) -> Outcome:
    """The vulnerable classes of a generalization, merged with others at the least cost."""
    state = diverse(data, levels, model)
    vulnerable = state.vulnerable
    sizes = state.recoding.sizes
    options = options_of(state, vulnerable, sizes[vulnerable].astype(np.float64))
    first, best = greedy(options), exact(options)
    chosen = first if best is None or first.cost <= best.cost else best
    pairs = [(int(one), int(other)) for one, other in options.pairs[chosen.pairs]]
    after = merged(data, state.recoding, pairs)
    left = State(data, state.rules, after, data.sensitive)
    return Outcome(
        len(sizes),
        len(vulnerable),
        len(left.vulnerable),
        first.cost,
        first.cost if best is None else best.cost,
        int(sizes[vulnerable].sum()),
        average_class_size(sizes),
        average_class_size(after.sizes),
        discernibility(sizes),
        discernibility(after.sizes),
        float(sizes @ class_losses(data, state.recoding)),
        float(after.sizes @ class_losses(data, after)),
    )


def vulnerable_classes(data: Microdata, levels: Sequence[int], model: Mapping[str, Any]) -> int:
    """How many classes of a generalization reach a model and lie in one group of occupations."""
    return len(diverse(data, levels, model).vulnerable)


def nodes_with(data: Microdata, wanted: Mapping[int, Mapping[str, Any]]) -> Iterator[tuple[int, ...]]:
    """The levels at which each model leaves as many vulnerable classes as wanted: a minute on the 2,160 of Adult."""
    for levels in product(*(range(ladder.height + 1) for ladder in data.ladders)):
        if all(vulnerable_classes(data, levels, model) == number for number, model in wanted.items()):
            yield levels
