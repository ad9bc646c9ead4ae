"""Promises: what is promised for an attribute, one file each."""

from polyseme.privacy.promises.base import (
    Bounds,
    Candidates,
    Channel,
    Drawing,
    Grounds,
    Known,
    Outcome,
    Promise,
    Reached,
    Spacing,
)
from polyseme.privacy.promises.closeness import Closeness
from polyseme.privacy.promises.diversity import Diversity
from polyseme.privacy.promises.entropy_diversity import EntropyDiversity
from polyseme.privacy.promises.ldp import Ldp
from polyseme.privacy.promises.learner import Learner
from polyseme.privacy.promises.registry import PROMISES, Promises, Unreadable, read_promises, stored_promises
from polyseme.privacy.promises.semantic_diversity import SemanticDiversity

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
