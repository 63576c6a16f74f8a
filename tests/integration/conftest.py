"""Fixtures for tests that need an API server, but no node."""

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.versions import KUBERNETES
from corners import server
from integration import confined
from integration.confined import ACCOUNT_NAMESPACE, CHILDREN, Account, child, owner
from integration.control_plane import NAMESPACES, ControlPlane, control_plane
from memcached_operator.kube.resource import Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from project.environment import use_kubectl_of
from support.memcacheds import RELEASES, memcached_root


@pytest.fixture(scope="session")
def version() -> str:
    """The version of Kubernetes: KUBE_VERSION, or that of clusters with nodes, which is already built."""
    return os.environ.get("KUBE_VERSION") or KUBERNETES


@pytest.fixture(scope="module", params=RELEASES)
def root(request: pytest.FixtureRequest) -> Path:
    """The root directory of each tested release of memcached; The gate has the newest one only."""
    return memcached_root(request.param)


@pytest.fixture
def items(root: Path) -> Iterator[str]:
    """A directory for the items, as memcached sees it."""
    directory = Path(tempfile.mkdtemp(prefix=server.ITEMS_PREFIX, dir=root))
    os.chown(directory, server.USER, server.USER)
    yield f"/{directory.name}"
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def plane(version: str) -> Iterator[ControlPlane]:
    """A control plane for this test process."""
    with control_plane(f"integration-{os.getpid()}", version) as started:
        yield started


@pytest.fixture(scope="session")
def stolen_token(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """A token for the controller's account."""
    with confined.bound_policies(plane):
        found = confined.create_account(plane, confined.ACCOUNT, tmp_path_factory.mktemp("stolen-token"))
        confined.wait_until_in_effect(found)
        yield found


@pytest.fixture(scope="session")
def memcached(plane: ControlPlane, stolen_token: Account) -> Object:
    """The owner of the children."""
    del stolen_token
    meta, spec = {"name": "child", "namespace": ACCOUNT_NAMESPACE}, {"image": "example.com/memcached:1"}
    kind = {"apiVersion": MEMCACHEDS.api_version, "kind": MEMCACHEDS.kind}
    return plane.create(MEMCACHEDS, {**kind, "metadata": meta, "spec": spec})


@pytest.fixture(scope="session")
def children(plane: ControlPlane, memcached: Object) -> dict[Resource, Object]:
    """A stored Deployment and Service that a Memcached owns."""
    reference = owner(uid=memcached["metadata"]["uid"])
    return {resource: plane.create(resource, child(resource, "child", reference)) for resource in CHILDREN}


@pytest.fixture
def kubeconfig(plane: ControlPlane, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`support.kube.kubectl` uses this control plane, with the kubectl of its version or of KUBECTL_VERSION."""
    monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    use_kubectl_of(version)


@pytest.fixture
def namespace(plane: ControlPlane) -> Iterator[str]:
    """A namespace for one test."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    plane.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    plane.delete(Key(NAMESPACES, "", name))
