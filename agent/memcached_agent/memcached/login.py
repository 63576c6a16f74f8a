"""Log in to a memcached that requires it, with the text protocol: a `set` whose value is the user and the password."""

from typing import Final, NamedTuple

from memcached_agent.memcached.connection import Connection

REFUSED: Final = b"CLIENT_ERROR authentication failure\r\n"


class User(NamedTuple):
    """A user and a password, as bytes of the file."""

    name: bytes
    password: bytes

    def __repr__(self) -> str:
        return "User(...)"  # neither in the log nor in a traceback


async def log_in(connection: Connection, user: User) -> bool:
    """Log in on a new connection; returns whether memcached accepts the user. Raises MemcachedError.

    A connection that is logged in must not do this again: it would store the password as an item.
    """
    value = b"%b %b" % user
    command = b"set auth 0 0 %d\r\n%b\r\n" % (len(value), value)
    reply = await connection.request(command, b"", "set auth", REFUSED)
    if reply == b"STORED\r\n":
        return True
    if reply == REFUSED:
        return False
    raise connection.fail("protocol", "sent an invalid reply to a login")
