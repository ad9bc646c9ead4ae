"""Small random tables with ladders, and the frames that a verifier sees of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from polyseme.methods.microdata import Ladder, Microdata, Sensitive

VALUES = ("a", "b", "c", "d", "e")


def random_ladder(random, name, leaves=None, height=None):
    """Levels that merge random groups, from the identity to one group; labels tell name, level and group."""
    leaves = leaves or int(random.integers(2, 6))
    height = height or int(random.integers(1, 4))
    groups, sizes = [np.arange(leaves)], [leaves]
    for _ in range(height - 1):
        size = max(1, int(random.integers(1, sizes[-1] + 1)))
        merged = random.integers(0, size, sizes[-1])
        codes = np.unique(merged, return_inverse=True)[1][groups[-1]]
        groups.append(codes)
        sizes.append(int(codes.max()) + 1)
    groups.append(np.zeros(leaves, dtype=np.int64))
    labels = [tuple(f"{name}{level}.{group}" for group in range(size)) for level, size in enumerate(sizes)]
    return Ladder(name, tuple(groups), (*labels, ("*",)))


def random_data(seed, rows=None, ladders=None, values=VALUES, people=0):
    random = np.random.default_rng(seed)
    rows = int(random.integers(5, 61)) if rows is None else rows
    ladders = ladders or tuple(random_ladder(random, f"q{i}") for i in range(int(random.integers(2, 5))))
    center = random.integers(0, 3, rows)
    columns = [(center + random.integers(0, 3, rows)) % ladder.leaves for ladder in ladders]
    codes = np.column_stack(columns) if columns else np.zeros((rows, 0), dtype=np.int64)
    secret = np.minimum(random.integers(0, len(values), rows), random.integers(0, len(values), rows) + center % 2)
    # Without a declared domain the values are those that occur.
    found, secret = np.unique(secret, return_inverse=True)
    labels = tuple(values[code] for code in found)
    population = None
    if people:
        population = np.column_stack([random.integers(0, ladder.leaves, people) for ladder in ladders])
    return Microdata(ladders, codes.astype(np.int64), {"s": Sensitive("s", secret, labels)}, population)


def shown(ladders, codes, levels):
    """A frame of the codes at these levels."""
    columns = {}
    for ladder, level, column in zip(ladders, levels, codes.T, strict=True):
        labels = [ladder.labels[level][group] for group in ladder.groups[level][column]]
        columns[ladder.name] = pl.Series(labels, dtype=pl.String)
    return pl.DataFrame(columns)


def frame_at(data, levels):
    """The whole table at some levels, with its sensitive attribute."""
    frame = shown(data.ladders, data.codes, levels)
    secret = data.sensitive["s"]
    return frame.with_columns(pl.Series("s", [secret.labels[code] for code in secret.codes], dtype=pl.String))


def frame_of(data, recoding):
    """The table as a recoding shows it; a suppressed record has `*` in every quasi-identifier."""
    columns = {}
    for place, ladder in enumerate(data.ladders):
        labels = [*recoding.cells[place].labels, "*"]
        cells = np.append(recoding.shown[:, place], len(labels) - 1)[recoding.classes]
        columns[ladder.name] = pl.Series([labels[cell] for cell in cells], dtype=pl.String)
    secret = data.sensitive["s"]
    return pl.DataFrame({**columns, "s": pl.Series([secret.labels[code] for code in secret.codes], dtype=pl.String)})


def skewed_data(seed, rows=3_000):
    """Three hierarchies with more records at their beginnings, and a sensitive value that most records share."""
    random = np.random.default_rng(seed)
    ladders = tuple(random_ladder(random, f"q{place}", 24, 3) for place in range(3))
    codes = np.column_stack([np.minimum(*random.integers(0, ladder.leaves, (2, rows))) for ladder in ladders])
    secret = random.choice(5, rows, p=[0.6, 0.2, 0.1, 0.06, 0.04])
    return Microdata(ladders, codes, {"s": Sensitive("s", secret, tuple("abcde"))})


def among(data, rows):
    """Some of the records."""
    part = {name: replace(item, codes=item.codes[rows]) for name, item in data.sensitive.items()}
    return replace(data, codes=data.codes[rows], sensitive=part)
