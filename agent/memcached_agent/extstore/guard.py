"""Probes the volume of extstore, and stops memcached when the disk refuses writes."""

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from memcached_agent.errors import InvalidError, UnverifiedError
from memcached_agent.extstore import decision, families
from memcached_agent.extstore.decision import Result, State
from memcached_agent.extstore.probe import ITEMS, Probe, probe
from memcached_agent.metrics.exposition import Family
from memcached_agent.metrics.histogram import Histogram
from memcached_agent.pod import processes
from memcached_agent.pod.files import ProblemLog
from memcached_agent.pod.processes import PROC
from memcached_agent.shared import in_thread
from memcached_agent.web.health import INTERNAL_ERROR, Check

log = logging.getLogger(__name__)

NAME: Final = "extstore"
PERIOD: Final = 5.0
"""Seconds between two probes."""
CONFIRM: Final = 1.0
"""Seconds until the probe after the first error. Meanwhile, memcached can return values of other keys."""
LIMIT: Final = 10.0
"""Seconds after which a probe counts as hanging."""
REMEDY: Final = "to replace the volume and lose the items of the pod, delete the pod"
SENTENCES: Final[Mapping[Result, str]] = {
    "works": "",
    "broken": "{directory} cannot be written: {reason}. memcached could return values of other keys, so the agent "
    f"stops it; {REMEDY}",
    "denied": "the agent may not write to {directory}: {reason}",
    "full": "{directory} has no space for all items: {reason}. memcached stores items, and does not find them again",
    "failed": "{directory} cannot be probed: {reason}",
    "hangs": "{directory} does not reply: a write has taken more than {limit:g} s",
}


class Guard:
    """The guard of the volume at a directory, in which memcached has its file `items`.

    Only one probe runs at once, in a thread: a disk that hangs delays neither the agent nor its end. `probing`: a
    probe, which may block. `period` and `limit`: as PERIOD and LIMIT.
    """

    def __init__(
        self,
        directory: str,
        probing: Callable[[str], Probe] = probe,
        period: float = PERIOD,
        limit: float = LIMIT,
        proc: str = PROC,
    ) -> None:
        self.problem: Final = ProblemLog()
        self.checks: Final[Mapping[str, Check]] = {NAME: self.problem.check}
        self._directory = directory
        self._probing = partial(probing, directory)
        self._period = period
        self._limit = limit
        self._proc = proc
        self._state = State()
        self._running: asyncio.Future[Probe] | None = None
        self._last: Probe | None = None
        self._seconds = Histogram(families.SECONDS, families.BUCKETS)

    async def run(self) -> None:
        """Probe periodically, until cancelled."""
        while True:
            await self.step()
            await asyncio.sleep(CONFIRM if self._state.errors else self._period)

    async def step(self) -> None:
        """Wait for a probe, and do what follows from its result."""
        try:
            await self._step()
        except Exception:  # the outermost edge: without its agent, the pod would not be ready
            if self.problem.sentence != INTERNAL_ERROR:
                log.exception("internal error")
            self.problem.sentence = INTERNAL_ERROR
            self._state = self._state._replace(writable=None)  # it is not known any more

    def metrics(self) -> Iterator[Family]:
        """The metrics of the volume."""
        last = self._last
        yield from families.families(writable=self._state.writable, free=last and last.free, used=last and last.used)
        yield self._seconds.family()

    async def _step(self) -> None:
        found = await self._probed()
        self._last = found or self._last
        result = found.result if found else "hangs"
        self._state = decision.decide(self._state, result)
        if found and result == "works":
            self._seconds.observe(found.seconds)
        if found and decision.must_stop(self._state):
            self._stop(self._sentence("broken", found.reason))
        elif not found or not self._state.errors:  # the next probe confirms an error, or not
            self.problem.report(self._sentence(result, found.reason if found else ""))

    def _sentence(self, result: Result, reason: str) -> str:
        return SENTENCES[result].format(directory=self._directory, reason=reason, limit=self._limit)

    def _stop(self, sentence: str) -> None:
        """Send SIGTERM to memcached, if it has not got it yet. `sentence`: the problem of the volume."""
        try:
            memcached = processes.find("-o", f"ext_path={self._directory}/{ITEMS}", self._proc)
            if decision.is_due(self._state, memcached):
                processes.send(memcached, signal.SIGTERM, self._proc)
                self._state = self._state._replace(stopped=memcached)
                log.error("sent SIGTERM to memcached, process %d: %s", memcached.number, sentence)
                self.problem.sentence = sentence
        except UnverifiedError:
            pass  # memcached starts, and is stopped after the next probe, or it has ended
        except InvalidError as error:
            if self._state.stopped is None:  # else, memcached does not start with this volume
                sentence = f"{sentence}. memcached is not stopped: {error}"
        self.problem.report(sentence)

    async def _probed(self) -> Probe | None:
        """The probe that runs, or a new one; None while it hangs."""
        if self._running is None:
            self._running = in_thread(self._probing)
        await asyncio.wait([self._running], timeout=self._limit)
        if not self._running.done():
            return None
        running, self._running = self._running, None
        return running.result()
