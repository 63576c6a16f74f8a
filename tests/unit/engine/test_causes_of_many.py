"""The rate of reads about late objects, and which of them a status waits for."""

import asyncio
from dataclasses import replace

import pytest

from memcached_operator.engine.events.reader import BURST, RATE
from memcached_operator.kube.resource import Key
from unit.builders import MEMCACHEDS, NOW, memcached, snapshot_of
from unit.engine.test_causes import KEY, REPORTED, World, run
from unit.findings.test_mounts import stuck


@pytest.mark.parametrize("reported", [False, True])
def test_reads_about_very_many_objects_have_a_rate_unless_statuses_wait_for_them(*, reported: bool) -> None:
    async def scenario(world: World) -> None:
        status = {"status": REPORTED} if reported else {}
        for number in range(500):
            key = Key(MEMCACHEDS, f"test-{number}", "cache")
            world.causes.add_to(snapshot_of({**memcached("cache"), **status}, pods=[stuck()]), key, NOW)
        for _ in range(100):
            await world.pass_time(0.1)
        assert len(world.reads) == 500 if reported else 10 * RATE <= len(world.reads) <= 10 * RATE + BURST

    run(scenario)


@pytest.mark.parametrize("started", [False, True])
def test_status_waits_for_no_reads_about_other_objects(*, started: bool) -> None:
    """Nor for objects that are not late any more when they are read."""

    async def scenario(world: World) -> None:
        world.events = []
        for number in range(1000):
            snapshot = snapshot_of(memcached("cache"), pods=[stuck()])
            key = Key(MEMCACHEDS, f"test-{number}", "cache")
            world.causes.add_to(snapshot, key, NOW)
            if started:
                world.causes.add_to(replace(snapshot, pods=()), key, NOW)
        await world.pass_time(0)
        world.reconcile(stuck(), status=REPORTED)
        await world.pass_time(0)
        assert not world.causes.delays_status(KEY)
        if started:
            assert len(world.reads) == 1

    run(scenario)


def test_status_that_waits_since_a_read_began_is_released_by_it() -> None:
    async def scenario(world: World) -> None:
        world.events, world.gate = [], asyncio.Event()
        world.reconcile(stuck())
        await world.pass_time(0)
        world.reconcile(stuck(), status=REPORTED)
        assert world.causes.delays_status(KEY)
        world.gate.set()
        await world.pass_time(0)
        assert world.changed == {KEY: 1}
        assert not world.causes.delays_status(KEY)

    run(scenario)
