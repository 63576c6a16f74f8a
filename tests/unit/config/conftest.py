"""Fixtures that render the kustomize variants."""

from collections.abc import Callable

import pytest

from unit.config.rendered import Rendered, render_directory


@pytest.fixture
def render() -> Callable[[str], Rendered]:
    """Render a directory of the project."""
    return render_directory


@pytest.fixture(params=["config/default", "config/overlays/certmanager"])
def variant(request: pytest.FixtureRequest) -> Rendered:
    """Each variant that can be deployed."""
    return render_directory(request.param)


@pytest.fixture
def default() -> Rendered:
    """The variant whose controller issues the webhook certificate."""
    return render_directory("config/default")
