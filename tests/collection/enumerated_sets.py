"""What sets of a sampling document can tell, by going through all of them as the protocol says."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise
from math import prod


def all_sets(document):
    """Every set with its weight, up to a common factor."""
    return dict(_WAYS[document["kind"]](document, document["l"]))


def _table(document, l):
    return zip(map(tuple, document["sets"]), document["weights"], strict=True)


def _listed(document, l):
    later = document["neighbours"]
    for codes in combinations(range(len(later)), l):
        if list(codes) not in document["excluded"] and all(b in later[a] for a, b in combinations(codes, 2)):
            yield codes, prod(document["weights"][code] for code in codes)


def _clusters(document, l):
    labels = document.get("labels") or list(range(document["size"]))
    weights = document.get("weights") or [1] * (max(labels) + 1)
    shares = document.get("shares") or [1] * len(labels)
    of_cluster = [sum(s for s, label in zip(shares, labels) if label == one) for one in range(max(labels) + 1)]
    for codes in combinations(range(len(labels)), l):
        found = {labels[code] for code in codes}
        if len(found) == l and found.issuperset(document.get("full", ())):
            yield (
                codes,
                prod(Fraction(weights[labels[code]] * shares[code], of_cluster[labels[code]]) for code in codes),
            )


def _line(document, l):
    ahead = document["ahead"]
    for places in combinations(range(len(ahead)), l):
        apart = all(b >= ahead[a] for a, b in pairwise(places))
        if apart and all(sum(t <= place < ahead[t] for place in places) == 1 for t in document["tight"]):
            yield _coded(document, places)


def _circle(document, l):
    ahead = document["ahead"]
    for places in combinations(range(len(ahead)), l):
        if all(b >= ahead[a] for a, b in pairwise((*places, places[0] + len(ahead)))):
            yield _coded(document, places)


def _coded(document, places):
    weights = document.get("weights") or [1] * len(document["order"])
    return tuple(sorted(document["order"][place] for place in places)), prod(weights[place] for place in places)


_WAYS = {"table": _table, "listed": _listed, "clusters": _clusters, "line": _line, "circle": _circle}


def findings(document, prior):
    """Worst posterior under a prior, the same under a uniform one, and the largest factor for the odds."""
    sets = all_sets(document)
    size = 1 + max(max(codes) for codes in sets)
    p, everything = Fraction(document["p53"], 2**53), sum(sets.values())
    holding = [sum(weight for codes, weight in sets.items() if value in codes) for value in range(size)]
    uniform, worst, even, odds = [Fraction(1, size)] * size, Fraction(0), Fraction(0), Fraction(1)
    for codes, weight in sets.items():
        given = [
            (p * Fraction(weight) / holding[value] if value in codes else 0) + (1 - p) * Fraction(weight) / everything
            for value in range(size)
        ]
        worst, even = max(worst, _largest(prior, given)), max(even, _largest(uniform, given))
        inside = [given[value] for value in codes]
        odds = max(odds, max(inside) / min(inside))
    return float(worst), float(even), float(odds)


def _largest(prior, given):
    joint = [Fraction(share) * likelihood for share, likelihood in zip(prior, given, strict=True)]
    return max(joint) / sum(joint)
