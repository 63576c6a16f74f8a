"""T15, too: faults of the files that the agent makes memcached reload, and of clients of its HTTPS port.

memcached is simulated: its connection and its TLS port on loopback, and the process that gets SIGHUP.
"""

import asyncio
import os
import ssl
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import aiohttp

from faults.case import Case, References
from faults.process import Operator, supervised
from faults.sandbox import TIMEOUT_FACTOR, Sandbox, wait_until
from support.pki import CA, Pair
from support.ports import free_port
from support.volumes import Volume
from unit.agent.memcacheds import FakeMemcached

IN_TIME = 10.0
"""Seconds from a change of the files until the agent has applied or reported it."""
HANDSHAKE_SECONDS = 5.0
HALF_HANDSHAKE = b"\x16\x03\x01\x02\x00\x01"
PYTHON = Path(sys.executable).resolve()
PROCESS = """
import os, signal, sys, time
path, loaded = sys.argv[2:]
def load(*_):
    with open(path, "rb") as source, open(loaded + ".new", "wb") as target:
        target.write(source.read())
    os.rename(loaded + ".new", loaded)
signal.signal(signal.SIGHUP, load)
load()
while True:
    signal.pause()
"""
"""A process that reads the file of users when it starts and upon SIGHUP, as memcached does."""


class Memcached(FakeMemcached):
    """A simulated memcached with TLS and users. `loads`: how often it was asked to load its certificate."""

    def __init__(self, tls: Volume, loaded: Path) -> None:
        super().__init__()
        self.tls_port = free_port()
        self.loads = 0
        self.obeys = True
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls = tls
        self._loaded = loaded
        self.answer = self._answer

    def load(self) -> None:
        """Load the certificate from the files."""
        self.context.load_cert_chain(self._tls.directory / "tls.crt", self._tls.directory / "tls.key")

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        """Serve both ports during the block."""

        async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        async with self.running(), await asyncio.start_server(close, "127.0.0.1", self.tls_port, ssl=self.context):
            yield

    def _answer(self, line: str) -> bytes | None:
        if line == "refresh_certs":
            self.loads += 1
            return self._reload()
        if line.startswith("set auth "):
            return b""  # the next line is the value
        if line in self.replies:
            return None
        user = line.replace(" ", ":", 1)
        known = user in self._loaded.read_text().split()
        return b"STORED\r\n" if known else b"CLIENT_ERROR authentication failure\r\n"

    def _reload(self) -> bytes:
        try:
            if self.obeys:
                self.load()
        except (OSError, ssl.SSLError):
            return b"Error loading the certificate\r\n"
        return b"OK\r\n"


@dataclass
class Setup:
    """An agent, its memcached and the files."""

    sandbox: Sandbox
    process: Operator
    memcached: Memcached
    tls: Volume
    auth: Volume
    loaded: Path
    port: int
    session: aiohttp.ClientSession
    starts: int = 1
    """How often the agent may have been started."""

    async def get(self, path: str, scheme: str = "https") -> str:
        """The body of a response; empty if there is none."""
        try:
            async with self.session.get(f"{scheme}://127.0.0.1:{self.port}{path}", ssl=False) as response:
                return await response.text()
        except aiohttp.ClientError:
            return ""

    async def wait_reported(self, text: str) -> None:
        """Wait until /healthz has this text."""

        async def is_reported() -> bool:
            return text in await self.get("/healthz")

        await wait_until(is_reported, IN_TIME, f"the reason is reported: {text}")

    async def wait_loaded(self, pair: Pair) -> None:
        """Wait until the agent has verified this certificate, and everything else works."""
        text = f"memcached_agent_certificate_expiration_timestamp_seconds {pair.not_after.timestamp():.0f}\n"

        async def is_loaded() -> bool:
            return text in await self.get("/metrics") and await self.get("/healthz") == "ok\n"

        await wait_until(is_loaded, 2 * IN_TIME, "memcached uses the current files")

    async def check_probes(self) -> None:
        """Check that the probes of the kubelet succeed without TLS."""
        for path in ("/livez", "/readyz"):
            answer = await self.get(path, "http")
            self.sandbox.check(answer == "ok\n", f"{path}: {answer!r}")


