"""Clusters, servers and sessions of Spark for tests; what is not installed is named, and its tests are skipped.

Everything starts when the first test asks for it, once, and ends with the last test.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import servers
import spark_cluster
from sessions import Classic, remote

# Java is started by a fork, perhaps while a session of Connect has threads. Once it did not start, and gRPC had
# complained about its own handling of forks; no test here needs that.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

OnCluster = Callable[..., Any]
_HERE = Path(__file__).parent
# What PySpark puts in the environment while a session speaks Connect; by it its functions know whom to speak to.
_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
            item.add_marker(
                pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
            )


def _skip_without(reason: str | None) -> None:
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def spark_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where servers keep what they write."""
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="session")
def classic(spark_folder: Path) -> Iterator[Classic]:
    _skip_without(spark_cluster.missing())
    running = Classic(spark_folder)
    yield running
    running.end()


@pytest.fixture(scope="session")
def cluster(spark_folder: Path) -> Iterator[spark_cluster.Cluster]:
    """A master and two workers with a core each."""
    _skip_without(spark_cluster.missing())
    running = spark_cluster.Cluster(spark_folder)
    yield running
    running.end()


@pytest.fixture
def on_cluster(cluster: spark_cluster.Cluster, classic: Classic) -> OnCluster:
    """Gives a classic session on the cluster, both of whose executors are there."""

    def session(settings: dict[str, str] | None = None) -> Any:
        cluster.heal()
        made = classic.session(cluster.address, settings)
        spark_cluster.wait_for(lambda: classic.executors() == len(cluster.workers), "the executors")
        return made

    return session


@pytest.fixture
def local_spark(classic: Classic) -> Any:
    """A classic session on two cores of this machine."""
    return classic.session("local[2]")


@pytest.fixture(scope="session")
def connect_session(spark_folder: Path) -> Iterator[Any]:
    _skip_without(spark_cluster.missing())
    yield from _remote_session(servers.spark_connect(spark_folder))


@pytest.fixture(scope="session")
def sail_address(spark_folder: Path) -> Iterator[str]:
    """Where a Sail server listens."""
    _skip_without(servers.missing_sail())
    server = servers.sail(spark_folder)
    yield server.address
    server.end()


@pytest.fixture(scope="session")
def sail_session(sail_address: str) -> Iterator[Any]:
    session = remote(sail_address)
    yield session
    session.stop()


def _remote_session(server: servers.ConnectServer) -> Iterator[Any]:
    try:
        session = remote(server.address)
        yield session
        session.stop()
    finally:
        server.end()


@pytest.fixture
def connect(connect_session: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A session with Spark's own Connect server."""
    monkeypatch.setenv(_CONNECT_MODE, "1")
    return connect_session


@pytest.fixture
def sail(sail_session: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A session with a Sail server, which needs no Java."""
    monkeypatch.setenv(_CONNECT_MODE, "1")
    return sail_session


@pytest.fixture(params=["local_spark", "connect", "sail"])
def spark(request: pytest.FixtureRequest) -> Any:
    """A session of each kind in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["sail", "local_spark"])
def sail_or_classic(request: pytest.FixtureRequest) -> Any:
    """Two sessions that have no line of code in common but ours."""
    return request.getfixturevalue(request.param)
