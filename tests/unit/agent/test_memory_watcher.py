"""The watcher with a target of memory: raises, holds, and restarts of memcached and of the agent."""

import asyncio
import logging
from pathlib import Path

import pytest

from .memcacheds import LIMIT, replies_again
from .pods import Pod, own, polling, run
from .samples import value
from .warming import MEBIBYTE, Process

GATE = "hitRatio=80,timeout=900,minRequests=100"


async def first(pod: Pod, memory: str = "64") -> None:
    """Let this target be in effect; the pod is ready."""
    pod.annotate(memory=memory)
    await pod.work(5)
    assert await pod.watcher.obstacle() == ""


def raises(pod: Pod) -> list[str]:
    """The commands that raised the memory."""
    return [each for each in pod.memcached.commands if each.startswith("cache_memlimit")]


def test_first_target_needs_no_hold(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "memcached_agent")

    async def scenario(pod: Pod) -> None:
        pod.annotate(memory="128")
        pod.agent()
        assert await pod.watcher.obstacle() == ""
        assert (pod.process.limit, raises(pod)) == (128, ["cache_memlimit 128"])
        await pod.work(60)
        assert len(raises(pod)) == 1
        assert await pod.problem() == ""
        assert value(pod.metrics(), "memcached_agent_memory_target_bytes") == 128 * MEBIBYTE
        assert value(pod.metrics(), "memcached_agent_memory_target_reached") == 1

    run(tmp_path, scenario)
    assert own(caplog) == ["INFO raised the memory of memcached from 64 to 128 MiB"]


def test_pod_without_the_annotation_keeps_its_memory(tmp_path: Path) -> None:
    async def scenario(pod: Pod) -> None:
        await pod.work(60)
        assert (await pod.watcher.obstacle(), raises(pod)) == ("", [])
        assert "memory" not in pod.metrics()

    run(tmp_path, scenario)


@pytest.mark.parametrize("agent", ["runs", "restarted"])
def test_changed_target_holds(tmp_path: Path, agent: str) -> None:
    """After a restart of the agent, from the beginning: the pod is not ready for longer, never for less."""

    async def scenario(pod: Pod) -> None:
        await first(pod)
        pod.annotate(memory="128")
        await pod.work(5)
        assert pod.process.limit == 128
        assert await pod.watcher.obstacle() == "memory was raised to 128 MiB; ready in 12 s"
        pod.now += 11
        if agent == "restarted":
            pod.agent()
            assert await pod.watcher.obstacle() == "memory was raised to 128 MiB; ready in 12 s"
            pod.now += 11
        assert await pod.watcher.obstacle() == "memory was raised to 128 MiB; ready in 1 s"
        pod.now += 1
        assert await pod.watcher.obstacle() == ""
        pod.agent()
        assert await pod.watcher.obstacle() == "", "the agent has recorded the target"

    run(tmp_path, scenario)


def test_memcached_that_ends_during_the_hold_has_not_its_memory(tmp_path: Path) -> None:
    async def scenario(pod: Pod) -> None:
        await first(pod)
        pod.annotate(memory="128")
        await pod.work(5)
        await refuse(pod)
        await pod.work(60)
        assert "memcached at 127.0.0.1:" in await pod.watcher.obstacle()
        found = pod.saved()
        assert found is not None
        assert found.memory == 64
        pod.memcached.refuses, pod.process = b"", Process(started=1400, time=1400, cpu=0.1)
        await replies_again(pod.client)
        assert (await pod.watcher.obstacle(), pod.process.limit) == ("", 128)

    run(tmp_path, scenario)


def test_target_that_changes_again_holds_again(tmp_path: Path) -> None:
    async def scenario(pod: Pod) -> None:
        await first(pod)
        pod.annotate(memory="128")
        await pod.work(10)
        pod.annotate(memory="256")
        await pod.work(10)
        assert await pod.watcher.obstacle() == "memory was raised to 256 MiB; ready in 7 s"
        await pod.work(10)
        assert await pod.watcher.obstacle() == ""

    run(tmp_path, scenario)


def test_restart_of_memcached_is_followed_by_a_raise_at_once(tmp_path: Path) -> None:
    """Without a request of /readyz, and without waiting for the next poll."""

    async def scenario(pod: Pod) -> None:
        await first(pod, "128")
        with polling(pod.agent(poll=3600)):
            await pod.replace(Process(started=1400, time=1400, cpu=0.1))
            async with asyncio.timeout(30):
                while pod.process.limit != 128:  # noqa: ASYNC110 - changed by sockets
                    await asyncio.sleep(0.005)
            for _ in range(20):
                await pod.client.general()
            assert pod.memcached.commands.count("stats") < 20 + 10, "one new connection is one reason to look"
        assert await pod.watcher.obstacle() == ""
        assert len(raises(pod)) == 2

    run(tmp_path, scenario)


