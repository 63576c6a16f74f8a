"""The files of a pod: its annotations, and the state of the agent.

Their problems never make the pod wait: they are reported in the log and in /healthz.
"""

import logging
import os
from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from memcached_agent.pod.annotations import find
from memcached_agent.pod.record import ProcessRecord, decode, encode

log = logging.getLogger(__name__)

MAX_LINE: Final = 2**12
"""Bytes that are read at once: annotations can have 256 KiB in all, and four times as much with escapes."""
MAX_STATE: Final = 2**9
"""Bytes of the state file that are read. A record has at most 291, with the fields of earlier versions."""
NAME: Final = "warm-up"
SAVE: Final = 60.0
"""Seconds between two writes of a hit ratio or a CPU time. What else changes is written at once."""


class ProblemLog:
    """A problem. The log has one line for each new one, not for each attempt. `sentence`: empty without one."""

    def __init__(self) -> None:
        self.sentence = ""

    def report(self, sentence: str) -> None:
        """Record the problem; an empty sentence ends it."""
        if sentence and sentence != self.sentence:
            log.warning("%s", sentence)
        self.sentence = sentence

    async def check(self) -> str:
        """The sentence, for /healthz."""
        return self.sentence


class Annotations:
    """A file of the downward API. `names`: those to read, without the prefix."""

    def __init__(self, path: str, names: Collection[str]) -> None:
        self.problem: Final = ProblemLog()
        self._path = path
        self._names = names

    def read(self) -> dict[str, str]:
        """The values by name; empty if the file cannot be read."""
        try:
            with open(self._path, "rb") as file:  # noqa: PTH123 - pathlib needs 0.6 MiB
                values = find(iter(partial(file.readline, MAX_LINE), b""), self._names)
        except OSError as error:
            self.problem.report(f"{self._path} cannot be read, so that no annotation has an effect: {error.strerror}")
            return {}
        self.problem.report("")
        return values


class Store:
    """The record of the memcached process, in a directory of the pod. `clock`: seconds."""

    def __init__(self, directory: str, clock: Callable[[], float]) -> None:
        self.problem: Final = ProblemLog()
        self._path = f"{directory}/{NAME}"
        self._clock = clock
        self._saved: ProcessRecord | None = None
        self._saved_at = clock()

    def load(self) -> ProcessRecord | None:
        """The record; None if the file does not exist, or does not contain one."""
        try:
            with open(self._path, "rb") as file:  # noqa: PTH123 - as above
                self._saved = decode(file.read(MAX_STATE))
        except FileNotFoundError:
            return None
        except OSError as error:
            self.problem.report(f"the state cannot be read: {error.strerror}")
        return self._saved

    def save(self, record: ProcessRecord) -> None:
        """Replace the record in the file, if that is due. After a failure, it is at the next call."""
        if record == self._saved or (_is_minor(self._saved, record) and self._clock() < self._saved_at + SAVE):
            return
        try:
            self._replace(encode(record))
        except OSError as error:
            sentence = f"the state cannot be written, so it is lost when the agent restarts: {error.strerror}"
            self.problem.report(sentence)
            return
        self._saved, self._saved_at = record, self._clock()
        self.problem.report("")

    def _replace(self, content: bytes) -> None:
        """Replace the file at once: a reader finds the old content or the new one."""
        with open(f"{self._path}.new", "wb") as file:  # noqa: PTH123 - as above
            file.write(content)
        os.replace(f"{self._path}.new", self._path)  # noqa: PTH105 - as above


def _is_minor(old: ProcessRecord | None, new: ProcessRecord) -> bool:
    """Whether only values differ that change at every sample."""
    return old is not None and old._replace(cpu=new.cpu, ratio=new.ratio) == new
