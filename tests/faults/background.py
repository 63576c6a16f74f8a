"""Work in the background of a case. Its failures fail the case."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any


class FailedError(Exception):
    """A check failed; the message says which one."""


class TimedOutError(FailedError):
    """An expected state was not reached in time; the message says which one."""


@asynccontextmanager
async def while_running(work: Mapping[str, Coroutine[Any, Any, None]]) -> AsyncGenerator[None]:
    """Run endless coroutines, named by what they do, during the block, and cancel them at its end.

    Raises FailedError at the end if one has failed, or ended by itself. If the block fails too, its own error comes
    first: a FailedError gets the other failures appended, and any other error gets them as notes.
    """
    tasks = {name: asyncio.create_task(coroutine) for name, coroutine in work.items()}
    try:
        yield
    except FailedError as error:
        failures = await _stop(tasks)
        if failures:
            raise FailedError("; meanwhile ".join((str(error), *failures))) from error
        raise
    except BaseException as error:
        for failure in await _stop(tasks):
            error.add_note(failure)
        raise
    if failures := await _stop(tasks):
        raise FailedError("; ".join(failures))


async def _stop(tasks: Mapping[str, asyncio.Task[None]]) -> list[str]:
    """Cancel the tasks; returns a sentence for each that has failed or ended by itself."""
    for task in tasks.values():
        task.cancel()
    if tasks:
        await asyncio.wait(tasks.values())
    return [f"{name}: {_outcome(task)}" for name, task in tasks.items() if not task.cancelled()]


def _outcome(task: asyncio.Task[None]) -> str:
    error = task.exception()
    if error is None:
        return "ended too early"
    return str(error) if isinstance(error, FailedError) else f"failed: {error!r}"
