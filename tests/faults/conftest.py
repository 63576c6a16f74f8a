"""The control plane of the fault cases. All workers of pytest share one."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from faults.campaigns.mutants import copy_sources
from faults.session import Session, session, started_plane
from integration.control_plane import ControlPlane

SHARED = pytest.StashKey[ControlPlane]()
KUBECONFIG = "faults_kubeconfig"
"""Key of the kubeconfig among the inputs of a worker."""


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Start the control plane before the first worker, and stop it after the last one."""
    config: pytest.Config = node.config
    if SHARED not in config.stash:
        stack = ExitStack()
        config.stash[SHARED] = stack.enter_context(started_plane(f"faults-{os.getpid()}"))
        config.add_cleanup(stack.close)
    node.workerinput[KUBECONFIG] = str(config.stash[SHARED].kubeconfig)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the cases last that no other case may run beside."""
    items.sort(key=lambda item: item.get_closest_marker("alone") is not None)


@pytest.fixture(scope="session")
def control(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """The control plane of all workers, or one of this process."""
    inputs: dict[str, Any] = getattr(pytestconfig, "workerinput", {})
    if KUBECONFIG in inputs:
        kubeconfig = Path(inputs[KUBECONFIG])
        yield ControlPlane(kubeconfig, kubeconfig.parent / "audit.log")
        return
    with started_plane(f"faults-{os.getpid()}") as started:
        yield started


@pytest.fixture(scope="session")
def shared_session(control: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """What the cases of this process share. Its sources are a copy: later changes of the tree have no effect."""
    directory = tmp_path_factory.mktemp("session")
    with session(control, directory, copy_sources(directory / "sources")) as found:
        yield found


@pytest.fixture
def faults(shared_session: Session, control: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Session]:
    """What runs a case. While a test marked `alone` runs, no other worker runs a case."""
    alone = request.node.get_closest_marker("alone") is not None
    with control.kubeconfig.with_name("cases.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield shared_session
