"""The watcher with a warm gate: files, a memcached that is replaced, and restarts of the agent."""

import asyncio
import logging
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from memcached_agent.memcached import connection
from memcached_agent.pod import files, record

from .memcacheds import HANG, replies_again
from .pods import Pod, own, polling, run
from .samples import samples, value
from .warming import Process

GATE = "hitRatio=80,timeout=900,minRequests=100"


def warmth(pod: Pod) -> dict[str, float]:
    """The metrics of the gate."""
    return {name: each for (name, labels), each in samples(pod.metrics()).items() if not labels}


def test_empty_cache_becomes_warm_and_stays_warm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "memcached_agent")

    async def scenario(pod: Pod) -> None:
        await pod.work(60, 0, 100)
        assert (await pod.watcher.obstacle()).startswith(
            "not warm yet: hit ratio 0 % of 5500 gets in the last 55 s, 80 %"
        )
        await pod.work(45, 100, 0)
        assert (
            "hit ratio 75 % of 6000 gets in the last minute, 80 % needed; ready in 14 min"
            in await pod.watcher.obstacle()
        )
        assert warmth(pod) == {
            "memcached_agent_warm": 0,
            "memcached_agent_hit_ratio": 0.75,
            "memcached_agent_target_hit_ratio": 0.8,
        }
        await pod.work(5, 100, 0)
        assert await pod.watcher.obstacle() == ""
        await pod.work(600, 0, 100)
        assert await pod.watcher.obstacle() == ""
        assert warmth(pod) == {
            "memcached_agent_warm": 1,
            "memcached_agent_hit_ratio": 0,
            "memcached_agent_target_hit_ratio": 0.8,
            "memcached_agent_warm_up_seconds": 110,
        }

    run(tmp_path, scenario, GATE)
    assert own(caplog) == ["INFO warm after 110 s (ratio): 5000 hits of 6000 gets"]


@pytest.mark.parametrize("warm", [False, True])
def test_restart_of_the_agent_keeps_what_it_knew(tmp_path: Path, warm: bool) -> None:
    async def scenario(pod: Pod) -> None:
        await pod.work(75, 0, 100)
        if warm:
            await pod.work(60, 100, 0)
        pod.agent()
        await pod.work(60, 0, 100)
        if warm:
            assert await pod.watcher.obstacle() == ""
            assert value(pod.metrics(), "memcached_agent_warm_up_seconds") == 125
        else:
            assert "ready in 13 min at the latest" in await pod.watcher.obstacle()

    run(tmp_path, scenario, GATE)


@pytest.mark.parametrize("agent", ["runs", "restarted"])
def test_next_process_must_become_warm_too(tmp_path: Path, agent: str) -> None:
    """Its target follows from the hit ratio before: 80 % of 90 %. Its time starts with it."""

    async def scenario(pod: Pod) -> None:
        await pod.work(305, 90, 10)
        assert await pod.watcher.obstacle() == ""
        await pod.replace(Process(time=1400, cpu=0.1))
        if agent == "restarted":
            pod.agent()
        assert "observed for 0 s, 10 s needed; ready in 15 min at the latest" in await pod.watcher.obstacle()
        assert value(pod.metrics(), "memcached_agent_warm") == 0
        assert value(pod.metrics(), "memcached_agent_warm_up_seconds") == 15
        await pod.work(15, 71, 29)
        assert "hit ratio 71 % of 1500 gets in the last 15 s, 72 % needed" in await pod.watcher.obstacle()
        await pod.work(15, 73, 27)
        assert await pod.watcher.obstacle() == ""
        assert value(pod.metrics(), "memcached_agent_warm_up_seconds") == 30

    run(tmp_path, scenario, GATE)


def test_gets_of_the_process_before_do_not_count(tmp_path: Path) -> None:
    """The next process had more gets, when it is seen first, than the one before."""

    async def scenario(pod: Pod) -> None:
        await pod.work(60, 0, 100)
        await pod.replace(Process(started=1400, time=1401, cpu=0.1, hits=10**6, misses=10**6))
        await pod.work(30, 0, 100)
        assert "hit ratio 0 % of 2500 gets in the last 25 s" in await pod.watcher.obstacle()

    run(tmp_path, scenario, GATE)


def test_timeout_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(pod: Pod) -> None:
        await pod.work(895, 10, 90)
        assert "ready in 5 s at the latest" in await pod.watcher.obstacle()
        await pod.work(5, 10, 90)
        assert await pod.watcher.obstacle() == ""
        assert value(pod.metrics(), "memcached_agent_warm_up_seconds") == 900

    run(tmp_path, scenario, GATE)
    assert own(caplog) == ["WARNING warm after 900 s (timeout): 600 hits of 6000 gets"]


NO_GATE = {"missing": "", "invalid": "is invalid, so the pod counts as warm: 'x'", "unreadable": "cannot be read"}