def test_raised_again_before_the_pod_is_ready(tmp_path: Path) -> None:
    async def scenario(pod: Pod) -> None:
        await first(pod, "128")
        await pod.replace(Process(started=1400, time=1400, cpu=0.1, refusal=b"NO\r\n"))
        await pod.work(5)
        assert await pod.watcher.obstacle() == "memory not raised yet: memcached has 64 MiB, 128 MiB needed"
        pod.process.refusal = b""
        await pod.work(5)
        assert await pod.watcher.obstacle() == "", "the target has not changed: there is no hold"

    run(tmp_path, scenario)


REFUSALS = {
    b"MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n": "it replied 'MEMLIMIT_ADJUST_FAILED out of bounds",
    b"ERROR\r\n": "it replied 'ERROR'",
    b"SERVER_ERROR x\r\n": "it replied 'SERVER_ERROR x'",
    b"OK\r\n": "it reports 64 MiB",
    b"x" * 200 + b"\r\n": f"it replied '{'x' * 80}'",
}


@pytest.mark.parametrize(("reply", "text"), REFUSALS.items(), ids=range(len(REFUSALS)))
def test_memory_that_is_refused(tmp_path: Path, reply: bytes, text: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(pod: Pod) -> None:
        await first(pod)
        pod.annotate(memory="128")
        pod.process.refusal = reply
        await pod.work(60)
        assert await pod.watcher.obstacle() == "memory not raised yet: memcached has 64 MiB, 128 MiB needed"
        found = await pod.problem()
        assert found.startswith(f"the memory of memcached cannot be raised to 128 MiB: {text}")
        assert pod.client.connected == 1, "an error is a reply"
        assert len(raises(pod)) == 12
        assert value(pod.metrics(), "memcached_agent_memory_target_reached") == 0
        pod.process.refusal = b""
        await pod.work(5)
        assert await pod.problem() == ""

    run(tmp_path, scenario)
    assert len(own(caplog)) == 1


def test_invalid_target_has_no_effect(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(pod: Pod) -> None:
        await first(pod, "128")
        pod.annotate(memory="1G")
        await pod.work(60)
        assert (await pod.watcher.obstacle(), len(raises(pod))) == ("", 1)
        assert "memory is invalid, so that it has no effect: '1G'; use whole MiB" in await pod.problem()
        assert "memory_target" not in pod.metrics()
        await first(pod, "128")
        assert await pod.problem() == ""

    run(tmp_path, scenario)
    assert len(own(caplog)) == 1


async def refuse(pod: Pod) -> None:
    """Let memcached be at its connection limit, without a connection of the agent."""
    pod.memcached.refuses = LIMIT
    pod.memcached.close_all()
    async with asyncio.timeout(30):
        while pod.client.connected:  # noqa: ASYNC110 - changed by sockets
            await asyncio.sleep(0.005)


REACHED = {  # the target that was in effect, the target now, whether the pod is ready
    "same": ("128", "128", True),
    "lower": ("128", "64", True),
    "higher": ("128", "256", False),
    "first": (None, "64", False),
}


@pytest.mark.parametrize(("before", "memory", "ready"), REACHED.values(), ids=REACHED.keys())
def test_memcached_that_cannot_be_reached(tmp_path: Path, before: str | None, memory: str, ready: bool) -> None:
    async def scenario(pod: Pod) -> None:
        if before:
            await first(pod, before)
        await refuse(pod)
        pod.annotate(memory=memory)
        pod.agent()
        await pod.work(60)
        found = await pod.watcher.obstacle()
        assert (found == "") == ready
        assert ready or "memcached at 127.0.0.1:" in found
        assert "memory_target_reached" not in pod.metrics()
        assert value(pod.metrics(), "memcached_agent_memory_target_bytes") == int(memory) * MEBIBYTE
        pod.memcached.refuses = b""
        await replies_again(pod.client)
        assert await pod.watcher.obstacle() == "", "it was not ready for long enough"

    run(tmp_path, scenario)


def test_gate_and_memory_are_combined(tmp_path: Path) -> None:
    async def scenario(pod: Pod) -> None:
        pod.annotate(GATE, memory="64")
        await pod.work(35, 90, 10)
        assert await pod.watcher.obstacle() == ""
        pod.annotate(GATE, memory="128")
        await pod.replace(Process(started=1400, time=1400, cpu=0.1))
        await pod.work(5, 0, 100)
        text = await pod.watcher.obstacle()
        assert text.startswith("not warm yet: ")
        assert text.endswith("; memory was raised to 128 MiB; ready in 12 s")
        await pod.work(15, 0, 100)
        text = await pod.watcher.obstacle()
        assert text.startswith("not warm yet: ")
        assert "memory" not in text
        await pod.work(120, 100, 0)
        assert await pod.watcher.obstacle() == ""
        await refuse(pod)
        pod.annotate(GATE, memory="256")
        await pod.work(5)
        text = await pod.watcher.obstacle()
        assert text.startswith("memcached at ")
        assert "; " not in text, "one problem is one sentence"

    run(tmp_path, scenario, GATE)
