"""What all tests share: their order, their results, and fixtures for those that need a cluster."""

import gc
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from cluster.console.report import aligned
from support import kube, order, overdue, programs, recording, summary, surroundings
from support.audit import Audit

ROOT = Path(__file__).parent.parent
STARTED = time.monotonic()

surroundings.settle()

# With the defaults, the garbage collector takes a seventh of the time of the simulation.
gc.set_threshold(10_000, 20, 20)

# A background command of a shell ignores SIGINT, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test depends on the speed of the machine.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


# Fixtures end what they have started also if a test command is terminated.
signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that stores the messages of the tests again."""
    parser.addoption(recording.UPDATE, action="store_true", help="write the messages of these tests to tests/goldens")


def pytest_configure(config: pytest.Config) -> None:
    """Name and end the tests that take too long; compare messages. Raises UsageError for a path that does not exist.

    With workers, pytest itself only says that no tests ran.
    """
    absent = [each for each in config.args if not Path(each.partition("::")[0]).exists()]
    if absent and not config.option.pyargs:
        raise pytest.UsageError(f"file or directory not found: {', '.join(absent)}")
    config.pluginmanager.register(overdue)
    config.pluginmanager.register(recording.Recording(config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with long tests; a lost race is never tried again."""
    order.arrange(items)
    for item in items:
        if item.get_closest_marker("race"):
            item.add_marker(pytest.mark.flaky(reruns=0))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """With FLAKY=fail, a test that had to run once more is a failure.

    With SEVERAL, some suites may have none of the tests that ARGS selects; `python -m project results` wants one.
    """
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    flaky = "rerun" in reporter.stats if reporter else False
    if exitstatus == pytest.ExitCode.OK and flaky and os.environ.get("FLAKY") == "fail":
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    elif exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and os.environ.get("SEVERAL") and os.environ.get("ARGS"):
        session.exitstatus = pytest.ExitCode.OK


@pytest.fixture(scope="session")
def cluster() -> dict[str, Any]:
    """The output of `python3 -m cluster info` for the local cluster."""
    words = [sys.executable, "-m", "cluster", "info"]
    return json.loads(programs.output(words, env={**os.environ, "PYTHONPATH": str(ROOT / "tools")}))


@pytest.fixture
def audit(cluster: dict[str, Any]) -> Audit:
    """The API server's audit log from now on."""
    return Audit(Path(cluster["audit_log"]))


@pytest.fixture
def namespace() -> Iterator[str]:
    """A namespace for one test; deleted afterwards, without waiting."""
    with kube.temporary_namespace() as name:
        yield name


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    """Print the figures that tests measured (`record_property`), one per line; keep the results of the suite."""
    if not hasattr(config, "workerinput"):
        summary.write(terminalreporter, exitstatus, time.monotonic() - STARTED)
    reports = [each for found in terminalreporter.stats.values() for each in found]
    calls = [each for each in reports if isinstance(each, pytest.TestReport) and each.when == "call"]
    figures = [(f"{each.head_line}: {name}", str(value)) for each in calls for name, value in each.user_properties]
    if figures:
        terminalreporter.section("figures")
        terminalreporter.write_line(aligned(figures))
