"""A fake API server for kopf: discovery, lists, and scripted watches of the operator's kinds."""

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from memcached_operator.kube.resource import Object, Resource


@dataclass(frozen=True)
class Watch:
    """One response to a watch: a status, the lines to send, and whether the response stays open after them."""

    status: int = 200
    lines: tuple[str, ...] = ()
    open: bool = False


FOREVER = Watch(open=True)


def line(event_type: str, version: int, name: str = "a", **meta: Any) -> str:
    """A watch event as the API server sends it."""
    found = {"name": name, "namespace": "test", "uid": f"uid-{name}", "resourceVersion": str(version), **meta}
    return json.dumps({"type": event_type, "object": {"metadata": found}}) + "\n"


def failed(code: int) -> str:
    """The ERROR event that the API server sends when it ends a watch."""
    status = {"kind": "Status", "code": code, "reason": "Gone", "message": "too old resource version"}
    return json.dumps({"type": "ERROR", "object": status}) + "\n"


def reject(status: int) -> web.Response:
    """A Status response."""
    body = {"kind": "Status", "code": status, "message": f"rejected with {status}"}
    return web.json_response(body, status=status)


@dataclass
class ScriptedServer:
    """Serves these resources. Each watch of a resource gets the next of its `watches`; the last one is repeated.

    `discovery`: the status of discovery requests, or None to hang. `listed`: the objects of each resource. `token`: the
    one that every request needs. `other`: the paths of unexpected requests.
    """

    resources: Sequence[Resource]
    watches: dict[str, list[Watch]] = field(default_factory=dict[str, list[Watch]])
    listed: dict[str, list[Object]] = field(default_factory=lambda: defaultdict(list))
    discovered: Sequence[Resource] | None = None
    discovery: int | None = 200
    lists: list[str] = field(default_factory=list[str])
    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    queries: dict[str, list[dict[str, str]]] = field(default_factory=lambda: defaultdict(list))
    other: list[str] = field(default_factory=list[str])
    version: int = 100
    token: str = ""
    _ended: asyncio.Event = field(default_factory=asyncio.Event)

    def end_watches(self) -> None:
        """End all open watches."""
        self._ended.set()
        self._ended = asyncio.Event()

    def forget(self) -> None:
        """Forget the recorded requests, except their times."""
        self.queries.clear()
        self.lists.clear()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            self.other.append(request.path)
            return reject(401)
        plural = request.path.rpartition("/")[2]
        if plural not in {each.plural for each in self.resources}:
            return await self._discover(request.path)
        if "watch" in request.query:
            return await self._watch(plural, request)
        self.lists.append(plural)
        return web.json_response({"metadata": {"resourceVersion": str(self.version)}, "items": self.listed[plural]})

    async def _watch(self, plural: str, request: web.BaseRequest) -> web.StreamResponse:
        self.times[plural].append(time.monotonic())
        self.queries[plural].append(dict(request.query))
        script = self.watches.get(plural, [FOREVER])
        watch = script[min(len(self.times[plural]), len(script)) - 1]
        if watch.status != 200:
            return reject(watch.status)
        response = web.StreamResponse()
        await response.prepare(request)
        for each in watch.lines:
            await response.write(each.encode())
        if watch.open:
            await self._ended.wait()
        return response

    async def _discover(self, path: str) -> web.Response:
        if self.discovery is None:
            await asyncio.Event().wait()
        if self.discovery != 200:
            return reject(self.discovery or 500)
        found = self.resources if self.discovered is None else self.discovered
        if path == "/api":
            return web.json_response({"versions": ["v1"]})
        if path == "/apis":
            versions = {each.group: {"groupVersion": each.api_version, "version": each.version} for each in found}
            groups = [{"name": name, "versions": [at], "preferredVersion": at} for name, at in versions.items()]
            return web.json_response({"groups": groups})
        described = [_described(each) for each in found if path == f"/apis/{each.api_version}"]
        if path == "/api/v1" or described:
            return web.json_response({"resources": described or [NAMESPACES]})
        self.other.append(path)
        return reject(404)


NAMESPACES: dict[str, Any] = {
    "name": "namespaces",
    "singularName": "namespace",
    "kind": "Namespace",
    "namespaced": False,
    "verbs": [],
}


def _described(resource: Resource) -> dict[str, Any]:
    names = {"name": resource.plural, "singularName": resource.kind.lower(), "kind": resource.kind}
    return {**names, "namespaced": True, "verbs": ["get", "list", "watch", "patch"]}
