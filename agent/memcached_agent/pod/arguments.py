"""Restarts memcached when the arguments in the annotation of its pod change: upon SIGUSR1 it keeps its items."""

import logging
import signal
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from memcached_agent.errors import InvalidError, UnverifiedError
from memcached_agent.metrics import arguments as metrics
from memcached_agent.metrics.exposition import Family
from memcached_agent.options import Restart
from memcached_agent.pod import processes
from memcached_agent.pod.annotations import PREFIX
from memcached_agent.pod.files import ProblemLog
from memcached_agent.pod.processes import PROC, Process

log = logging.getLogger(__name__)

NAME: Final = "args"
MAX_FILE: Final = 2**16
"""Bytes of the annotation that are read, as of a command line."""
REPEAT: Final = 30.0
"""Seconds until a process that has not ended gets the signal again. memcached ends within 2 s, after it has written
where its items are; a second signal meanwhile has no effect."""
INEFFECTIVE: Final = 600.0
"""Seconds until memcached is restarted again if a restart has not given it the arguments. They are in the file before
the signal is sent, so that only another program than memcached can ignore them."""
REMEDY: Final = f"restore the annotation {PREFIX}{NAME} of the pod. To replace the pod and lose its items, delete it"
PENDING: Final = "memcached does not use the arguments of its pod yet; the agent restarts it, and it keeps its items"


class Signal(NamedTuple):
    """A signal that was sent to a process, because memcached should run with the arguments `wanted`."""

    process: Process
    wanted: tuple[str, ...]
    at: float


def is_in_effect(process: Process, items: str, arguments: tuple[str, ...]) -> bool:
    """Whether the command line of memcached ends with these arguments, which follow its option `-e`."""
    return process.arguments[process.arguments.index(items) + 1 :] == arguments


def pause(last: Signal | None, process: Process, arguments: tuple[str, ...]) -> float:
    """Seconds from the last signal to the next one."""
    if last is not None and last.process == process:
        return REPEAT
    return INEFFECTIVE if last is not None and last.wanted == arguments else 0.0


class Arguments:
    """The arguments of a memcached, and the signals to it. `clock`: seconds of a clock that is never set.

    What is done depends on the file and on the process, so that a restart of either, or of the agent, loses nothing.
    """

    def __init__(self, options: Restart, clock: Callable[[], float], proc: str = PROC) -> None:
        self.problem: Final = ProblemLog()
        self._options = options
        self._clock = clock
        self._proc = proc
        self._last: Signal | None = None
        self._signals = 0

    def step(self) -> None:
        """Restart memcached if it runs with other arguments."""
        try:
            self.problem.report(self._restart())
        except (InvalidError, UnverifiedError) as error:
            self.problem.report(str(error))

    def obstacle(self) -> str:
        """The reason why memcached does not run with the arguments now, as one sentence. Empty if it does."""
        try:
            arguments, process = self._look()
        except InvalidError as error:
            return str(error)
        return "" if is_in_effect(process, self._options.items, arguments) else self.problem.sentence or PENDING

    def metrics(self) -> Iterator[Family]:
        """The metrics of the arguments."""
        return metrics.families(self._signals, in_effect=not self.obstacle())

    def _restart(self) -> str:
        """The problem that a restart does not solve. Raises InvalidError and UnverifiedError."""
        arguments, process = self._look()
        if is_in_effect(process, self._options.items, arguments):
            self._last = None
            return ""
        last, now = self._last, self._clock()
        if last is None or now >= last.at + pause(last, process, arguments):
            processes.send(process, signal.SIGUSR1, self._proc)
            self._last, self._signals = Signal(process, arguments, now), self._signals + 1
            log.info("sent SIGUSR1 to memcached, process %d, which restarts with new arguments", process.number)
        if last is None or last.process == process or last.wanted != arguments:
            return ""
        return (
            "memcached was restarted but does not use the arguments of its pod; use an image in which the program "
            "memcached is memcached itself, not a script"
        )

    def _look(self) -> tuple[tuple[str, ...], Process]:
        """The arguments in the file, and memcached. Raises InvalidError."""
        return self._wanted(), processes.find("-e", self._options.items, self._proc)

    def _wanted(self) -> tuple[str, ...]:
        """The words of the first line, as the shell reads and splits it. Raises InvalidError if there is none."""
        path = self._options.arguments
        try:
            with open(path, encoding="utf-8", errors="replace", newline="\n") as file:  # noqa: PTH123 - pathlib needs 0.6 MiB
                line = file.read(MAX_FILE).partition("\n")[0]
        except OSError as error:
            raise InvalidError(f"{path} cannot be read: {error.strerror}; {REMEDY}") from None
        if words := tuple(word for word in line.replace("\t", " ").split(" ") if word):
            return words
        raise InvalidError(f"{path} is empty; {REMEDY}")
