"""Fixtures of the tests that need a cluster (`make test` sets it up and deploys the operator first)."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from cluster.console.report import aligned
from support import kube, parts, surroundings
from support.audit import Audit

ROOT = Path(__file__).parent.parent

surroundings.settle()

# A background command of a shell ignores SIGINT, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test depends on the speed of the machine.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the suites."""
    parts.add_options(parser)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of other suites; start with long ones."""
    parts.arrange(config, items)


@pytest.fixture(scope="session")
def cluster() -> dict[str, Any]:
    """The output of `python3 -m cluster info` for the local cluster."""
    done = subprocess.run(
        [sys.executable, "-m", "cluster", "info"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tools")},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.fixture
def audit(cluster: dict[str, Any]) -> Audit:
    """The API server's audit log from now on."""
    return Audit(Path(cluster["audit_log"]))


@pytest.fixture
def namespace() -> Iterator[str]:
    """A namespace for one test; deleted afterwards, without waiting."""
    with kube.temporary_namespace() as name:
        yield name


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures that tests measured (`record_property`), one per line."""
    reports = [each for found in terminalreporter.stats.values() for each in found]
    calls = [each for each in reports if isinstance(each, pytest.TestReport) and each.when == "call"]
    figures = [(f"{each.head_line}: {name}", str(value)) for each in calls for name, value in each.user_properties]
    if figures:
        terminalreporter.section("figures")
        terminalreporter.write_line(aligned(figures))
