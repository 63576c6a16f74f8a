"""Stands between an agent and memcached, and cuts the connection of the watcher in the middle of a line."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Final, cast

HOST: Final = "127.0.0.1"
WATCH: Final = b"watch "
MIDDLE: Final = b" key="
"""The place in a line after which nothing follows."""


class Relay(ThreadingTCPServer):
    """Passes all connections on to the memcached at `port`. `watchers`: how many of them have begun to watch."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__((HOST, 0), _Connection)
        self.target: Final = port
        self.watchers = 0
        self.cutting = threading.Event()

    @property
    def port(self) -> int:
        """Where the agent connects."""
        return int(self.socket.getsockname()[1])

    def cut(self) -> None:
        """Cut the next line that memcached sends to a watcher."""
        self.cutting.set()


class _Connection(BaseRequestHandler):
    request: socket.socket

    def handle(self) -> None:
        """Pass on what both sides send, until one of them closes the connection, or a line is cut."""
        self._relay = cast("Relay", self.server)
        self._watches = False
        with socket.create_connection((HOST, self._relay.target)) as memcached:
            sender = threading.Thread(target=self._send, args=(memcached,), daemon=True)
            sender.start()
            with suppress(OSError):
                self._receive(memcached)
            for each in (memcached, self.request):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            sender.join()

    def _send(self, memcached: socket.socket) -> None:
        with suppress(OSError):
            while data := self.request.recv(2**16):
                if data.startswith(WATCH):
                    self._watches = True
                    self._relay.watchers += 1
                memcached.sendall(data)
            memcached.shutdown(socket.SHUT_RDWR)

    def _receive(self, memcached: socket.socket) -> None:
        while data := memcached.recv(2**16):
            end = data.rfind(MIDDLE)
            if self._watches and end >= 0 and self._relay.cutting.is_set():
                self.request.sendall(data[: end + len(MIDDLE)])
                self._relay.cutting.clear()
                return
            self.request.sendall(data)


@contextmanager
def relay(port: int) -> Generator[Relay]:
    """A relay to the memcached at this port, during the block."""
    with Relay(port) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        try:
            yield found
        finally:
            found.shutdown()
            thread.join()
