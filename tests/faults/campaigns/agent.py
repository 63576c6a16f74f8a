"""Faults of memcached and of clients, as the agent beside memcached sees them.

The unit tests cause these faults, with a simulated memcached and with a clock of their own. Each case runs some of them
with the sources of the sandbox, so that mutants show that they can fail. Integration tests cause those of a real
memcached that is watched; they need root.
"""

import asyncio
import os
import re
import sys
from asyncio.subprocess import PIPE, STDOUT
from contextlib import suppress
from functools import partial

from faults.background import CrashedError, FailedError, TimedOutError
from faults.case import Case, References, in_gate
from faults.process import ROOT, ROOTS
from faults.sandbox import Sandbox

TESTS: dict[str, tuple[str, ...]] = {
    "bursts": ("server",),
    "crowded-metrics": ("app",),
    "hangs-at-once": ("app",),
    "hangs-later": ("client",),
    "parallel-scrapes": ("app",),
    "late-replies": ("client",),
    "connection-limit": ("client",),
    "endless-reply": ("client",),
    "bad-certificates": ("pairs", "certificates", "watcher"),
    "certificate-not-loaded": ("certificates",),
    "bad-users": ("users", "accounts"),
    "memcached-restarted": ("certificates",),
    "no-certificate": ("app", "tls"),
    "warm-latch": ("warm_watcher",),
    "warm-last-minute": ("warm",),
    "warm-timeout": ("warm", "warm_watcher"),
    "warm-new-process": ("warm", "warm_watcher"),
    "warm-restart": ("warm", "warm_watcher"),
    "warm-invalid-gate": ("warm_watcher",),
    "watcher-replies": ("insight_watcher",),
    "watcher-changed": ("insight_window", "insight_watcher"),
}
"""The files in tests/unit/agent, by case."""
PORTS: dict[str, tuple[str, ...]] = {"half-heads": ("limits",), "half-handshakes": ("timeouts",)}
"""The files in tests/unit/process, by case: the contract of every port."""
WATCHED: dict[str, str] = {
    "watcher-killed": "test_agent_is_killed_during_a_window",
    "watcher-stopped": "test_agent_that_reads_nothing_does_not_delay_clients",
    "watcher-cut": "test_watcher_is_cut_in_the_middle_of_a_line",
    "watcher-hangs": "test_memcached_hangs",
    "watcher-restarted": "test_memcached_is_restarted",
    "watcher-connection-limit": "test_connection_limit",
    "watcher-password": "test_password_is_replaced_while_the_agent_watches",
}
"""The tests with a real memcached that is watched, by case."""
PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider")
CHECK = re.compile(r" - (assert|AssertionError|Failed: DID NOT RAISE|asyncio.exceptions.IncompleteReadError)")
"""What pytest's summary says of a check that failed, or of a response that is missing, unlike of an error."""


async def run(sandbox: Sandbox, references: References, tests: tuple[str, ...]) -> None:
    """Run the tests in these files. Only a failed check counts as one.

    With `CI`, pytest does not truncate the reasons in its summary to the width of the terminal.
    """
    sources = " ".join(str(sandbox.settings.sources / root) for root in ROOTS)
    paths = f"pythonpath={sources} {ROOT / 'tools'} {ROOT / 'tests'}"
    process = await asyncio.create_subprocess_exec(
        *(*PYTEST, "-o", paths, *tests), cwd=ROOT, env={**os.environ, "CI": "true"}, stdout=PIPE, stderr=STDOUT
    )
    try:
        output = (await process.communicate())[0]
    finally:
        with suppress(ProcessLookupError):
            process.kill()
    if process.returncode:
        raise _failure(output.decode(errors="replace"))


def _failure(output: str) -> FailedError:
    """The error for the output of pytest."""
    failed = re.search(r"^FAILED (.*)$", output, re.MULTILINE)
    if failed is None:
        return CrashedError(f"the tests failed: {output[-300:]}")
    if "TimeoutError" in failed[1]:
        return TimedOutError(failed[1])
    return (FailedError if CHECK.search(failed[1]) else CrashedError)(failed[1])


def cases() -> list[Case]:
    """One case for each kind of fault."""
    ports = {name: tuple(f"tests/unit/process/test_{each}.py" for each in files) for name, files in PORTS.items()}
    units = {name: tuple(f"tests/unit/agent/test_{each}.py" for each in files) for name, files in TESTS.items()}
    watched = {name: (f"tests/integration/test_agent_insight_faults.py::{test}",) for name, test in WATCHED.items()}
    found = units | ports | watched
    own = [Case(f"agent/{name}", partial(run, tests=tests)) for name, tests in found.items()]
    return in_gate(own, "agent/hangs-at-once", "agent/late-replies")
