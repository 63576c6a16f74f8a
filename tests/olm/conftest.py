"""Fixtures of the tests with the real OLM (`make test-olm` sets up its cluster)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import kube, olm
from support.kube import kubectl
from support.olm import VERSION, Releases
from support.waiting import READY

CRDS = ("memcacheds.cache.example.com", "memcachedproxies.cache.example.com", "appservices.app.example.com")


@pytest.fixture(scope="session", autouse=True)
def dedicated_cluster(cluster: object) -> Iterator[None]:
    """Require a cluster without the operator; finally delete the CustomResourceDefinitions, which OLM leaves behind."""
    deployed = kubectl("get", "namespace", "memcached-operator-system", "--ignore-not-found", "-o", "name").stdout
    if deployed:
        pytest.exit("these tests need a cluster in which the operator is not deployed: run `make undeploy` first", 2)
    olm.tool("olm", "status")
    yield
    kubectl("delete", "crd", "--ignore-not-found", f"--timeout={READY:g}s", *CRDS)
    olm.tool("olm", "unserve", olm.CATALOG)


@pytest.fixture(scope="session")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    """Creates bundles and catalogs."""
    return Releases(tmp_path_factory.mktemp("releases"))


@pytest.fixture(scope="session")
def current_bundle(releases: Releases) -> Path:
    """The bundle of this tree's release."""
    return releases.bundle(VERSION)


@pytest.fixture
def other_namespace() -> Iterator[str]:
    """A second namespace for one test."""
    with kube.temporary_namespace() as name:
        yield name
