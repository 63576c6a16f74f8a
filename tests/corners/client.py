"""A client of memcached's text and meta protocols."""

import select
import socket
from collections.abc import Iterable
from typing import Final

ADDRESS: Final = "127.0.0.1"
TIMEOUT: Final = 120.0
"""Seconds for one reply. A busy machine may need most of them for a large fill."""
TAIL: Final = 64


class Client:
    """One connection."""

    def __init__(self, port: int, timeout: float = TIMEOUT) -> None:
        self.socket = socket.create_connection((ADDRESS, port), timeout)

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def send(self, request: bytes) -> None:
        """Send a request and leave its reply unread."""
        self.socket.sendall(request)

    def request(self, request: bytes, end: bytes = b"\r\n") -> bytes:
        """Send a request; returns its reply, which ends with `end`. Raises ConnectionError at the end of the stream."""
        self.send(request)
        reply = b""
        while not reply.endswith(end):
            reply += self._receive()
        return reply

    def _receive(self) -> bytes:
        received = self.socket.recv(65536)
        if not received:
            raise ConnectionError("memcached closed the connection")
        return received

    def stats(self, kind: str = "") -> dict[str, str]:
        """The statistics of a kind, such as `settings`."""
        reply = self.request(f"stats {kind}".strip().encode() + b"\r\n", b"END\r\n").decode()
        lines = (line.split(" ", 2) for line in reply.splitlines() if line.startswith("STAT "))
        return {line[1]: line[2] for line in lines if len(line) > 2}

    def send_quiet(self, batches: Iterable[bytes]) -> None:
        """Send batches of quiet requests and wait until all are executed. Error replies are ignored."""
        for batch in batches:
            self._exchange(batch)
        tail = self._exchange(b"mn\r\n")
        while not tail.endswith(b"MN\r\n"):
            tail = (tail + self._receive())[-TAIL:]

    def _exchange(self, batch: bytes) -> bytes:
        """Send a batch and read what arrives meanwhile, so that neither side waits for the other; the last bytes."""
        left, tail = memoryview(batch), b""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN | select.POLLOUT)
        while left:
            events = poll.poll(TIMEOUT * 1000)
            if not events:
                raise TimeoutError("memcached does not read its connection")
            if events[0][1] & ~select.POLLOUT:
                tail = (tail + self._receive())[-TAIL:]
            if events[0][1] & select.POLLOUT:
                left = left[self.socket.send(left, socket.MSG_DONTWAIT) :]
        return tail
