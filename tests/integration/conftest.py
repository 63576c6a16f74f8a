"""Fixtures of the tests that need an API server, but no node."""

import os
import uuid
from collections.abc import Iterator

import pytest

from cluster.versions import SUPPORTED
from integration.control_plane import NAMESPACES, ControlPlane, control_plane
from integration.issuing import Installation, configuration
from memcached_operator.certificates.issuer import Names
from memcached_operator.engine.resource import Key


@pytest.fixture(scope="session", params=SUPPORTED)
def version(request: pytest.FixtureRequest) -> str:
    """Each version of Kubernetes that we test with."""
    return request.param


@pytest.fixture(scope="session")
def plane(version: str) -> Iterator[ControlPlane]:
    """A control plane of this test process's own, of each version in turn."""
    with control_plane(f"integration-{os.getpid()}", version) as started:
        yield started


@pytest.fixture
def namespace(plane: ControlPlane) -> Iterator[str]:
    """A namespace of the test's own."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    plane.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    plane.delete(Key(NAMESPACES, "", name))


@pytest.fixture
def installation(plane: ControlPlane, namespace: str) -> Iterator[Installation]:
    """An installation without a certificate yet."""
    made = Installation(plane, Names(namespace, "cert", "webhook", f"{namespace}-mutating", f"{namespace}-validating"))
    for key in made.configurations:
        plane.create(key.resource, configuration(key))
    yield made
    for key in made.configurations:
        plane.delete(key)
