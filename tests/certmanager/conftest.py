"""Fixtures of the tests with the real cert-manager (`make test-certmanager`)."""

import os
from collections.abc import Iterator

import pytest

from certmanager.processes import cert_manager
from cluster.versions import NEWEST_KUBERNETES
from integration.control_plane import ControlPlane, control_plane
from project.environment import changed, use_kubectl_of


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with cert-manager. kubectl uses it."""
    with (
        control_plane(f"certmanager-{os.getpid()}", NEWEST_KUBERNETES) as started,
        changed(KUBECONFIG=str(started.kubeconfig)),
    ):
        use_kubectl_of(NEWEST_KUBERNETES)
        with cert_manager(started, tmp_path_factory.mktemp("cert-manager")):
            yield started
