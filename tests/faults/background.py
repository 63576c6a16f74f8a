"""Work in the background of a case. Its failures fail the case."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any


class FailedError(Exception):
    """A check failed; the message says which one."""


class TimedOutError(FailedError):
    """An expected state was not reached in time; the message says which one."""


class CrashedError(FailedError):
    """The test's own work failed, which is no result of a check; the message says how."""


@asynccontextmanager
async def while_running(work: Mapping[str, Coroutine[Any, Any, None]]) -> AsyncGenerator[None]:
    """Run endless coroutines, named by what they do, during the block, and cancel them at its end.

    Raises FailedError at the end if one has failed, or ended by itself. If the block fails too, its own error comes
    first: a FailedError gets the other failures appended, and any other error gets them as notes. The error is a
    CrashedError if one of the failures is no failed check, and a TimedOutError if all of them are timeouts.
    """
    tasks = {name: asyncio.create_task(coroutine) for name, coroutine in work.items()}
    try:
        yield
    except FailedError as error:
        failures = await _stop(tasks)
        if failures:
            raise _joined([error, *failures], "; meanwhile ") from error
        raise
    except BaseException as error:
        for failure in await _stop(tasks):
            error.add_note(str(failure))
        raise
    if failures := await _stop(tasks):
        raise _joined(failures, "; ")


def _joined(failures: Sequence[FailedError], separator: str) -> FailedError:
    """One error for several failures."""
    text = separator.join(map(str, failures))
    if any(isinstance(each, CrashedError) for each in failures):
        return CrashedError(text)
    return (TimedOutError if all(isinstance(each, TimedOutError) for each in failures) else FailedError)(text)


async def _stop(tasks: Mapping[str, asyncio.Task[None]]) -> list[FailedError]:
    """Cancel the tasks; returns an error for each that has failed or ended by itself."""
    for task in tasks.values():
        task.cancel()
    if tasks:
        await asyncio.wait(tasks.values())
    return [_failure(name, task.exception()) for name, task in tasks.items() if not task.cancelled()]


def _failure(name: str, error: BaseException | None) -> FailedError:
    if error is None:
        return CrashedError(f"{name}: ended too early")
    if isinstance(error, FailedError):
        return type(error)(f"{name}: {error}")
    return CrashedError(f"{name}: failed: {error!r}")
