"""What is kept of the Events that are read, of any number and content."""

import pytest

from memcached_operator.engine.events.reader import (
    MAX_BYTES,
    MAX_KEPT,
    MAX_TEXT,
)
from memcached_operator.kube.resource import Object
from unit.engine.test_causes import World, run
from unit.findings.test_mounts import NOT_FOUND, TIMED_OUT, ago, event, messages, stuck


def test_events_of_a_flood_are_not_all_read(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        world.pages = [MAX_BYTES // 2 + 1] * 9
        world.reconcile(stuck())
        await world.pass_time(0)
        assert world.reconcile(stuck()) == messages(event())

    run(scenario)
    assert "Events in namespace 'test': only 4 MiB of those about one object are read" in caplog.text


KEPT: dict[str, tuple[list[Object], list[str]]] = {
    "the newest of each subject": ([event(seen=1), event(seen=9), event(TIMED_OUT)], [TIMED_OUT, NOT_FOUND]),
    "other texts": ([event("hello"), {"message": None}], []),
    "without a time": ([event(lastTimestamp=None)], []),
    "from the future": ([event(seen=-200)], []),
    "a clock that is ahead": ([event(seen=-30)], [NOT_FOUND]),
    "of a series": ([event(eventTime=ago(9000), series={"lastObservedTime": ago(5)})], [NOT_FOUND]),
    "cut": ([event(NOT_FOUND + "x" * MAX_TEXT)], [(NOT_FOUND + "x" * MAX_TEXT)[:MAX_TEXT]]),
    "matched in linear time": ([event("unmounted volumes=[" * 60_000 + NOT_FOUND)], []),
}


@pytest.mark.parametrize(("events", "expected"), KEPT.values(), ids=KEPT.keys())
def test_messages_that_are_kept(events: list[Object], expected: list[str]) -> None:
    async def scenario(world: World) -> None:
        world.events = events
        world.reconcile(stuck())
        await world.pass_time(0)
        assert [each.text for each in world.reconcile(stuck()).get("sessions-0", ())] == expected

    run(scenario)


def test_number_of_messages_is_limited_to_the_newest() -> None:
    """Anyone who can create Events can write one about each volume."""

    async def scenario(world: World) -> None:
        world.events = [event(NOT_FOUND.replace("tls", f"v{number}"), seen=number) for number in range(99)]
        world.pages = [1000] * 3
        world.reconcile(stuck())
        await world.pass_time(0)
        kept = world.reconcile(stuck())["sessions-0"]
        assert [f'"v{number}"' in each.text for number, each in zip(range(MAX_KEPT)[::-1], kept, strict=True)] == [
            True
        ] * MAX_KEPT

    run(scenario)
