"""The watcher with an age of items: whatever changes that of memcached, it gets that of the pod again."""

import logging
from pathlib import Path

import pytest

from memcached_agent.extstore.age import NEVER

from .pods import Pod, run
from .test_memory_watcher import REFUSALS
from .warming import Process


def commands(pod: Pod) -> list[str]:
    """The commands that changed the age."""
    return [each for each in pod.memcached.commands if each.startswith("extstore")]


def test_age_follows_the_pod_and_ends_what_a_client_or_a_restart_has_set(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "memcached_agent.extstore")

    async def scenario(pod: Pod) -> None:
        for age in (0, 30, 30, NEVER):
            pod.annotate(**{"item-age": str(age)})
            await pod.work(60)
            assert (await pod.watcher.obstacle(), await pod.problem(), pod.process.age) == ("", "", age)
        pod.process.age = 5
        await pod.work(5)
        assert pod.process.age == NEVER
        await pod.replace(Process(started=1400, time=1400, age=30))
        await pod.work(5)
        assert pod.process.age == NEVER
        assert commands(pod) == [f"extstore item_age {each}" for each in (0, 30, NEVER, NEVER, NEVER)]

    run(tmp_path, scenario)
    assert [each.getMessage() for each in caplog.records if each.name.endswith("extstore.age")] == [
        f"items move to the disk after {age} s" for age in (0, 30, NEVER)
    ]


def test_pod_without_the_annotation_keeps_the_age(tmp_path: Path) -> None:
    async def scenario(pod: Pod) -> None:
        await pod.work(60)
        assert (await pod.problem(), commands(pod)) == ("", [])
        assert "stats settings" not in pod.memcached.commands

    run(tmp_path, scenario)


@pytest.mark.parametrize("age", ["", "-1", "1.5", "\u0664", str(NEVER + 1), "00000000000"])
def test_invalid_age_is_a_problem_and_changes_nothing(tmp_path: Path, age: str) -> None:
    async def scenario(pod: Pod) -> None:
        pod.annotate(**{"item-age": age})
        await pod.work(60)
        found = await pod.problem()
        assert "item-age is invalid and has no effect" in found
        assert found.endswith("; use whole seconds from 0 to 4294967295")
        assert (await pod.watcher.obstacle(), commands(pod)) == ("", [])
        pod.annotate(**{"item-age": "0"})
        await pod.work(5)
        assert (await pod.problem(), pod.process.age) == ("", 0)

    run(tmp_path, scenario)


@pytest.mark.parametrize(("reply", "text"), REFUSALS.items(), ids=range(len(REFUSALS)))
def test_age_that_is_not_in_effect_is_a_problem(tmp_path: Path, reply: bytes, text: str) -> None:
    async def scenario(pod: Pod) -> None:
        pod.annotate(**{"item-age": "30"})
        pod.process.refusal = reply
        await pod.work(60)
        expected = text.replace("64 MiB", "another one")
        assert (await pod.problem()).startswith(
            f"the age at which items move to the disk cannot be set to 30 s: {expected}"
        )
        assert (await pod.watcher.obstacle(), len(commands(pod))) == ("", 12)
        pod.process.refusal = b""
        await pod.work(5)
        assert await pod.problem() == ""

    run(tmp_path, scenario)
