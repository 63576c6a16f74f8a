"""The source of users: memcached reads the file of its option `-Y` again upon SIGHUP."""

import asyncio
import signal
from collections.abc import Mapping
from typing import Final

from memcached_agent.addresses import Address
from memcached_agent.errors import InvalidError, UnverifiedError
from memcached_agent.memcached.connection import MemcachedConnection
from memcached_agent.memcached.errors import MemcachedError
from memcached_agent.memcached.login import User, log_in
from memcached_agent.pod import processes
from memcached_agent.pod.processes import Process
from memcached_agent.reload import users_file
from memcached_agent.reload.files import File, read

RELOAD_TIME: Final = 1.2
"""Seconds from SIGHUP until memcached has read the file: it does so when its clock ticks, each second. A login before
may show the earlier state."""
PROOF_TIME: Final = 3.0
"""Further seconds until memcached, if the node is busy, accepts the users of the file."""
PROOF_PAUSE: Final = 0.3
"""Seconds between two attempts to log in."""


class Accounts:
    """The users in a file."""

    name: str = "users"

    def __init__(self, path: str, address: Address) -> None:
        self._path = path
        self._address = address
        self._applied: tuple[User, ...] = ()

    def candidates(self) -> tuple[User, ...]:
        """The users with which a new connection may log in: those of the file, then those that memcached had before."""
        try:
            current = users_file.parse_users(self.read())
        except InvalidError:  # the watcher reports it
            current = ()
        return tuple(dict.fromkeys(current + self._applied))

    def read(self) -> File:
        """The file now. Raises InvalidError."""
        return read(self._path)

    def check(self, file: File) -> File:
        """The file, if it is valid. Raises InvalidError."""
        users_file.parse_users(file)
        return file

    def target(self) -> Process:
        """The process of memcached. Raises InvalidError if it is not visible."""
        return processes.find("-Y", self._path)

    async def apply(self, file: File) -> None:
        """Make memcached read the file, and log in with each user. Raises InvalidError and UnverifiedError.

        memcached uses the file also if no connection is free for the login.
        """
        current = users_file.parse_users(file)
        processes.send(self.target(), signal.SIGHUP)
        await asyncio.sleep(RELOAD_TIME)
        removed = set(self._applied) - set(current)
        await self._verify({**dict.fromkeys(removed, False), **dict.fromkeys(current, True)}, file)
        self._applied = current

    async def inspect(self) -> None:
        """Do nothing: memcached does not tell its users."""

    async def _verify(self, expected: Mapping[User, bool], file: File) -> None:
        """Wait until memcached accepts exactly the expected users."""
        deadline = asyncio.get_running_loop().time() + PROOF_TIME
        pending = dict(expected)
        while pending:
            user, accepted = next(iter(pending.items()))
            if await self._accepts(user) == accepted:
                del pending[user]
            elif asyncio.get_running_loop().time() > deadline:
                raise InvalidError(_failure(file, user, list(users_file.parse_users(file))))
            else:
                await asyncio.sleep(PROOF_PAUSE)

    async def _accepts(self, user: User) -> bool:
        """Whether memcached accepts a login. Raises UnverifiedError if it does not reply."""
        connection = MemcachedConnection(self._address, lambda _: None)
        try:
            await connection.open()
            return await log_in(connection, user)
        except MemcachedError as error:
            raise UnverifiedError(str(error)) from None
        finally:
            connection.fail("closed", "was disconnected by the agent")


def _failure(file: File, user: User, current: list[User]) -> str:
    """The sentence about a user whom memcached does not treat as the file says."""
    remedy = _remedy(file.content or b"")
    if user not in current:
        return f"memcached still accepts a user who is no longer in {file.path}; {remedy}"
    return f"memcached rejects the user in line {current.index(user) + 1} of {file.path}; {remedy}"


def _remedy(content: bytes) -> str:
    if not content.endswith(b"\n"):
        return "end the file with a newline, because memcached 1.6.18 otherwise ignores the last character"
    if b"\r" in content:
        return "remove the carriage returns, because memcached 1.6.18 cannot read lines that contain them"
    return "the agent reloads it again"
