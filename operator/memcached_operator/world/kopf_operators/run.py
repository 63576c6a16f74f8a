"""Runs a kopf operator as one of several tasks of a process that can run it again after a failure."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

import kopf


class _AllTasks(frozenset["asyncio.Task[object]"]):
    """A set that contains every task.

    When an operator ends, kopf cancels each task of the event loop that is not in `ignored`, also those of other code.
    """

    def __contains__(self, _: object) -> bool:
        return True


async def run(
    registry: kopf.OperatorRegistry, namespace: str | None, stop: asyncio.Event, on_start: Callable[[], None]
) -> None:
    """Run one kopf operator, in one namespace or in all, until `stop` is set. Raises the error that ended it.

    Set `stop` instead of cancelling the task: kopf has tasks of its own that it ends first. `on_start` is called when
    kopf has replaced the signal handlers of the process, and must install them again.
    """
    tasks = await kopf.spawn_tasks(
        registry=registry,
        namespaces=[namespace] if namespace else [],
        clusterwide=not namespace,
        standalone=True,
        # Set explicitly: kopf's default reads the name of the current user, which a container may not have.
        identity=cast("Any", "memcached-operator"),
        # kopf keeps a copy of it for each object.
        memo=(),
        stop_flag=stop,
    )
    # No await before this line: a signal is handled by the handler that is installed when the event loop runs again.
    on_start()
    await kopf.run_tasks(tasks, ignored=_AllTasks())


def configure_logging() -> None:
    """Log what an administrator needs of kopf's messages: warnings and errors; everything at level debug."""
    debug = logging.getLogger().isEnabledFor(logging.DEBUG)
    logging.getLogger("kopf").setLevel(logging.DEBUG if debug else logging.WARNING)
    for name in ("kopf._core.reactor.running", "kopf._core.reactor.orchestration", "asyncio"):
        logging.getLogger(name).addFilter(_is_useful)


def _is_useful(record: logging.LogRecord) -> bool:
    """False for tracebacks that need no attention.

    kopf logs the error of each of its tasks and then raises it, so that the reflector reports it. A watch that is
    stopped during a burst of events is closed by the garbage collector, which fails if it closes an inner part first.
    """
    return record.exc_info is None or (record.name == "asyncio" and "infinite_watch" not in record.getMessage())