Scenario = Callable[[Setup], Awaitable[None]]
AUTHORITY = CA()
FIRST, SECOND = AUTHORITY.issue(days=20), AUTHORITY.issue(days=40)


def files(pair: Pair) -> dict[str, bytes]:
    """The files of a pair."""
    return {"tls.crt": pair.cert, "tls.key": pair.key}


async def run(sandbox: Sandbox, _: References, scenario: Scenario) -> None:
    """One scenario; before and after it, memcached uses the current files."""
    with tempfile.TemporaryDirectory() as directory:
        base, port = Path(directory), free_port()
        tls, auth, loaded = Volume(base / "tls"), Volume(base / "auth"), base / "loaded"
        tls.write(files(FIRST))
        auth.write({"users": b"u:old\n"})
        memcached = Memcached(tls, loaded)
        memcached.load()
        arguments = [
            *(f"--memcached=127.0.0.1:{memcached.port}", f"--metrics-bind-address=127.0.0.1:{port}", "--metrics-tls"),
            *(f"--tls-directory={tls.directory}", f"--tls-port={memcached.tls_port}"),
            f"--users-file={auth.directory}/users",
        ]
        log = sandbox.operator.log.with_suffix(".agent.log")
        process = Operator(arguments, {}, sandbox.settings.sources, log, "memcached_agent")
        timeout = aiohttp.ClientTimeout(total=30 * TIMEOUT_FACTOR)
        connector = aiohttp.TCPConnector(force_close=True)
        async with (
            memcached.serving(),
            _process(base, auth.directory / "users", loaded),
            supervised(process),
            aiohttp.ClientSession(timeout=timeout, connector=connector) as session,
        ):
            process.start()
            setup = Setup(sandbox, process, memcached, tls, auth, loaded, port, session)
            await setup.wait_loaded(FIRST)
            await scenario(setup)
            tls.write(files(SECOND))
            auth.write({"users": b"u:newest\n"})
            await setup.wait_loaded(SECOND)
            await wait_until(partial(_is_loaded, loaded, b"u:newest\n"), IN_TIME, "memcached uses the current users")
            await setup.check_probes()
            sandbox.check("Traceback" not in process.log_text(), "there is a traceback in the log")
            sandbox.check(len(process.starts) == setup.starts, "the agent was restarted")


async def _is_loaded(loaded: Path, content: bytes) -> bool:
    return loaded.read_bytes() == content  # noqa: ASYNC240 - a small file


