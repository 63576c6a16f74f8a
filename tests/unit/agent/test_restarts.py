"""Restarts of memcached: what the watcher counts and logs."""

import logging
from pathlib import Path

import pytest

from .pods import Pod, own, run
from .samples import value
from .warming import Process

KEPT, LOST = Process(time=1400, cpu=0.1), Process(started=1400, time=1400, cpu=0.1)
OTHER = Process(pid=2, time=1400, cpu=9)
"""As in a process namespace of the pod. It has used more CPU time than the one before."""


def counts(pod: Pod) -> tuple[float, float]:
    """The restarts that kept the items, and those that lost them."""
    name = "memcached_agent_memcached_restarts_total"
    return value(pod.metrics(), name, items="kept"), value(pod.metrics(), name, items="lost")


@pytest.mark.parametrize("agent", ["runs", "restarted"])
def test_restarts_are_counted(tmp_path: Path, agent: str) -> None:
    """Also those that happen while the agent does not run, and once each."""

    async def scenario(pod: Pod) -> None:
        assert counts(pod) == (0, 0)
        await pod.work(5)
        await pod.replace(pod.process)
        await pod.work(5)
        assert counts(pod) == (0, 0), "the same process, with a new connection"
        for process, expected in ((KEPT, (1, 0)), (LOST, (1, 1)), (Process(started=1600, time=1600), (1, 2))):
            await pod.replace(Process(**vars(process)))
            if agent == "restarted":
                pod.agent()
            await pod.work(20)
            assert counts(pod) == expected
        pod.agent()
        assert counts(pod) == (1, 2)
        await pod.work(5)
        assert counts(pod) == (1, 2)

    run(tmp_path, scenario)


LINES: dict[str, tuple[Process, bool, str]] = {
    "kept": (KEPT, True, "INFO memcached was restarted and kept its items"),
    "kept, with another process ID": (OTHER, True, "INFO memcached was restarted and kept its items"),
    "kept without -e": (KEPT, False, "INFO memcached was restarted and kept its items"),
    "lost": (LOST, True, "WARNING memcached was restarted and lost its items"),
    "lost without -e": (LOST, False, "INFO memcached was restarted and lost its items"),
}


@pytest.mark.parametrize(("process", "keeps", "line"), LINES.values(), ids=LINES.keys())
def test_restart_is_logged_once(
    tmp_path: Path, process: Process, keeps: bool, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "memcached_agent")

    async def scenario(pod: Pod) -> None:
        if keeps:
            pod.run_with("-t 2")
        await pod.work(5)
        await pod.replace(Process(**vars(process)))
        await pod.work(20)

    run(tmp_path, scenario)
    assert [each for each in own(caplog) if "was restarted" in each] == [line]
