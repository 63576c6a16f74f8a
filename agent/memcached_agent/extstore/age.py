"""Gives the memcached of a pod the age after which its items move to the disk."""

import logging
from typing import Final

from memcached_agent.memcached.client import MemcachedClient
from memcached_agent.pod.annotations import whole_number
from memcached_agent.pod.files import ProblemLog

log = logging.getLogger(__name__)

NAME: Final = "item-age"
NEVER: Final = 2**32 - 1
"""Seconds. memcached's default, with which it moves items only when memory is nearly full."""
SETTING: Final = "ext_item_age"


def parse_age(value: str) -> int:
    """The seconds in the annotation. Raises ValueError, with one sentence, if it is invalid."""
    return whole_number(NAME, value, 0, NEVER, "seconds")


class ItemAge:
    """The age after which items move to the disk, as the pod wants it.

    `target`: seconds; None without a valid annotation, and then memcached keeps what it has.
    """

    def __init__(self, client: MemcachedClient) -> None:
        self.target: int | None = None
        self._client = client
        self._logged: int | None = None
        self._invalid: Final = ProblemLog()
        self._refused: Final = ProblemLog()

    def configure(self, value: str | None) -> None:
        """Take over the value of the annotation; None: there is none."""
        self.target, sentence = None, ""
        try:
            self.target = None if value is None else parse_age(value)
        except ValueError as error:
            sentence = str(error)
        self._invalid.report(sentence)

    async def enforce(self) -> None:
        """Set the age in memcached to the target, and verify it, unless it has it. Raises MemcachedError.

        memcached starts with the age of an earlier target, and any client can change it.
        """
        problem = ""
        if self.target is not None and await self._age() != str(self.target):
            problem = await self._set(self.target)
        self._refused.report(problem)

    async def problem(self) -> str:
        """The reason why the target is not in effect, as one sentence; empty if it is."""
        return self._invalid.sentence or self._refused.sentence

    async def _age(self) -> str:
        return (await self._client.settings()).get(SETTING, "")

    async def _set(self, seconds: int) -> str:
        """The reason why memcached does not have the age afterwards, as one sentence; empty if it has."""
        problem = f"the age at which items move to the disk cannot be set to {seconds} s"
        if reply := await self._client.set_item_age(seconds):
            return f"{problem}: it replied {reply}"
        if await self._age() != str(seconds):
            return f"{problem}: it reports another one"
        if self._logged != seconds:  # a client can set another age as often as it wants
            log.info("items move to the disk after %d s", seconds)
        self._logged = seconds
        return ""
