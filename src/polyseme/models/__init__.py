"""Privacy models: each one a definition, a check and a verdict."""

from polyseme.models.base import Place, Verdict
from polyseme.models.checking import check_models
from polyseme.models.described import background_of, is_about
from polyseme.models.grounds import ground_of
from polyseme.models.model import Background, Model
from polyseme.models.registry import MODELS, read_spec

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
