"""The operator in this process: its controller runs as a task, which can be killed at any moment."""

import asyncio
import contextvars
import logging
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from signal import Signals
from typing import Final
from unittest import mock
from uuid import UUID

from faults.process import RESTART_PAUSE, Operator
from memcached_operator import __main__, app
from memcached_operator.engine.runtime.leader_election import LeaderElector
from simulation.session import Respond, Session

START: Final = 1.0
"""Seconds from the start of a process until it sends its first request."""
_RUNNING: contextvars.ContextVar["SimulatedOperator"] = contextvars.ContextVar("running")
_PROCESS_OPTIONS: Final = frozenset({"log_level", "log_format"})


class _Log(logging.Handler):
    """Appends each message to the log of the operator whose task writes it."""

    def emit(self, record: logging.LogRecord) -> None:
        if (operator := _RUNNING.get(None)) is not None:
            operator.lines.append(self.format(record))


class SimulatedOperator(Operator):
    """As the process: it is restarted when it exits or is killed; starts and exits are recorded."""

    def __init__(self, arguments: Sequence[str], environment: dict[str, str], respond: Respond, user: str) -> None:
        super().__init__(arguments, environment, Path(), Path(os.devnull))
        self.lines: list[str] = []
        self._arguments, self._variables, self._respond, self._user = tuple(arguments), environment, respond, user
        self._task: asyncio.Task[None] | None = None
        self._session: Session | None = None
        self._stop = asyncio.Event()
        self._runs = 0

    def kill(self) -> None:
        """As SIGKILL: nothing that it sends later arrives."""
        if self._task is None or self._task.done():
            return
        self._killed = True
        if self._session is not None:  # it has none until it sends its first request
            self._session.die()
        self._task.cancel()

    def signal(self, number: Signals) -> None:
        """A simulated process cannot be paused."""
        if number != Signals.SIGCONT:
            raise NotImplementedError(number.name)

    async def stop(self) -> None:
        """As SIGKILL. The process stays down until it is started again."""
        self._wanted.clear()
        self.kill()
        if self._task is not None:
            await asyncio.wait([self._task])

    def log_text(self) -> str:
        """The whole log."""
        return "\n".join(self.lines)

    async def supervise(self) -> None:
        """Run and restart it, until cancelled."""
        _RUNNING.set(self)
        while True:
            await self._wanted.wait()
            self.starts.append(asyncio.get_running_loop().time())
            self._stop = asyncio.Event()
            self._task = asyncio.create_task(self._execute())
            try:
                await asyncio.wait([self._task])
            finally:
                self._task.cancel()
            if not self._killed:
                self.exits.append(self._code(self._task))
            self._killed = False
            await asyncio.sleep(RESTART_PAUSE)

    async def terminate(self, seconds: float = 5.0) -> None:
        """As SIGTERM."""
        if self._task is None or self._task.done():
            return
        self._stop.set()
        await asyncio.wait([self._task], timeout=seconds)
        self.kill()

    def _code(self, task: asyncio.Task[None]) -> int:
        error = None if task.cancelled() else task.exception()
        if error is None:
            return 0
        if isinstance(error, __main__.EXPECTED):
            self.lines.append(str(error))
        else:
            logging.getLogger("memcached_operator").error("Traceback", exc_info=error)
        return 1

    async def _execute(self) -> None:
        """What `app.run` does, without servers and signals."""
        await asyncio.sleep(START)
        options, namespace = self._options(), self._variables["POD_NAMESPACE"]
        self._session = session = Session(self._respond, self._user)
        client = session.client()
        if not options.leader_elect:
            await app.lead(options, client, namespace, self._stop)
            return
        self._runs += 1
        identity = f"{self._variables.get('POD_NAME', 'operator')}_{UUID(int=self._runs)}"
        elector = LeaderElector(client, namespace, app.LEASE_NAME, identity)
        try:
            await elector.acquire()
            client = session.client(elector)
            await app.lead(options, client, namespace, self._stop, elector.renew())
        finally:
            await app.release(elector)

    def _options(self) -> app.ControllerOptions:
        with mock.patch.dict(os.environ, self._variables):
            found = __main__.main.make_context("memcached_operator", list(self._arguments)).params
        lifetime = __main__.parse_duration(found.pop("certificate_lifetime"))
        options = {name: value for name, value in found.items() if name not in _PROCESS_OPTIONS}
        return app.ControllerOptions(certificate_lifetime=lifetime, **options)


@contextmanager
def logged() -> Generator[None]:
    """Record what operators log, and nothing else does."""
    handler, logger = _Log(), logging.getLogger("memcached_operator")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = True
        logger.setLevel(level)
        logger.removeHandler(handler)
