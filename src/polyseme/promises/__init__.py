"""Promises: what is promised for an attribute, one file each."""

from polyseme.promises.base import Bounds, Candidates, Channel, Grounds, Known, Outcome, Promise, Reached, Spacing
from polyseme.promises.closeness import Closeness
from polyseme.promises.collection import Promises, Unreadable
from polyseme.promises.diversity import Diversity
from polyseme.promises.drawing import Drawing
from polyseme.promises.entropy_diversity import EntropyDiversity
from polyseme.promises.ldp import Ldp
from polyseme.promises.learner import Learner
from polyseme.promises.reading import read_promises, stored_promises
from polyseme.promises.registry import PROMISES
from polyseme.promises.semantic_diversity import SemanticDiversity

__all__ = [
    "PROMISES",
    "Bounds",
    "Candidates",
    "Channel",
    "Closeness",
    "Diversity",
    "Drawing",
    "EntropyDiversity",
    "Grounds",
    "Known",
    "Ldp",
    "Learner",
    "Outcome",
    "Promise",
    "Promises",
    "Reached",
    "SemanticDiversity",
    "Spacing",
    "Unreadable",
    "read_promises",
    "stored_promises",
]
