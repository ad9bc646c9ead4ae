"""Releases of every kind, and manifests of theirs with hostile contents under a correct checksum."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import polyseme as ps

LABELS = [f"v{code:02d}" for code in range(12)]
TREE = {
    f"branch {branch}": {f"twig {branch}{twig}": LABELS[4 * branch + 2 * twig :][:2] for twig in range(2)}
    for branch in range(3)
}
LATTICE = {label: [f"group {code // 3}", f"other {(code + 1) % 12 // 3}"] for code, label in enumerate(LABELS)}
MATRIX = [[abs(row - column) ** 0.5 for column in range(12)] for row in range(12)]
UNEVEN = [1, 2, 3, 4, 5, 6, 7, 8, 15, 20, 25, 30]
PRIOR = [4, 5, 6, 5, 4, 5, 6, 5, 4, 5, 6, 5]
RECORDS = 80


def _semantic(l: int, d: float, mechanism: str = "balanced") -> dict[str, Any]:
    return {"semantic-diversity": {"l": l, "d": d, "mechanism": mechanism}}


ATTRIBUTES: dict[str, dict[str, Any]] = {
    "line balanced": {"distance": {"line": "rank"}, "protect": _semantic(3, 3)},
    "tight line": {"distance": {"line": "rank"}, "protect": _semantic(3, 4)},
    "uneven line with a prior": {"distance": {"line": UNEVEN}, "protect": _semantic(2, 2), "prior": PRIOR},
    "line simple": {"distance": {"line": "rank"}, "protect": _semantic(3, 3, "simple")},
    "line duplicate": {"distance": {"line": "rank"}, "protect": _semantic(3, 2, "duplicate")},
    "line least-risk": {"distance": {"line": UNEVEN}, "protect": _semantic(3, 6, "least-risk")},
    "circle balanced": {"distance": {"circle": "rank"}, "protect": _semantic(3, 3)},
    "circle with a prior": {"distance": {"circle": "rank"}, "protect": _semantic(3, 2), "prior": PRIOR},
    "circle simple": {"distance": {"circle": "rank"}, "protect": _semantic(2, 4, "simple")},
    "uneven circle": {"distance": {"circle": {"positions": UNEVEN, "length": 40}}, "protect": _semantic(2, 3)},
    "tree balanced": {"distance": {"tree": TREE}, "protect": _semantic(3, 2)},
    "tree with a prior": {"distance": {"tree": TREE}, "protect": _semantic(2, 2), "prior": PRIOR},
    "lattice balanced": {"distance": {"lattice": LATTICE}, "protect": _semantic(2, 2)},
    "matrix balanced": {"distance": {"matrix": MATRIX}, "protect": _semantic(3, 1.5)},
    "matrix simple": {"distance": {"matrix": MATRIX}, "protect": _semantic(2, 1.5, "simple")},
    "diversity": {"protect": {"diversity": {"l": 4}}},
    "entropy": {"protect": {"entropy-diversity": {"l": 2.5}}},
    "closeness": {"protect": {"closeness": {"t": 0.25}}, "reference": PRIOR},
    "ordered closeness": {
        "distance": {"line": "rank"},
        "protect": {"closeness": {"t": 0.2, "ground": "ordered"}},
        "reference": PRIOR,
    },
    "hierarchical closeness": {
        "distance": {"tree": TREE},
        "protect": {"closeness": {"t": 0.2, "ground": "hierarchical"}},
    },
    "ldp": {"protect": {"ldp": {"epsilon": 1.5, "size": 2}}},
    "all together": {
        "distance": {"line": "rank"},
        "protect": {**_semantic(3, 2), "closeness": {"t": 0.3}, "ldp": {"epsilon": 2.0}},
    },
    "missing category": {"protect": {"diversity": {"l": 3}}, "missing": {"category": "unknown"}},
}
"""Attributes over `LABELS`, each released on its own beside two untouched columns."""


def make_releases(root: Path) -> list[Path]:
    """A small release of every kind, each in a folder of its own; forms and file formats take turns."""
    rng = np.random.default_rng(5)
    plain = {"sex": rng.choice(["f", "m"], RECORDS), "age": rng.integers(20, 24, RECORDS)}
    roles = {"sex": {"role": "quasi-identifier"}, "age": {"role": "insensitive"}}
    codes = pl.DataFrame({**plain, "x": rng.choice(LABELS, RECORDS)})
    folders = []

    def publish(name: str, table: pl.DataFrame, policy: dict[str, Any], **options: Any) -> None:
        folder = root / name.replace(" ", "-")
        ps.anonymize(table, ps.Policy.from_dict(policy, root), folder, warn=lambda _: None, **options)
        folders.append(folder)

    for number, (name, entry) in enumerate(ATTRIBUTES.items()):
        attribute = {"role": "sensitive", "domain": LABELS, **entry}
        form = "long" if number % 5 == 4 else "set"
        file_format = "csv" if number % 3 == 2 else "parquet"
        publish(name, codes, {"attributes": {**roles, "x": attribute}}, form=form, file_format=file_format)
    numbers = codes.with_columns(x=pl.Series(rng.uniform(0, 100, RECORDS)))
    bins = {"role": "sensitive", "bins": [0, 10, 20, 30, 50, 70, 100], "protect": _semantic(2, 15)}
    publish("bins", numbers, {"attributes": {**roles, "x": bins}, "models": [{"k-anonymity": {"k": 2}}]})
    days = codes.with_columns(x=pl.Series(np.datetime64("2020-01-01") + rng.integers(0, 360, RECORDS)))
    months = {"every": "month", "from": "2020-01-01", "to": "2020-12-31"}
    periods = {"role": "sensitive-qid", "periods": months, "protect": _semantic(2, 3)}
    publish("periods", days, {"attributes": {**roles, "x": periods}})
    possible = codes.with_columns(
        x=pl.when((pl.col("sex") == "m") & (pl.col("x") >= "v10")).then(pl.lit("v00")).otherwise("x"),
        y=pl.Series(rng.integers(1, 6, RECORDS)),
    )
    strata = {
        "attributes": {
            **roles,
            "x": {"role": "sensitive", "domain": LABELS, "distance": {"line": "rank"}, "protect": _semantic(2, 3)},
            "y": {"role": "sensitive", "domain": [1, 2, 3, 4, 5], "protect": {"diversity": {"l": 2}}},
        },
        "impossible": [
            {"when": {"sex": "m"}, "attribute": "x", "values": ["v10", "v11"], "may-be-empty": True},
            {"when": {"age": [30, 31]}, "attribute": "x", "values": ["v00"], "may-be-empty": True},
        ],
    }
    publish("strata", possible, strata)
    grid = [(sex, age) for sex in "fm" for age in (20, 21)]
    lines = [
        f"{sex},{age},{v},{w + age % 2 * k / 8}" for sex, age in grid for k, (v, w) in enumerate(zip(LABELS, PRIOR))
    ]
    (root / "prior.csv").write_text("\n".join(lines))
    groups = copy.deepcopy(strata)
    groups["attributes"]["x"]["prior"] = {"by": ["sex", "age"], "file": "prior.csv"}
    publish("strata of groups", possible, groups, form="set")
    publish("seeded strata", possible, strata, seed=1, file_format="csv")
    return folders


_NUMBERS = [0, 1, -1, 2, 3, 7, 0.0, -0.0, 0.5, 1.5, -1e-9, 1e-300, 5e-324, 1e15, 1e300, 1e308, -1e308, 10**6, 10**9]
_BEYOND = [10**15, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, float("nan"), float("inf"), -float("inf")]
_WORDS = ["", "a", "rank", "NaN", "0", "\u00e9\u0000", "\ud800", "x" * 5_000, "../x", "v00", "ordered", "path"]
_LISTS = [[], [[]], [None], [0], [1, 2], [[1, 2], [3]], [-1], ["a", "a"], [0] * 1_000, list(range(12)), [[0]] * 12]
_LEVEL = [[1e308] * 12, [0.0] * 12, [1e-300] * 12, [1.0] * 12]
_DESIGNS = ["balanced", "simple", "duplicate", "least-risk"]
HOSTILE: list[Any] = [
    None, True, False, *_NUMBERS, *_BEYOND, *_WORDS, *_DESIGNS, *_LISTS, *_LEVEL, {}, {"": 0}, {"l": 2}
]  # fmt: skip
"""What is put in the place of anything."""
_KEYS = [
    "d", "distance", "prior", "reference", "bins", "periods", "missing", "log_weights", "shares", "full", "tight",
    "excluded", "strata", "impossible", "conditional", "when", "models", "size", "adapt", "t", "epsilon", "l", "x",
]  # fmt: skip

Path_ = tuple[str | int, ...]


def places(document: Any, path: Path_ = ()) -> list[Path_]:
    """The paths of everything inside a document."""
    found: list[Path_] = [path] if path else []
    items: Any = ()
    if isinstance(document, dict):
        items = document.items()
    elif isinstance(document, list):
        items = enumerate(document)
    for key, value in items:
        found += places(value, (*path, key))
    return found


def _parent(document: Any, path: Path_) -> Any:
    for key in path[:-1]:
        document = document[key]
    return document


def _replace(rng: random.Random, document: Any, path: Path_) -> None:
    _parent(document, path)[path[-1]] = copy.deepcopy(rng.choice(HOSTILE))


def _delete(rng: random.Random, document: Any, path: Path_) -> None:
    del _parent(document, path)[path[-1]]


def _add(rng: random.Random, document: Any, path: Path_) -> None:
    value = _parent(document, path)[path[-1]]
    if isinstance(value, dict):
        value[rng.choice(_KEYS)] = copy.deepcopy(rng.choice(HOSTILE))
    elif isinstance(value, list):
        entry = rng.choice(value) if value and rng.random() < 0.6 else rng.choice(HOSTILE)
        value.insert(rng.randrange(len(value) + 1), copy.deepcopy(entry))


def _list(rng: random.Random, document: Any, path: Path_) -> None:
    """Cut, turn, repeat, scale or level a list."""
    value = _parent(document, path)[path[-1]]
    if not isinstance(value, list) or not value:
        return _scale(rng, document, path)
    change: Callable[[], list[Any]] = rng.choice(
        [
            lambda: value[: rng.randrange(len(value))],
            lambda: value[::-1],
            lambda: rng.sample(value, len(value)),
            lambda: value * rng.choice([2, 3, 200]),
            lambda: [value[0]] * len(value),
            lambda: [copy.deepcopy(rng.choice(HOSTILE))] * len(value),
            lambda: [rng.choice(_FACTORS) * item if _number(item) else item for item in value],
            lambda: [value],
        ]
    )
    _parent(document, path)[path[-1]] = change()
    return None


_FACTORS = [-1, 0, 1, 1e3, 1e8, 1e299, -1e5, 1e-12]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _scale(rng: random.Random, document: Any, path: Path_) -> None:
    """Another number of the same kind: off by one, negative, far too large."""
    value = _parent(document, path)[path[-1]]
    if not _number(value):
        return _replace(rng, document, path)
    changes = [value + 1, value - 1, -value, value * 2, value / 2, value * 1_000, value * 10**9, value + 0.5]
    _parent(document, path)[path[-1]] = rng.choice(changes)
    return None


def _swap(rng: random.Random, document: Any, path: Path_) -> None:
    """Exchange with something of the same type elsewhere."""
    here = _parent(document, path)
    value = here[path[-1]]
    alike = [
        other
        for other in places(document)
        if type(_parent(document, other)[other[-1]]) is type(value)
        and other[: len(path)] != path
        and path[: len(other)] != other
    ]
    if alike:
        other = rng.choice(alike)
        there = _parent(document, other)
        here[path[-1]], there[other[-1]] = copy.deepcopy(there[other[-1]]), copy.deepcopy(value)


CHANGES = (_replace, _replace, _scale, _scale, _list, _list, _add, _delete, _swap)


def mutate(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The manifest with one to three changes, most of them where mechanisms, distances and domains stand."""
    document = copy.deepcopy(document)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        found = places(document)
        inner = [path for path in found if path[0] == "attributes" and len(path) > 2]
        # A long list must not hide the scalars beside it.
        depth = {len(path) for path in inner}
        chosen = rng.choice(sorted(depth)) if inner and rng.random() < 0.8 else None
        path = rng.choice([path for path in inner if len(path) == chosen] if chosen else found)
        with contextlib.suppress(OverflowError):
            rng.choice(CHANGES)(rng, document, path)
    return document


