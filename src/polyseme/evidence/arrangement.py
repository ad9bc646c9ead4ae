"""Rows in random order: what their order says when they were shuffled, and when they were not.

Every order of the rows is equally likely where they were shuffled, whatever they hold: people with several records and
sets that several records share make no difference. So the bounds below need nothing but the shuffle.

    blocks     how often a value occurs in a block of n rows: drawn without replacement from all rows, so at most as
               far from its share of the whole as a binomial count (Hoeffding 1963)
    neighbors  how many candidates the rows of a pair share, in all pairs: S = sum of a(i, pi(i)) for a random order pi
               of the second rows, a in [0, 1], so P(|S - E S| >= t) <= 2 exp(-t^2 / (4 E S + 2 t)) (Chatterjee 2007)
"""

from __future__ import annotations

import numpy as np

from polyseme.evidence.found import Evidence, Finding, impossible, least, nothing
from polyseme.evidence.tails import share_tail
from polyseme.tables.counting.row_order import Neighbors, RowOrder

__all__ = ["order_evidence"]

_COUNTED = "another engine counted the rows: their order was not tested"
_FEW = 4
"""Fewer rows have no blocks that could differ."""


def order_evidence(order: RowOrder) -> Evidence:
    """Whether the order of the candidates, or of the rows, can be a random one."""
    if order.unsorted:
        what = "records have their candidates in another order than the domain's"
        return impossible(order.rows, f"{order.unsorted:,} {what}")
    if order.counted or order.rows < _FEW:
        return nothing(order.rows, _COUNTED if order.counted else "")
    return least([_blocks(order), _neighbors(order.neighbors())], order.rows)


def _blocks(order: RowOrder) -> Finding:
    """The value whose share in some block differs most surprisingly from its share in all rows."""
    rows, held = order.blocks()
    whole = order.held / order.rows
    some = (whole > 0.0) & (whole < 1.0)
    tails = share_tail(held[:, some], rows[:, None], whole[some])
    tail = float(tails.min(initial=0.0))
    return Finding("blocks", tail, tail, 2 * max(tails.size, 1))


def _neighbors(found: Neighbors) -> Finding:
    """Whether neighbors share more or fewer candidates than any two rows."""
    shared, expected = found.shared / found.width, found.expected / found.width
    apart = abs(shared - expected)
    tail = -(apart**2) / (4.0 * expected + 2.0 * apart) if apart else 0.0
    return Finding("neighbors", float(np.exp(tail)), tail, 2)
