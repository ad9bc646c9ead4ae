"""Mondrian: multidimensional partitioning.

The table starts as one class. A class is cut along one quasi-identifier if every part fulfills the goal, the widest
quasi-identifier first and the next where that fails; classes that cannot be cut are published.

    cut of an order       the values in order, as near to half of the records on each side as can be
    cut of a hierarchy    by the children of the lowest node above all values of the class

where
    widest    the share of the leaves that the class spans: from its lowest to its highest value, or below its node
    strict    equal values stay together, so that the classes are disjoint boxes
    relaxed   strict classes are cut further, so that no cell is wider: a cut of an order halves the records, equal
              values by lot; in a cut of a hierarchy, children that violate the goal stay together under the node, if
              that is how they fulfill it

Each quasi-identifier is shown as narrow as the class is: a single value, a range of values, the label of a group that
is this range, or the label of the lowest node. A missing value and others together are shown as the last level.

All classes of a depth are cut at once. Memory: about 100 bytes for each record, and 8 for each quasi-identifier of it;
in the strict mode for each different one. Tables that are too large for that are cut in parts: see `division` and
`grafting`.

LeFevre, DeWitt and Ramakrishnan (2006), Mondrian multidimensional k-anonymity.
"""

from polyseme.methods.mondrian.cuts import Axis, axis_of
from polyseme.methods.mondrian.partition import Mode, mondrian
from polyseme.methods.mondrian.parts import Branch, Division, Grafted, cut_part, divided, grafted, settled

__all__ = [
    "Axis",
    "Branch",
    "Division",
    "Grafted",
    "Mode",
    "axis_of",
    "cut_part",
    "divided",
    "grafted",
    "mondrian",
    "settled",
]
