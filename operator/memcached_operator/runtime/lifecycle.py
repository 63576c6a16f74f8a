"""The life of the process, as kopf leads it: its startup starts the work, signals and its cleanup end it.

Of kopf this much is used, and its reading of credentials (session.py). Its watches are not: they cost more CPU than all
the rest (docs/decisions/kopf.md).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, cast

import kopf


class _AllTasks(frozenset["asyncio.Task[Any]"]):
    """All tasks there are or will be.

    At its end kopf waits 5 s for every task it is not told to ignore, and cancels it; the operator's own (workers, the
    lease, connections of the probe server) are none of its business.
    """

    def __contains__(self, _: object) -> bool:
        return True


async def run(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]], stop: asyncio.Event) -> None:
    """Run some work until `stop` is set, or SIGTERM or SIGINT arrives; then the work is to end by itself.

    Where the work ends earlier, `stop` is set. Raises what the work raised.
    """
    # Its warnings are about what is wanted here: that its login ends with the process, and not before.
    logging.getLogger("kopf").setLevel(logging.ERROR)
    registry = kopf.OperatorRegistry()
    running: list[asyncio.Task[None]] = []

    @kopf.on.startup(registry=registry)
    async def start(**_: Any) -> None:
        task = asyncio.create_task(work(stop))
        task.add_done_callback(lambda _: stop.set())
        running.append(task)

    @kopf.on.cleanup(registry=registry)
    async def end(**_: Any) -> None:
        stop.set()
        if running:
            await asyncio.wait(running)

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> None:
        # Never done: so kopf sends no requests. It has no handlers to send any for, but would read all of discovery,
        # and end the process where it is refused.
        await asyncio.Event().wait()

    tasks = await kopf.spawn_tasks(
        registry=registry,
        clusterwide=True,
        standalone=True,
        # Told, because kopf would ask the system for a user's name, and a container's user may have none.
        identity=cast("Any", "memcached-operator"),
        stop_flag=stop,
    )
    try:
        await kopf.run_tasks(tasks, ignored=_AllTasks())
    finally:
        for task in running:
            task.cancel()
    for task in running:
        await task
