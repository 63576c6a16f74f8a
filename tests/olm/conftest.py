"""Fixtures of the tests with the real OLM."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from cluster.public.lifecycle import cluster_name, down
from cluster.versions import KUBERNETES
from project.environment import changed, find_cluster, signals_ignored, use_kubectl_of
from support import kube, pods
from support.olm import VERSION, Releases, show


@pytest.fixture(scope="session", autouse=True)
def olm_cluster(pytestconfig: pytest.Config) -> Iterator[None]:
    """A cluster with real pods, OLM and the images of `make built`; removed at the end. Its progress is shown.

    Commands start it, so that the processes which they leave behind are no children of this one.
    """
    pods.require(own=True)
    name, shown = f"{cluster_name()}-olm", pytestconfig.pluginmanager.getplugin("capturemanager")
    with changed(CLUSTER_NAME=name, KUBECONFIG=None):
        try:
            with cast("Any", shown).global_and_fixture_disabled():
                show("cluster", "up")
                for variable in ("IMG", "AGENT_IMG"):
                    show("project", "push", variable, os.environ[variable], "--into-cluster")
                show("olm", "up")
            find_cluster()
            use_kubectl_of(KUBERNETES)
            yield
        finally:
            with signals_ignored():
                down(name)


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
