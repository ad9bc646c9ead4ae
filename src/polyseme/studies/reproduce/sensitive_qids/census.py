"""The US Census table of 1990 (UCI): read from its file where that is given, else a generated table of its shape.

The file is `USCensus1990.data.txt`: a header, 2,458,285 records, a number of the case and 68 attributes of 2 to 18
values. It is checked by its size and its SHA-256 before it is read. Studies use some of its records, drawn at random.

The generated table has as many attributes with as many values. Every record belongs to one of six hidden kinds of
people, each with its own shares of every attribute, so that attributes go together as far as the kinds differ.
Distances on it say how methods behave at this size and shape. They do not say what they would be on the census.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl

from polyseme.arrays import Floats, Ints
from polyseme.errors import InvalidInput
from polyseme.randomness import experiment
from polyseme.studies.reproduce.sensitive_qids.attributes import Attributes

__all__ = ["ATTRIBUTES", "GENERATED", "REAL", "RECORDS", "census", "census_name", "find_census"]

RECORDS, ATTRIBUTES = 2_458_285, 68
REAL, GENERATED = "US Census", "generated census"
_BYTES = 361_344_227
_SHA256 = "38e99f50855ddc03167b715b36519ef40b77295ae4e85dfef0c6429ac79ed799"
_LEAST, _MOST = 2, 18
"""Values of an attribute."""
_KINDS = 6


def find_census(given: str | None) -> tuple[Path | None, str]:
    """The file, if one was given and it is the published one, and what is used, in words."""
    if given is None:
        return None, "not given (--data census=FILE): a generated table of its shape stands for it"
    file = Path(given)
    if not file.is_file():
        raise InvalidInput(f"{file}: there is no such file", "the file is USCensus1990.data.txt of the UCI repository")
    if file.stat().st_size != _BYTES:
        raise InvalidInput(f"{file}: {file.stat().st_size:,} bytes, where {_BYTES:,} were published")
    with file.open("rb") as opened:
        if hashlib.file_digest(opened, "sha256").hexdigest() != _SHA256:
            raise InvalidInput(f"{file}: its SHA-256 is not that of the published file")
    return file, "from the file that was given"


def census_name(file: Path | None) -> str:
    """What points and charts call the table, so that one is never taken for the other."""
    return GENERATED if file is None else REAL


@lru_cache(maxsize=1)
def census(file: Path | None, records: int) -> Attributes:
    """So many records of the census, or of a table of its shape."""
    return _generated(records) if file is None else _read(file, records)


def _read(file: Path, records: int) -> Attributes:
    with file.open(encoding="utf-8") as opened:
        names = [name.strip() for name in opened.readline().split(",")][1:]
    table = pl.read_csv(file, columns=list(range(1, len(names) + 1)), infer_schema_length=1_000)
    chosen = np.sort(experiment(1).choice(len(table), min(records, len(table)), replace=False))
    coded = [np.unique(table[:, place].to_numpy(), return_inverse=True) for place in range(len(names))]
    codes = tuple(code.ravel()[chosen].astype(np.int64) for _, code in coded)
    return Attributes(codes, tuple(len(values) for values, _ in coded))


def _generated(records: int) -> Attributes:
    """Small domains more often than large ones, in shares that fall off."""
    spread = (_MOST - _LEAST) * np.linspace(0.0, 1.0, ATTRIBUTES) ** 1.5
    sizes = tuple(int(size) for size in np.round(_LEAST + spread))
    generator = experiment(1)
    kind = generator.integers(_KINDS, size=records)
    return Attributes(tuple(_drawn(size, kind, generator) for size in sizes), sizes)


def _drawn(size: int, kind: Ints, generator: np.random.Generator) -> Ints:
    """A value for each record: half of the shares are everybody's, half are those of its kind."""
    common = _falling(size)
    shares = np.array([(common + common[generator.permutation(size)]) / 2.0 for _ in range(_KINDS)])
    limits, lot = np.cumsum(shares, axis=1)[:, :-1], generator.random(len(kind))
    codes = np.zeros(len(kind), dtype=np.int64)
    for limit in limits.T:
        codes += lot >= limit[kind]
    return codes


def _falling(size: int) -> Floats:
    weight = 0.7 ** np.arange(size)
    return np.asarray(weight / weight.sum())
