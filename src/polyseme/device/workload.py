"""How much work a campaign may give a device: counted from its numbers, before anything is computed or allocated.

A small document can ask for tables that no device holds. So every sampling document is charged for the work that it
means, in units that are the same in every implementation, and all documents of a campaign share one allowance.
"""

from __future__ import annotations

__all__ = ["ALLOWANCE", "MOST_BYTES", "MOST_CANDIDATES", "MOST_COLUMNS", "MOST_VALUES", "Workload"]

ALLOWANCE = 16_000_000
"""Units of work that the sampling documents of a campaign may mean together: seconds on a small device."""
MOST_BYTES = 16_000_000
"""Of a campaign document."""
MOST_CANDIDATES = 1_000
"""Of a set: more do not fit into a report."""
MOST_COLUMNS = 1_000
"""Of a campaign, and most languages: more do not fit into a report, or on a page."""
MOST_VALUES = 1_000_000
"""Of an attribute."""


class Workload:
    """What is left of the allowance."""

    def __init__(self, left: int = ALLOWANCE) -> None:
        self.left = left

    def take(self, units: int) -> bool:
        """Whether so much work may still be done; it then counts as done."""
        self.left -= units
        return self.left >= 0
