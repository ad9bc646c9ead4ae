"""Counts for Prometheus, in its text format; nothing in them names a campaign, a sender or a value."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

__all__ = ["MEDIA_TYPE", "Metrics"]

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000)


class _Histogram:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds, self._counts, self._sum = bounds, [0] * (len(bounds) + 1), 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str) -> list[str]:
        total, lines = 0, []
        for bound, count in zip((*self._bounds, None), self._counts):
            total += count
            lines.append(f'{name}_bucket{{le="{"+Inf" if bound is None else f"{bound:g}"}"}} {total}')
        return [*lines, f"{name}_sum {self._sum:.6f}", f"{name}_count {total}"]


class Metrics:
    """What one collector has done since it started."""

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()
        self._seconds, self._sizes = _Histogram(_SECONDS), _Histogram(_SIZES)

    def answered(self, endpoint: str, status: int) -> None:
        """One more answer."""
        self.answers[endpoint, status] += 1

    def stored(self, entries: int, seconds: float) -> None:
        """One more transaction."""
        self._sizes.observe(entries)
        self._seconds.observe(seconds)

    def text(self, waiting: int, ready: bool) -> str:
        """All of it."""
        answers = [
            f'polyseme_answers_total{{endpoint="{endpoint}",status="{status}"}} {count}'
            for (endpoint, status), count in sorted(self.answers.items())
        ]
        parts = [
            ("polyseme_answers_total", "counter", "Answers by endpoint and status.", answers),
            ("polyseme_waiting", "gauge", "Reports that wait for a transaction.", [f"polyseme_waiting {waiting}"]),
            ("polyseme_ready", "gauge", "Whether the store answers.", [f"polyseme_ready {int(ready)}"]),
            *(
                (name, "histogram", text, found.lines(name))
                for name, text, found in (
                    ("polyseme_batch_entries", "Reports and withdrawals of a transaction.", self._sizes),
                    ("polyseme_batch_seconds", "From taking a batch to its acknowledgement.", self._seconds),
                )
            ),
        ]
        return "".join(
            f"# HELP {name} {text}\n# TYPE {name} {kind}\n" + "".join(f"{line}\n" for line in lines)
            for name, kind, text, lines in parts
        )
