"""What tests share: where the reference data is, and small tables and policies."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
# Tests run side by side, one for each core: threads of the linear algebra library would only wait for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

SHARED = ROOT.parent / "shared" / "data"

hypothesis.settings.register_profile("steady", deadline=None, derandomize=True)
hypothesis.settings.load_profile("steady")


@pytest.fixture(scope="session")
def adult() -> Path:
    """The 30,162 Adult records as the ARX tool has them; skips where the reference data is not beside the project."""
    path = SHARED / "adult" / "adult-arx.csv"
    if not path.exists():
        pytest.skip("the reference data (../shared/data/adult) is not on this machine")
    return path
