"""Fixtures of the tests with the real OLM (`make test-olm` sets up its cluster)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import kube, olm
from support.kube import kubectl
from support.olm import VERSION, Releases

CRDS = ("memcacheds.cache.example.com", "appservices.app.example.com")


@pytest.fixture(scope="session", autouse=True)
def alone(cluster: object) -> Iterator[None]:
    """No other installation is in the cluster; and what OLM leaves behind, CustomResourceDefinitions, we do not."""
    deployed = kubectl("get", "namespace", "memcached-operator-system", "--ignore-not-found", "-o", "name").stdout
    if deployed:
        pytest.exit("these tests need a cluster in which the operator is not deployed: run `make undeploy` first", 2)
    olm.tool("olm", "status")
    yield
    kubectl("delete", "crd", "--ignore-not-found", "--timeout=60s", *CRDS)
    olm.tool("olm", "unserve", olm.CATALOG)


@pytest.fixture(scope="session")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    """Bundles and catalogues."""
    return Releases(tmp_path_factory.mktemp("releases"))


@pytest.fixture(scope="session")
def first(releases: Releases) -> Path:
    """The bundle of this tree's release."""
    return releases.bundle(VERSION)


@pytest.fixture
def other() -> Iterator[str]:
    """A second namespace of the test's own."""
    with kube.own_namespace() as name:
        yield name
