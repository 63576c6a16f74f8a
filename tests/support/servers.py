"""Servers in the process of a test."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer

POLL = 0.01
"""Seconds in which a server notices that it is stopped."""


class Quiet:
    """Makes a handler of HTTP requests log nothing."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the handlers' base class
        """Log nothing."""


@contextmanager
def served(server: TCPServer) -> Generator[int]:
    """Run a server during the block; yields its port."""
    thread = threading.Thread(target=server.serve_forever, args=(POLL,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler], host: str) -> Generator[str]:
    """Serve HTTP on a free port of a host during the block; yields `HOST:PORT`."""
    with ThreadingHTTPServer((host, 0), handler) as server, served(server) as port:
        yield f"{host}:{port}"
