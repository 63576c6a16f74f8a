"""The client of the benchmark: which replies to stored values it accepts."""

import socket
from collections.abc import Iterator

import pytest

from insight.load import BATCH, NO_MEMORY, STORED, Target


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """A socket for connections of a target."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found


def answered(listening: socket.socket, reply: bytes) -> Target:
    """A target that has received this reply."""
    target = Target(listening.getsockname()[1])
    server, _ = listening.accept()
    with server:
        server.sendall(reply)
    return target


@pytest.mark.parametrize("unstored", [0, 1, BATCH])
def test_values_without_memory_are_counted(listening: socket.socket, unstored: int) -> None:
    target = answered(listening, unstored * NO_MEMORY + STORED)
    target.done()
    assert target.unstored == unstored
    target.close()


REJECTED = [
    pytest.param((BATCH + 1) * NO_MEMORY + STORED, "no memory for 101 values", id="too many without memory"),
    pytest.param(b"NS\r\n" + STORED, "was not stored", id="not stored"),
    pytest.param(NO_MEMORY, "closed the connection", id="closed"),
]


@pytest.mark.parametrize(("reply", "message"), REJECTED)
def test_rejected_replies(listening: socket.socket, reply: bytes, message: str) -> None:
    target = answered(listening, reply)
    with pytest.raises(OSError, match=message):
        target.done()
    target.close()
