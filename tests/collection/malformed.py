"""Bodies that are no reports, made quickly and in many ways; the same ones in every run.

Each holds a marked text somewhere, so that it can be seen whether an answer or a log repeats what was sent.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import crowd

__all__ = ["MARK", "bodies"]

MARK = "m4rk3d"
_STRANGE: tuple[Any, ...] = (
    None, True, False, -1, 0.5, 1e308, 10**30, 2**31, 2**32, 2**63, "", MARK, "0", "\u0000", "\ud800", "é" * 9,
    [], [[]], [0], [MARK], {}, {MARK: MARK}, [None] * 9, list(range(99)),
)  # fmt: skip


def bodies(count: int, seed: int, good: dict[str, Any]) -> Iterator[bytes]:
    """So many bodies, none of them a report that could be stored."""
    draw = random.Random(seed)
    ways: list[tuple[Callable[..., bytes], int]] = [
        (_field, 5), (_inside, 6), (_shape, 2), (_text, 4), (_noise, 2), (_deep, 1), (_size, 1), (_impossible, 4),
    ]  # fmt: skip
    chosen = draw.choices([way for way, _ in ways], [weight for _, weight in ways], k=count)
    for way in chosen:
        yield way(draw, good)


def _written(report: Any, size: int = crowd.SIZE) -> bytes:
    """Padded where that can be done, and marked."""
    if isinstance(report, dict) and "pad" not in report:
        bare = len(json.dumps({**report, "pad": MARK}, separators=(",", ":")))
        report = {**report, "pad": MARK + "0" * (size - bare)}
    return json.dumps(report, separators=(",", ":")).encode().ljust(size)


def _field(draw: random.Random, good: dict[str, Any]) -> bytes:
    """Another value, or none, in the place of a field; or a field that there is not."""
    report = dict(good)
    name = draw.choice([*report, "token", MARK])
    if name in report and draw.random() < 0.3:
        del report[name]
    else:
        report[name] = draw.choice(_STRANGE) if name in report else MARK
    return _written(report)


def _inside(draw: random.Random, good: dict[str, Any]) -> bytes:
    """The same one level deeper."""
    part = draw.choice(["open", "sets"])
    inner = dict(good[part])
    name = draw.choice([*inner, MARK])
    if name in inner and draw.random() < 0.2:
        del inner[name]
    else:
        inner[name] = draw.choice(_STRANGE)
    return _written({**good, part: inner})


def _shape(draw: random.Random, good: dict[str, Any]) -> bytes:
    """Something else than an object."""
    return _written(draw.choice([[good], MARK, 1, None, [], [MARK] * 40, True, {MARK: good}]))


def _text(draw: random.Random, good: dict[str, Any]) -> bytes:
    """A report in which some bytes were changed where it matters: before the padding."""
    body = bytearray(_written(good))
    end = body.index(b'"pad"') + 5
    for _ in range(draw.randint(1, 6)):
        body[draw.randrange(end)] = draw.choice(b'{}[]",:\\ 9\xff\x00\xc3e-.tn')
    # What happens to be a report still, is made none.
    return bytes(body).replace(b'"pad"', b'"pa\xff"', 1)


def _noise(draw: random.Random, good: dict[str, Any]) -> bytes:
    return (draw.randbytes(draw.choice([0, 1, 100, crowd.SIZE, crowd.SIZE])) + MARK.encode())[-crowd.SIZE :]


def _deep(draw: random.Random, good: dict[str, Any]) -> bytes:
    """Brackets within brackets."""
    return (draw.choice([b"[", b'{"a":', b"[[", b'{"id":[']) * crowd.SIZE)[: crowd.SIZE]


def _size(draw: random.Random, good: dict[str, Any]) -> bytes:
    """A good report of another length."""
    size = draw.choice([300, crowd.SIZE - 1, crowd.SIZE + 1, 4_096, 4_097, 9_000])
    return _written(good, size)


def _impossible(draw: random.Random, good: dict[str, Any]) -> bytes:
    """Well written, but no device would have drawn it: candidates that are too close, or of another stratum."""
    low = draw.randrange(9)
    wrong = draw.choice(
        [
            {"open": good["open"], "sets": {**good["sets"], "income": [low, low + 1]}},
            {"open": good["open"], "sets": {**good["sets"], "income": [low, low]}},
            {
                "open": {"sex": 1, "age": draw.randrange(3)},
                "sets": {**good["sets"], "disease": [0, draw.randint(1, 5), 6]},
            },
            {
                "open": {"sex": 0, "age": draw.randrange(3)},
                "sets": {**good["sets"], "disease": [0, draw.randint(1, 4), 5]},
            },
            {"open": {"sex": draw.choice([-1, 2, 7]), "age": 0}, "sets": good["sets"]},
            {"open": good["open"], "sets": {**good["sets"], "disease": [8, 3, 1]}},
            {"open": good["open"], "sets": {**good["sets"], "disease": [3, 8, draw.randint(9, 99)]}},
        ]
    )
    return _written({"id": crowd.report_id(draw.random()), **wrong})
