"""What tests share: where the reference data is, and small tables and policies."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

# Tests run side by side, one for each core: threads of the linear algebra library would only wait for one another.
# It reads this once, when numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from polyseme.kernel import randomness

ROOT = Path(__file__).resolve().parent.parent
# Lines are folded to what this says, and tests look for sentences in them.
os.environ.pop("COLUMNS", None)

SHARED = ROOT.parent / "shared" / "data"

# The same examples in every run, on every machine, however busy it is.
hypothesis.settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("steady")

SEED = os.environ.get("POLYSEME_TEST_SEED", "0")
"""Another one draws other decoys in every test: a test that then fails is one that depends on luck."""


class _Entropy:
    """Keys in place of those of the operating system: the same for a test, or a fixture, whatever else runs."""

    def __init__(self) -> None:
        self.asking = list[str]()
        self._calls = Counter[str]()

    def key(self) -> bytes:
        asking = self.asking[-1] if self.asking else os.environ.get("PYTEST_CURRENT_TEST", "")
        self._calls[asking] += 1
        return hashlib.sha256(f"{SEED} {asking} {self._calls[asking]}".encode()).digest()

    def from_the_start(self) -> None:
        self._calls.clear()


_entropy = _Entropy()
_real_key = randomness.fresh_key


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Generator[None]:
    """What a fixture draws does not depend on which test asks for it first."""
    parameter = getattr(request, "param_index", "")
    _entropy.asking.append(f"{request.node.nodeid} {fixturedef.argname} {parameter}")
    try:
        return (yield)
    finally:
        _entropy.asking.pop()


@pytest.fixture(scope="session", autouse=True)
def _repeatable_releases() -> Iterator[None]:
    """No test is red or green by the luck of its decoys.

    `seed=` would do that as well, but such a release is marked as not for publication, and most tests are about those
    that are. That real keys differ is tested where they live.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(randomness, "fresh_key", _entropy.key)
        yield


@pytest.fixture
def real_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys come from the operating system after all."""
    monkeypatch.setattr(randomness, "fresh_key", _real_key)


@pytest.fixture
def same_keys_again() -> Callable[[], None]:
    """Calling it makes what follows draw the keys that this test began with."""
    return _entropy.from_the_start


@pytest.fixture(scope="session")
def adult() -> Path:
    """The 30,162 Adult records as the ARX tool has them; skips where the reference data is not beside the project."""
    path = SHARED / "adult" / "adult-arx.csv"
    if not path.exists():
        pytest.skip("the reference data (../shared/data/adult) is not on this machine")
    return path
