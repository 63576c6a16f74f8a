"""Log in to a memcached that requires it, with the text protocol: a `set` whose value is the user and the password."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from memcached_agent.memcached.connection import MemcachedConnection

PROBE: Final = b"get memcached-agent\r\n"
REQUIRED: Final = b"CLIENT_ERROR unauthenticated\r\n"
REMEDY: Final = "To replace the pod and lose its items, delete it"
REFUSED: Final = b"CLIENT_ERROR authentication failure\r\n"


class User(NamedTuple):
    """A user and a password, as bytes of the file."""

    name: bytes
    password: bytes

    def __repr__(self) -> str:
        return "User(...)"  # neither in the log nor in a traceback


async def log_in(connection: MemcachedConnection, user: User) -> bool:
    """Log in on a new connection; returns whether memcached accepts the user. Raises MemcachedError.

    A memcached that replies before the login needs none, and would store the user and the password as an item. So would
    a connection that is logged in.
    """
    if await connection.request(PROBE, b"", "get", REQUIRED) != REQUIRED:
        raise connection.fail("rejected", f"requires no login: it runs without its file of users. {REMEDY}")
    value = b"%b %b" % user
    command = b"set auth 0 0 %d\r\n%b\r\n" % (len(value), value)
    reply = await connection.request(command, b"", "set auth", REFUSED)
    if reply == b"STORED\r\n":
        return True
    if reply == REFUSED:
        return False
    raise connection.fail("protocol", "sent an invalid reply to a login")


async def log_in_as_any(connection: MemcachedConnection, users: Iterable[User]) -> None:
    """Log in with the first of the users whom memcached accepts. Raises MemcachedError if it accepts none."""
    for user in users:
        if await log_in(connection, user):
            return
    raise connection.fail("rejected", "rejects the login: it accepts none of the users in the file")