def _spread(rng: random.Random, size: int) -> list[float]:
    """Positive numbers that differ a little, much, or beyond all measure."""
    reach = rng.choice([0, 1, 10, 50, 100, 290])
    return [10 ** rng.uniform(-reach, rng.choice([0, reach])) for _ in range(size)]


def _positions(rng: random.Random, size: int) -> list[float]:
    scale = rng.choice([1e-300, 1e-12, 1, 1e6, 1e290])
    return [scale * place for place in rng.sample(range(3 * size), size)]


def _steep(rng: random.Random, weights: list[float]) -> list[float]:
    factor = rng.choice([-1, 0, 3, 50, 1e3, 1e100])
    return [factor * weight + rng.uniform(-1, 1) * rng.choice([0, 1, 700, 1e5]) for weight in weights]


def twist(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The manifest with changes that keep every type and size, so that a reader has to look closely."""
    document = copy.deepcopy(document)
    entry = rng.choice([entry for entry in document["attributes"] if entry["published"] == "sets"])
    domain, size = entry["domain"], len(entry["domain"]["values"])
    mechanisms = [entry["mechanism"], *(stratum["mechanism"] for stratum in entry.get("strata", ()))]
    for _ in range(rng.choice([1, 1, 2, 3])):
        change = rng.randrange(11)
        every = rng.choice([mechanisms, [rng.choice(mechanisms)]])
        if change == 0:
            p = rng.choice([0, 5e-324, 1e-300, 1e-17, 1e-9, 0.5, 1 - 1e-9, 1 - 2**-53, 1])
            for made in every:
                made["p"] = p
        elif change == 1:
            for made in every:
                parameters = made["parameters"]
                for key in parameters.keys() & {"log_weights", "shares"}:
                    parameters[key] = _steep(rng, parameters[key])
        elif change == 2:
            domain[rng.choice(["prior", "reference"])] = _spread(rng, size)
        elif change == 3:
            domain["reference"] = [rng.choice([0, 0, 1, 5e-324]) for _ in range(size - 1)] + [1]
        elif change == 4 and entry["mechanism"]["d"] is not None:
            d = entry["mechanism"]["d"] * rng.choice([0, 0.5, 0.9, 1.5, 2, 3, 1e9])
            for made in mechanisms:
                made["d"] = d
        elif change == 5:
            l = rng.randrange(1, size + 2)
            for made in mechanisms:
                made["l"] = l
        elif change == 6:
            name, parameters = rng.choice(_DESIGNS), rng.choice([None, {}, {"log_weights": [0] * size}])
            for made in every:
                made["design"] = name
                made["parameters"] = made["parameters"] if parameters is None else parameters
        elif change == 7:
            rng.shuffle(domain["values"])
        elif change == 8:
            circle = {"length": rng.choice([1e-300, 1, 100, 1e300]), "positions": _positions(rng, size)}
            chain = {"measure": rng.choice(["path", "ancestor"]), "parents": list(range(-1, size - 1))}
            names = [str(node) for node in range(size)]
            tree = {**chain, "names": names, "values": rng.choices(range(size), k=size)}
            entry["distance"] = rng.choice([{"line": _positions(rng, size)}, {"circle": circle}, {"tree": tree}])
            for made in mechanisms:
                made["d"] = made["d"] if made["d"] is not None else 1
        elif change == 9:
            key, number = rng.choice([("t", 1e-300), ("t", 1), ("epsilon", 1e-300), ("epsilon", 1e300), ("l", 12)])
            for promise in entry["promises"].values():
                promise.update({key: number} if key in promise else {})
        else:
            document[rng.choice(["records", "rows"])] = rng.choice([0, 1, 10**6, 10**15])
    return document


def write_manifest(folder: Path, document: dict[str, Any]) -> None:
    """The manifest with a checksum that fits it."""
    rest = {key: value for key, value in document.items() if key != "checksum"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    checksum = hashlib.sha256(text.encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps({**rest, "checksum": checksum}), encoding="utf-8")