async def _exists(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110, ASYNC240 - as above


@asynccontextmanager
async def _process(base: Path, users: Path, loaded: Path) -> AsyncGenerator[None]:
    """A process with the name and the option of memcached."""
    program = base / "memcached"
    program.symlink_to(PYTHON)
    process = await asyncio.create_subprocess_exec(program, "-IS", "-c", PROCESS, "-Y", users, loaded)
    try:
        await wait_until(partial(_exists, loaded), IN_TIME, "the process has started")
        yield
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def bad_certificates(setup: Setup) -> None:
    """Files that memcached could not serve. It is not asked to load them."""
    before = setup.memcached.loads
    expired = AUTHORITY.issue(not_after=FIRST.not_after, not_before=FIRST.not_after)
    for content, reason in (
        (files(SECOND) | {"tls.key": FIRST.key}, "tls.key is not the key of"),
        (files(SECOND) | {"tls.crt": SECOND.cert[:-40]}, "an incomplete one"),
        (files(SECOND) | {"ca.crt": CA("other").pem}, "unable to get local issuer certificate"),
        ({"tls.crt": SECOND.cert}, "tls.key is missing"),
        (files(expired), "certificate is not yet valid"),
    ):
        setup.tls.write(content)
        await setup.wait_reported(reason)
        loads = setup.memcached.loads - before
        setup.sandbox.check(loads == 0, f"memcached was asked to load bad files {loads} times")


async def not_loaded(setup: Setup) -> None:
    """memcached replies OK, and serves the old certificate."""
    setup.memcached.obeys = False
    setup.tls.write(files(SECOND))
    await setup.wait_reported("memcached serves another certificate than")
    found = await setup.get("/metrics")
    success = 'memcached_agent_last_reload_successful{source="certificate"} 0\n'
    setup.sandbox.check(success in found, "the reload is reported as successful")
    setup.memcached.obeys = True


async def bad_users(setup: Setup) -> None:
    """Files that memcached would ignore or misread. It does not get SIGHUP."""
    before = setup.loaded.read_bytes()
    for content, reason in (
        (b"u\n", "line 1: no colon"),
        (b"u:p\n" * 9, "users has 9 lines"),
        (b"u:" + b"x" * 300 + b"\n", "line 1: longer than"),
        (b"u:p\n\n", "line 2: empty"),
        (b"u:a b\n", "line 1: contains a space"),
    ):
        setup.auth.write({"users": content})
        await wait_until(partial(_is_handled, setup, before, reason), IN_TIME, "the bad file is reported")
        setup.sandbox.check(setup.loaded.read_bytes() == before, "memcached read a bad file")


async def _is_handled(setup: Setup, before: bytes, reason: str) -> bool:
    """Whether the agent has reported the file of users, or memcached has read it."""
    return reason in await setup.get("/healthz") or setup.loaded.read_bytes() != before


async def restarted(setup: Setup) -> None:
    """memcached closes all connections, as a restart does: what it serves is verified again."""
    before = setup.memcached.loads
    setup.memcached.close_all()

    async def is_loaded_again() -> bool:
        return setup.memcached.loads > before

    await wait_until(is_loaded_again, 2 * IN_TIME, "the certificate is verified again")


async def no_certificate(setup: Setup) -> None:
    """The agent starts while no certificate is valid: the probes succeed, and the metrics follow the certificate."""
    setup.tls.write({})
    setup.starts = 2
    setup.process.kill()

    async def is_live() -> bool:
        return len(setup.process.starts) > 1 and await setup.get("/livez", "http") == "ok\n"

    await wait_until(is_live, IN_TIME, "the agent is live without a certificate")
    setup.sandbox.check(await setup.get("/metrics") == "", "metrics are served without a certificate")
    await setup.check_probes()


async def half_handshakes(setup: Setup) -> None:
    """Many clients begin a handshake. Others get metrics meanwhile, and the incomplete ones are closed."""
    clients = [await asyncio.open_connection("127.0.0.1", setup.port) for _ in range(100)]
    for _, writer in clients:
        writer.write(HALF_HANDSHAKE)
    setup.sandbox.check("memcached_up 1" in await setup.get("/metrics"), "other clients get no metrics")
    await setup.check_probes()
    last = clients[-1][0]

    async def is_closed() -> bool:
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(0.1):
                return await last.read(1) == b""
            return False
        return last.at_eof() or last.exception() is not None

    await wait_until(is_closed, 2 * HANDSHAKE_SECONDS, "a half handshake is closed")
    for _, writer in clients:
        writer.transport.abort()


SCENARIOS: dict[str, Scenario] = {
    "bad-certificates": bad_certificates,
    "certificate-not-loaded": not_loaded,
    "bad-users": bad_users,
    "memcached-restarted": restarted,
    "no-certificate": no_certificate,
    "half-handshakes": half_handshakes,
}


def cases() -> list[Case]:
    """One case per scenario."""
    return [Case(f"T15/{name}", partial(run, scenario=scenario)) for name, scenario in SCENARIOS.items()]
