"""The watcher with a target of memory: whatever changes the memory of memcached, it gets the target again."""

import asyncio
import logging
from pathlib import Path

import pytest

from memcached_agent.memcached.stats import Stats
from memcached_agent.pod_watcher import PodWatcher

from .memcacheds import LIMIT, replies_again
from .pods import Pod, own, polling, run
from .samples import value
from .warming import MEBIBYTE, Process


def commands(pod: Pod) -> list[str]:
    """The commands that changed the memory."""
    return [each for each in pod.memcached.commands if each.startswith("cache_memlimit")]


def changes(pod: Pod) -> tuple[float, float]:
    """How often the memory was raised, and lowered."""
    name = "memcached_agent_memory_changes_total"
    return value(pod.metrics(), name, direction="raised"), value(pod.metrics(), name, direction="lowered")


def test_memory_follows_the_target_and_the_pod_stays_ready(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "memcached_agent")

    async def scenario(pod: Pod) -> None:
        for memory in (128, 256, 256):
            pod.annotate(memory=str(memory))
            assert await pod.watcher.obstacle() == ""
            await pod.work(60)
            assert (await pod.watcher.obstacle(), pod.process.limit) == ("", memory)
        pod.process.limit = 1024
        await pod.work(5)
        assert (pod.process.limit, await pod.problem(), changes(pod)) == (256, "", (2, 1))
        assert commands(pod) == [f"cache_memlimit {each}" for each in (128, 256, 256)]
        assert value(pod.metrics(), "memcached_agent_memory_target_bytes") == 256 * MEBIBYTE
        assert value(pod.metrics(), "memcached_agent_memory_target_reached") == 1

    run(tmp_path, scenario)
    assert own(caplog) == [
        "INFO raised the memory of memcached from 64 to 128 MiB",
        "INFO raised the memory of memcached from 128 to 256 MiB",
        "WARNING lowered the memory of memcached from 1024 to 256 MiB, the target of its pod; a client can set more",
    ]


def test_client_that_sets_the_memory_again_and_again_does_not_fill_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "memcached_agent")

    async def scenario(pod: Pod) -> None:
        pod.annotate(memory="64")
        for step in range(24):
            pod.process.limit = 32 if step % 2 else 128
            await pod.work(5)
        assert changes(pod) == (12, 12)

    run(tmp_path, scenario)
    assert len(own(caplog)) == 4, "two minutes"


def _raise(_stats: Stats) -> None:
    raise RuntimeError("a defect of the agent")


def test_error_of_the_agent_itself_is_a_problem_and_not_its_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(pod: Pod) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("memcached_agent.pod.record.seen", _raise)
            await pod.work(60)
            assert await pod.problem() == "internal error; see the log of the agent"
        await pod.work(5)
        assert await pod.problem() == ""

    run(tmp_path, scenario)
    assert own(caplog) == ["ERROR internal error"]


def test_pod_without_the_annotation_keeps_its_memory(tmp_path: Path) -> None:
    async def scenario(pod: Pod) -> None:
        await pod.work(60)
        assert (await pod.watcher.obstacle(), commands(pod)) == ("", [])
        assert "memory" not in pod.metrics()

    run(tmp_path, scenario)


def test_restart_of_memcached_is_followed_by_a_raise_at_once(tmp_path: Path) -> None:
    """Without a request of /readyz, and without waiting for the next poll."""

    async def raised(watcher: PodWatcher, pod: Pod) -> None:
        with polling(watcher):
            await pod.replace(Process(started=1400, time=1400, cpu=0.1))
            async with asyncio.timeout(30):
                while pod.process.limit != 128:  # noqa: ASYNC110 - changed by sockets
                    await asyncio.sleep(0.005)
            for _ in range(20):
                await pod.client.general()
            assert pod.memcached.commands.count("stats") < 20 + 10, "one new connection is one reason to look"

    async def scenario(pod: Pod) -> None:
        pod.annotate(memory="128")
        await pod.work(5)
        await raised(pod.agent(poll=3600), pod)
        assert len(commands(pod)) == 2

    run(tmp_path, scenario)


REFUSALS = {
    b"MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n": "it replied 'MEMLIMIT_ADJUST_FAILED out of bounds",
    b"ERROR\r\n": "it replied 'ERROR'",
    b"SERVER_ERROR x\r\n": "it replied 'SERVER_ERROR x'",
    b"OK\r\n": "it reports 64 MiB",
    b"x" * 200 + b"\r\n": f"it replied '{'x' * 80}'",
}


@pytest.mark.parametrize(("reply", "text"), REFUSALS.items(), ids=range(len(REFUSALS)))
@pytest.mark.parametrize("memory", ["128", "32"])
def test_memory_that_is_not_in_effect_is_a_problem(
    tmp_path: Path, memory: str, reply: bytes, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(pod: Pod) -> None:
        pod.annotate(memory=memory)
        pod.process.refusal = reply
        await pod.work(60)
        assert await pod.watcher.obstacle() == ""
        found = await pod.problem()
        assert found.startswith(f"the memory of memcached cannot be set to {memory} MiB: {text}")
        assert pod.client.connected == 1, "an error is a reply"
        assert len(commands(pod)) == 12
        assert value(pod.metrics(), "memcached_agent_memory_target_reached") == 0
        assert changes(pod) == (0, 0)
        pod.process.refusal = b""
        await pod.work(5)
        assert await pod.problem() == ""

    run(tmp_path, scenario)
    assert sum("cannot be set" in each for each in own(caplog)) == 1


def test_invalid_target_has_no_effect(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(pod: Pod) -> None:
        pod.annotate(memory="1G")
        await pod.work(60)
        assert (await pod.watcher.obstacle(), commands(pod)) == ("", [])
        assert "memory is invalid and has no effect: '1G'; use whole MiB" in await pod.problem()
        assert "memory_target" not in pod.metrics()
        pod.annotate(memory="128")
        await pod.work(5)
        assert (await pod.problem(), pod.process.limit) == ("", 128)

    run(tmp_path, scenario)
    assert len(own(caplog)) == 1


def test_memcached_that_cannot_be_reached_is_raised_when_it_can(tmp_path: Path) -> None:
    async def scenario(pod: Pod) -> None:
        pod.memcached.refuses = LIMIT
        pod.memcached.close_all()
        async with asyncio.timeout(30):
            while pod.client.connected:  # noqa: ASYNC110 - changed by sockets
                await asyncio.sleep(0.005)
        pod.annotate(memory="256")
        await pod.work(60)
        assert (await pod.watcher.obstacle(), await pod.problem()) == ("", "")
        assert "memory_target_reached" not in pod.metrics()
        assert value(pod.metrics(), "memcached_agent_memory_target_bytes") == 256 * MEBIBYTE
        pod.memcached.refuses = b""
        await replies_again(pod.client)
        await pod.work(5)
        assert pod.process.limit == 256

    run(tmp_path, scenario)
