"""The fixtures of the tests of dashboards (`make test-dashboards`)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.versions import NEWEST_KUBERNETES
from grafana import caches, load, processes
from grafana.world import World
from integration.control_plane import control_plane
from support.prometheus import prometheus


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Caches and the operator under load, and the Prometheus that scrapes them."""
    directory: Path = tmp_path_factory.mktemp("world")
    with (
        control_plane("dashboards", NEWEST_KUBERNETES) as plane,
        caches.started(directory) as pods,
        processes.started(plane, directory) as ports,
        load.load(pods),
        prometheus([_job(each) for each in (*(pod.target for pod in pods), *processes.targets(ports))]) as server,
    ):
        yield World(pods, server)


def _job(target: dict[str, object]) -> dict[str, object]:
    labels = target["labels"]
    assert isinstance(labels, dict)
    return {"job_name": f"{labels['namespace']}/{labels['pod']}", "static_configs": [target]}
