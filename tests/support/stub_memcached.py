"""A memcached and an agent on loopback with scripted replies, for tests without the real programs."""

import socketserver
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from support.servers import Quiet, served

UNAUTHENTICATED = "CLIENT_ERROR unauthenticated\r\n"
VERSION = "VERSION 1.6.45\r\n"


@dataclass
class Stub:
    """A scripted memcached. `replies`: command → reply; `version` has one by default. `login`: `user password`.

    `commands`: what clients sent, without logins.
    """

    replies: Mapping[str, str] = field(default_factory=dict[str, str])
    login: str = ""
    commands: list[str] = field(default_factory=list[str])
    greeting: str = ""
    """Sent to each client, which is then disconnected, as at the connection limit."""

    def answer(self, command: str, logged_in: bool) -> str:
        """The reply to a command."""
        if not logged_in:
            return UNAUTHENTICATED
        self.commands.append(command)
        return self.replies.get(command, VERSION if command == "version" else "ERROR\r\n")


@contextmanager
def memcached(stub: Stub) -> Generator[int]:
    """Serve it during the block, on the port of 127.0.0.1 that is returned."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            if stub.greeting:
                self.wfile.write(stub.greeting.encode())
                return
            logged_in = not stub.login
            while line := self.rfile.readline().decode().removesuffix("\r\n"):
                if line.startswith("set auth "):
                    value = self.rfile.readline().decode().removesuffix("\r\n")
                    logged_in = value == stub.login
                    reply = "STORED\r\n" if logged_in else "CLIENT_ERROR authentication failure\r\n"
                else:
                    reply = stub.answer(line, logged_in)
                self.wfile.write(reply.encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        with served(server) as port:
            yield port


@contextmanager
def agent(responses: Mapping[str, tuple[int, str]]) -> Generator[int]:
    """Serve responses by path, a status and a text, during the block."""

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text = responses.get(self.path, (404, ""))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, served(server) as port:
        yield port
