"""`regress`: coefficients of a regression on open and protected columns, with intervals."""

from __future__ import annotations

from polyseme.inference.regression import regress

__all__ = ["regress"]
