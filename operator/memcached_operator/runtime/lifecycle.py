"""The lifecycle of the process, run by kopf: startup and cleanup handlers, and signals.

The operator uses kopf for this and for reading credentials (kube/config.py). It does not use kopf's watches, which
take more CPU than everything else together (docs/decisions/kopf.md).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, cast

import kopf


class _AllTasks(frozenset["asyncio.Task[Any]"]):
    """A set that contains every task.

    On exit, kopf waits 5 s for each task that is not in `ignored` and then cancels it. The operator ends its own tasks
    (workers, lease, connections of the probe server) itself.
    """

    def __contains__(self, _: object) -> bool:
        return True


async def run(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]], stop: asyncio.Event) -> None:
    """Run `work` until it ends. It must end when `stop` is set; SIGTERM and SIGINT set `stop`.

    Sets `stop` when the work ends earlier. Raises the error of the work.
    """
    # kopf warns that the login handler does not return, which is intended here.
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
        # Never returns, so that kopf sends no requests. Otherwise kopf would read the whole discovery API, although no
        # handler needs it, and would exit if that is forbidden.
        await asyncio.Event().wait()

    tasks = await kopf.spawn_tasks(
        registry=registry,
        clusterwide=True,
        standalone=True,
        # Set explicitly: kopf's default reads the name of the current user, which a container may not have.
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
