"""Fixtures of the tests with Helm (`make test-chart`)."""

from pathlib import Path

import pytest

from support.helm import Helm, helm, write_schemas


@pytest.fixture(scope="session", params=["helm-3", "helm-4"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Each Helm."""
    return helm(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def helm_4(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm 4."""
    return helm("helm-4", tmp_path_factory.mktemp("helm-4"))


@pytest.fixture(scope="session")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the JSON schemas of Kubernetes' kinds."""
    folder = tmp_path_factory.mktemp("schemas")
    write_schemas(folder)
    return folder
