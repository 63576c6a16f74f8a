"""Fixtures of the tests with the real OLM."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.console.progress import Progress
from cluster.public.lifecycle import cluster_name, down
from olm import running
from project import images
from project.environment import changed, signals_ignored
from project.images import Images
from support import kube, pods
from support.olm import VERSION, Releases


@pytest.fixture(scope="session", autouse=True)
def olm_cluster(pytestconfig: pytest.Config) -> Iterator[None]:
    """A cluster with real pods, OLM and the images of `make built`; removed at the end. Its progress is shown."""
    pods.require(own=True)
    name, built = f"{cluster_name()}-olm", Images(os.environ["IMG"], os.environ["AGENT_IMG"])
    shown: Any = pytestconfig.pluginmanager.getplugin("capturemanager")
    with changed(CLUSTER_NAME=name, KUBECONFIG=None):
        try:
            with shown.global_and_fixture_disabled():
                images.provide(built)
                running.up(Progress(running.STEPS))
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