@pytest.mark.parametrize(("kind", "problem"), NO_GATE.items())
def test_pod_without_a_valid_gate_is_ready(
    tmp_path: Path, kind: str, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(pod: Pod) -> None:
        if kind == "unreadable":
            pod.file.unlink()
        else:
            pod.annotate("x" if kind == "invalid" else None)
        await pod.watcher.step()
        assert await pod.watcher.obstacle() == ""
        await pod.work(60, 10, 90)
        assert await pod.watcher.obstacle() == ""
        assert value(pod.metrics(), "memcached_agent_warm") == 1
        assert "memcached_agent_target_hit_ratio" not in pod.metrics()
        assert "memcached_agent_warm_up_seconds" not in pod.metrics()
        found = await pod.problem()
        assert problem in found
        assert bool(found) == bool(problem)
        pod.annotate(GATE)
        await pod.work(60, 10, 90)
        assert (await pod.watcher.obstacle(), await pod.problem()) == ("", "")
        await pod.replace(Process(started=2000, time=2000))
        await pod.work(60, 7, 93)
        assert "hit ratio 7 % of 5500 gets in the last 55 s, 8 % needed" in await pod.watcher.obstacle()

    run(tmp_path, scenario, GATE)
    assert len(own(caplog)) == bool(problem)


def test_memcached_that_does_not_reply_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(pod: Pod) -> None:
        await pod.work(30, 90, 10)
        assert await pod.watcher.obstacle() == ""
        pod.memcached.answer = lambda _: HANG
        with monkeypatch.context() as patched:
            patched.setattr(connection, "REPLY_TIMEOUT", 0.3)
            await pod.watcher.step()
            assert "did not reply to `" in await pod.watcher.obstacle()
            assert value(pod.metrics(), "memcached_agent_warm") == 0
            assert "memcached_agent_hit_ratio" not in pod.metrics()
            pod.memcached.answer = lambda line: pod.process.answer(line)
        await replies_again(pod.client)
        assert await pod.watcher.obstacle() == "", "it is the same process"

    run(tmp_path, scenario, GATE)


def test_new_connection_without_statistics_is_not_ready(tmp_path: Path) -> None:
    async def scenario(pod: Pod) -> None:
        await pod.work(30, 90, 10)
        await pod.replace(pod.process)
        pod.memcached.answer = lambda line: b"nonsense\r\nEND\r\n" if line == "stats" else None
        assert await pod.watcher.obstacle() == "not warm yet: the connection to memcached is new"

    run(tmp_path, scenario, GATE)


def test_corrupt_state_is_no_state(tmp_path: Path) -> None:
    async def scenario(pod: Pod) -> None:
        await pod.work(30, 90, 10)
        (pod.state / files.NAME).write_bytes(b"\0" * 10**6)
        pod.agent()
        assert await pod.watcher.obstacle() != ""
        assert await pod.problem() == ""
        await pod.work(30, 90, 10)
        assert await pod.watcher.obstacle() == ""
        found = pod.saved()
        assert found is not None
        assert found.warm

    run(tmp_path, scenario, GATE)


def test_problem_of_the_state_directory_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(pod: Pod) -> None:
        pod.state.rmdir()
        pod.state.write_bytes(b"a file")
        pod.agent()
        assert await pod.problem() == "the state cannot be read: Not a directory"
        await pod.work(60, 90, 10)
        assert await pod.watcher.obstacle() == ""
        assert "cannot be written, so it is lost when the agent restarts: Not" in await pod.problem()
        pod.state.unlink()
        pod.state.mkdir()
        await pod.work(5, 90, 10)
        assert await pod.problem() == ""
        assert pod.saved() is not None

    run(tmp_path, scenario, GATE)
    assert len(own(caplog)) == 2


def test_state_is_written_rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once when a process is new or warm; at most once a minute for its hit ratio. Never half a file."""
    times: list[float] = []

    async def scenario(pod: Pod) -> None:
        monkeypatch.setattr(files.os, "replace", counted(pod))
        await pod.work(600, 90, 10)
        assert times[:2] == [5005, 5015]
        assert all(later - earlier >= 60 for earlier, later in pairwise(times[1:]))
        found = pod.saved()
        assert found is not None
        assert found.ratio == 9000
        assert [each.name for each in pod.state.iterdir()] == [files.NAME]

    def counted(pod: Pod) -> Callable[[str, str], None]:
        def replace(source: str, target: str) -> None:
            assert record.decode(Path(source).read_bytes()) is not None
            Path(source).rename(target)
            times.append(pod.now)

        return replace

    run(tmp_path, scenario, GATE)
    assert len(times) >= 10


def test_memcached_and_the_annotation_are_polled(tmp_path: Path) -> None:
    async def scenario(pod: Pod) -> None:
        pod.process.work(100, 0, 100)
        with polling(pod.agent(poll=0.01)):
            async with asyncio.timeout(30):
                while "ready in 14 min" not in await pod.watcher.obstacle():  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.005)
                pod.annotate("hitRatio=80,timeout=100,minRequests=100")
                while await pod.watcher.obstacle():  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.005)

    run(tmp_path, scenario, GATE)
