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


async def terminated(api: ApiServer, directory: Path, ports: tuple[int, int]) -> tuple[int, str]:
    """Run the controller against the server and send SIGTERM. Returns the exit code and the log.

    `ports`: for probes and metrics, each with a half-open client; 0 disables the port.
    """
    probes, metrics = (f"127.0.0.1:{port}" if port else "0" for port in ports)
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
                for port in filter(None, ports):
                    await half_open(clients, port)
                process.send_signal(signal.SIGTERM)
                _, log = await asyncio.wait_for(process.communicate(), SHUTDOWN)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode is not None
        return process.returncode, log.decode()


STATES: dict[str, tuple[ApiServer, bool]] = {
    "requests hang, as do clients of the plain ports": (ApiServer("hangs"), True),
    "watches are open": (ApiServer("is empty"), False),
    "requests are retried": (ApiServer("responds 403"), False),
    "standby": (ApiServer("hangs", leases=False), True),
}


@pytest.mark.parametrize(("api", "half_open_clients"), STATES.values(), ids=STATES.keys())
def test_sigterm_ends_the_process_and_releases_the_lease(
    api: ApiServer, half_open_clients: bool, tmp_path: Path
) -> None:
    ports = (free_port(), free_port()) if half_open_clients else (0, 0)
    code, log = asyncio.run(terminated(api, tmp_path, ports))
    assert (code, "Traceback" in log) == (0, False), log
    if api.leases:
        assert api.lease is not None
        assert api.lease["spec"]["holderIdentity"] == ""
