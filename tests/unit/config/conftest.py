"""Fixtures: the variants of the kustomize tree."""

from collections.abc import Callable

import pytest

from unit.config.rendered import Rendered, render_directory


@pytest.fixture
def render() -> Callable[[str], Rendered]:
    """Render a directory below the project's root."""
    return render_directory


@pytest.fixture(params=["config/default", "config/overlays/certmanager"])
def variant(request: pytest.FixtureRequest) -> Rendered:
    """Each of the variants that can be deployed."""
    return render_directory(request.param)


@pytest.fixture
def default() -> Rendered:
    """The variant with certificates of our own."""
    return render_directory("config/default")
