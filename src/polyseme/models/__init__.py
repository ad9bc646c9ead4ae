"""Privacy models: each one a definition, a check and a verdict."""

from polyseme.models.base import Background, Model, Place, Verdict
from polyseme.models.check import check_models
from polyseme.models.registry import MODELS, background_of, ground_of, is_about, read_spec

__all__ = [
    "MODELS",
    "Background",
    "Model",
    "Place",
    "Verdict",
    "background_of",
    "check_models",
    "ground_of",
    "is_about",
    "read_spec",
]
