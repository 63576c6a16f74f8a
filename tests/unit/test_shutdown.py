"""SIGTERM ends the controller within seconds and releases the lease, even if the API server fails or hangs."""

import asyncio
import os
import signal
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from support.ports import free_port
from unit.process.serving import half_open
from unit.servers import serving

SHUTDOWN = 8.0
"""Seconds until the process must have ended after SIGTERM: less than any timeout of a request (10 s)."""
START = 60.0
"""Seconds until the process must have sent its first request; enough for a busy machine."""
EMPTY: dict[str, Any] = {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}


@dataclass
class ApiServer:
    """An API server whose leases work unless `leases` is False. `behaviour` applies to every other request."""

    behaviour: str
    leases: bool = True
    lease: dict[str, Any] | None = None
    busy: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        is_lease = "/leases" in request.path
        if is_lease and self.leases:
            return await self._lease(request)
        self.busy.set()
        if is_lease or self.behaviour == "hangs":
            await asyncio.Event().wait()
        if self.behaviour == "is empty":
            return await self._empty(request)
        return web.json_response({"kind": "Status"}, status=int(self.behaviour.rpartition(" ")[2]))

    async def _lease(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":
            return web.json_response(self.lease or {}, status=200 if self.lease else 404)
        self.lease = await request.json()
        assert self.lease is not None
        self.lease["metadata"]["resourceVersion"] = "1"
        return web.json_response(self.lease)

    async def _empty(self, request: web.BaseRequest) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.json_response(EMPTY)
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.Event().wait()
        return response


def kubeconfig(path: Path, server: str) -> Path:
    """Write a kubeconfig without credentials."""
    content: dict[str, Any] = {
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": server}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "users": [{"name": "test", "user": {}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


async def terminated(api: ApiServer, directory: Path) -> tuple[int, str]:
    """Run the controller against the server and send SIGTERM. Returns the exit code and the log.

    The ports for probes and metrics have a half-open client each.
    """
    ports = free_port(), free_port()
    probes, metrics = (f"127.0.0.1:{port}" for port in ports)
    arguments = ("--leader-elect", f"--health-probe-bind-address={probes}", f"--metrics-bind-address={metrics}")
    async with serving(api) as conn:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "KUBECONFIG": str(kubeconfig(directory / "kubeconfig", conn.server)),
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "memcached_operator", *arguments), env=environment, stderr=asyncio.subprocess.PIPE
        )
        try:
            await asyncio.wait_for(api.busy.wait(), START)
            with ExitStack() as clients:
                for port in ports:
                    await half_open(clients, port)
                process.send_signal(signal.SIGTERM)
                _, log = await asyncio.wait_for(process.communicate(), SHUTDOWN)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode is not None
        return process.returncode, log.decode()


@pytest.mark.parametrize(
    ("behaviour", "leases"),
    [("hangs", True), ("hangs", False), ("is empty", True), ("responds 403", True)],
    ids=["hangs", "standby", "is empty", "responds 403"],
)
def test_sigterm_ends_the_process_and_releases_the_lease(behaviour: str, leases: bool, tmp_path: Path) -> None:
    async def run() -> None:
        api = ApiServer(behaviour, leases)
        code, log = await terminated(api, tmp_path)
        assert (code, "Traceback" in log) == (0, False), log
        assert (api.lease or {}).get("spec", {}).get("holderIdentity") == ("" if leases else None)

    asyncio.run(run())
