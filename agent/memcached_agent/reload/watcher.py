"""Polls one source of files, and applies its content when it, or the memcached that must use it, changes."""

import asyncio
import logging
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Final, Generic, Protocol, TypeVar

from memcached_agent.errors import InvalidError, UnverifiedError
from memcached_agent.memcached.errors import MemcachedError
from memcached_agent.web.health import INTERNAL_ERROR

log = logging.getLogger(__name__)

POLL: Final = 2.0
"""Seconds between two reads of the files. Symbolic links of mounted volumes make inotify unreliable."""
RETRY: Final = 10.0
"""Seconds until the same content is tried again: time makes a certificate valid, a new connection may be possible."""

C = TypeVar("C", bound=Hashable)
V = TypeVar("V")


class Source(Protocol[C, V]):
    """Files that memcached uses. Every method but `check` may raise InvalidError."""

    name: str
    """The value of the label `source`, and the first word of the line in /healthz."""

    def read(self) -> C:
        """The content of the files."""
        ...

    def check(self, content: C, /) -> V:
        """The parsed content. Raises InvalidError if memcached must not use it."""
        ...

    def target(self) -> Hashable:
        """The memcached to which the content is applied; another value after it was restarted. None: not available."""
        ...

    async def apply(self, value: V, /) -> None:
        """Make memcached use the content, and verify that it does. Raises UnverifiedError and MemcachedError too."""
        ...

    async def inspect(self) -> None:
        """Note what memcached uses while it does not use the content. Raises UnverifiedError too."""
        ...


class FileWatcher(Generic[C, V]):
    """Watches one source. `successful`: whether memcached uses the current files, as far as that is verified;
    `succeeded_at`: seconds since 1970.

    What is done depends only on the files and on the memcached, not on earlier steps: after a restart of either, the
    content is applied again.
    """

    def __init__(self, source: Source[C, V], clock: Callable[[], float] = time.time) -> None:
        self.successful = False
        self.succeeded_at: float | None = None
        self._source = source
        self._clock = clock
        self._problem = ""
        self._verified: C | None = None
        self._applied: object = None
        self._tried: object = None
        self._retry_at = 0.0

    @property
    def name(self) -> str:
        """The name of the source."""
        return self._source.name

    async def problem(self) -> str:
        """The reason why memcached does not use the current files, as one sentence. Empty if it does."""
        return self._problem

    async def run(self) -> None:
        """Compare the files with those in use every POLL seconds, until cancelled."""
        while True:
            await self.step()
            await asyncio.sleep(POLL)

    async def step(self) -> None:
        """Read the files once, and apply them if that is due."""
        try:
            await self._step()
        except Exception:  # the outermost edge: without its agent, the pod would not be ready
            if self._problem != INTERNAL_ERROR:
                log.exception("%s: internal error", self.name)
            self._applied, self.successful, self._problem = None, False, INTERNAL_ERROR

    async def _step(self) -> None:
        try:
            content = self._source.read()
            state = (content, self._source.target())
        except InvalidError as error:
            self._tried = None
            await self._fail(error)
            return
        if self._is_due(state):
            await self._try(content, state)

    def _is_due(self, state: object) -> bool:
        now = asyncio.get_running_loop().time()
        if state == self._applied or (state == self._tried and now < self._retry_at):
            return False
        self._tried, self._retry_at = state, now + RETRY
        return True

    async def _try(self, content: C, state: tuple[C, Hashable]) -> None:
        """Apply the content, and report why if that fails."""
        try:
            await self._apply(content, state)
        except InvalidError as error:
            await self._fail(error)
        except (UnverifiedError, MemcachedError) as error:
            self._forget_success_of_other(content)
            self._report(f"not verified yet; trying again: {error}")

    async def _apply(self, content: C, state: tuple[C, Hashable]) -> None:
        self._applied = None
        value = self._source.check(content)
        if state[1] is None:
            self._forget_success_of_other(content)
            self._problem = ""  # the files are valid; /healthz has a line about memcached
            return
        await self._source.apply(value)
        self._applied, self.successful, self.succeeded_at, self._problem = state, True, self._clock(), ""
        self._verified = content
        log.info("memcached uses the %s in the files from the kubelet", self.name)

    def _forget_success_of_other(self, content: C) -> None:
        """Report content that was never verified as not used. A memcached that restarts reads the same content."""
        self.successful = self.successful and content == self._verified

    async def _fail(self, error: InvalidError) -> None:
        self._applied, self.successful = None, False
        self._report(str(error))
        with suppress(UnverifiedError):
            await self._source.inspect()

    def _report(self, problem: str) -> None:
        """Record a problem. The log has one line for each new one, not for each attempt."""
        log.log(logging.DEBUG if problem == self._problem else logging.WARNING, "%s: %s", self.name, problem)
        self._problem = problem
