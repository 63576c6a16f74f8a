"""`make run` logs in with the credential plug-in of the kubeconfig, also for kopf's own requests."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from aiohttp import web

from memcached_api.images import Images
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kinds import kinds
from memcached_operator.kube.resource import PODS
from memcached_operator.memcached.controller import MEMCACHEDS
from support.ports import free_port
from unit.kinds_server import KindsServer, reject
from unit.kube.test_credentials import Plugin
from unit.servers import serving

START = 60.0
"""Seconds until the controller watches; enough for a busy machine."""
_WATCHED = (resource for kind in kinds(Images()) for resource in (*kind.owns, *kind.observes, PODS))
CHILDREN = tuple(resource.plural for resource in _WATCHED)


class Server:
    """A server of the kinds that accepts one token. `accepted` and `rejected`: the paths of the requests."""

    def __init__(self) -> None:
        self.kinds = KindsServer([MEMCACHEDS, APPSERVICES])
        self.accepted: list[str] = []
        self.rejected: list[str] = []

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        accepted = request.headers.get("Authorization") == "Bearer first"
        (self.accepted if accepted else self.rejected).append(request.path)
        if not accepted:
            return reject(401)
        if request.path.endswith(CHILDREN) and "watch" not in request.query:
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})
        return await self.kinds(request)

    async def watched(self) -> None:
        """Wait until the controller watches both kinds."""
        while len(self.kinds.times) < len(self.kinds.resources):  # noqa: ASYNC110 - changed by requests
            await asyncio.sleep(0.05)


def test_make_run_uses_the_credential_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = Plugin(tmp_path, monkeypatch)

    async def run() -> Server:
        server = Server()
        async with serving(server) as at:
            plugin.use(at.server)
            command = (sys.executable, "-m", "project", "run", f"--metrics-port={free_port()}")
            environment = {
                "PATH": os.environ["PATH"],
                "KUBECONFIG": str(plugin.kubeconfig),
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            }
            process = await asyncio.create_subprocess_exec(
                *(*command, f"--probes-port={free_port()}"), env=environment, stderr=asyncio.subprocess.PIPE
            )
            try:
                await asyncio.wait_for(server.watched(), START)
                process.send_signal(signal.SIGTERM)
                _, log = await asyncio.wait_for(process.communicate(), START)
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            assert (process.returncode, b"Traceback" in log) == (0, False), log.decode()
        return server

    server = asyncio.run(run())
    assert not server.rejected
    assert "/apis" in server.accepted
    assert plugin.calls == 1
