"""The requests of the baseline clients, and their order."""

import asyncio
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from bench import load
from bench.openloop import PROFILES, Profile, Sender
from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.kube.resource import Object
from unit.servers import serving

PLACEHOLDERS = (b"its-namespace", b"own-name", b"own-uid", b"9876000")


class Server:
    """Records requests: method, path and body."""

    def __init__(self, code: int = 200) -> None:
        self.requests: list[tuple[str, str, Any]] = []
        self.bodies: list[bytes] = []
        self._code = code

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        """Record a request; the uid of a created object is its path."""
        self.bodies.append(await request.read())
        self.requests.append((request.method, request.path, msgspec.json.decode(self.bodies[-1])))
        name = self.requests[-1][2].get("metadata", {}).get("name", "") if request.method == "POST" else ""
        body = {"metadata": {"uid": f"uid of {request.path.rpartition('/')[2]}", "name": name}}
        return web.Response(body=msgspec.json.encode(body), status=self._code)


def stored(number: int, size: int, generation: int) -> Object:
    """A Memcached as the API server stores it."""
    cr = load.memcached("test", f"cache-{number}")
    cr["metadata"] |= {"uid": f"uid-{number}", "generation": generation}
    cr["spec"]["size"] = size
    return cr


def sent(profile: Profile, *objects: Object, spec: str = load.MINIMAL, server: Server | None = None) -> Server:
    """What a client sends for each object, one after the other if their generations differ."""
    server = server or Server()

    async def run() -> None:
        async with serving(server) as config, aiohttp.ClientSession(config.server) as session:
            sender = Sender(session, profile, spec)
            for generation in sorted({cr["metadata"]["generation"] for cr in objects}):
                for cr in objects:
                    if cr["metadata"]["generation"] == generation:
                        sender.enqueue(cr)
                sender.close()
                async with asyncio.TaskGroup() as group:
                    for _ in range(profile.connections):
                        group.create_task(sender.work())

    asyncio.run(run())
    return server


NEW = {
    load.MINIMAL: ["/apis/apps/v1/namespaces/test/deployments", "/api/v1/namespaces/test/services"],
    load.EVERY_FIELD: [
        "/apis/apps/v1/namespaces/test/deployments",
        "/api/v1/namespaces/test/services",
        "/apis/policy/v1/namespaces/test/poddisruptionbudgets",
        "/apis/networking.k8s.io/v1/namespaces/test/networkpolicies",
        "/apis/monitoring.coreos.com/v1/namespaces/test/podmonitors",
    ],
    load.STABLE: [
        "/apis/apps/v1/namespaces/test/statefulsets",
        "/api/v1/namespaces/test/services",
        "/api/v1/namespaces/test/configmaps",
    ],
}
"""The paths of the children of a new object with each spec."""


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("spec", load.SPECS)
def test_a_new_object_costs_a_request_for_each_child_and_one_status(name: str, spec: str) -> None:
    server = sent(PROFILES[name], stored(7, 4, 1), spec=spec)
    children = NEW[load.MINIMAL if name == "plain" else spec]
    assert [(method, path) for method, path, _ in server.requests] == [
        *(("POST", path) for path in children),
        ("PATCH", "/apis/cache.example.com/v1/namespaces/test/memcacheds/cache-7/status"),
    ]
    deployment, *_, status = [body for _, _, body in server.requests]
    assert deployment["metadata"]["ownerReferences"][0]["uid"] == status["metadata"]["uid"] == "uid-7"
    assert status["status"]["observedGeneration"] == 1
    assert not [body for body in server.bodies for placeholder in PLACEHOLDERS if placeholder in body]


@pytest.mark.parametrize("name", ["ours", "children first"])
def test_another_size_costs_two_requests(name: str) -> None:
    server = sent(PROFILES[name], stored(7, 1, 1), stored(7, 4, 2))
    *_, scale, status = server.requests
    assert len(server.requests) == 3 + 2
    uid, path = "uid of deployments", "/apis/apps/v1/namespaces/test/deployments/cache-7"
    assert scale == ("PATCH", path, {"metadata": {"uid": uid}, "spec": {"replicas": 4}})
    assert (status[1].rpartition("/")[2], status[2]["metadata"]) == ("status", {"uid": "uid-7"})
    assert status[2]["status"]["observedGeneration"] == 2
    assert "0 of 4 pods are ready" in [each["message"] for each in status[2]["status"]["conditions"]]
    assert "selector" not in status[2]["status"], "it is the same as before"


def test_another_size_of_slots_costs_three_more_requests() -> None:
    """The ConfigMap with the addresses changes too; its first change transfers the ownership of the fields."""
    server = sent(PROFILES["ours"], stored(7, 1, 1), stored(7, 2, 2), spec=load.STABLE)
    *_, scale, transfer, apply, status = server.requests
    assert len(server.requests) == 4 + 4
    assert scale[1:] == (
        "/apis/apps/v1/namespaces/test/statefulsets/cache-7",
        {"metadata": {"uid": "uid of statefulsets"}, "spec": {"replicas": 2}},
    )
    assert transfer[1] == apply[1] == "/api/v1/namespaces/test/configmaps/cache-7-connection"
    assert transfer[2][0] == {"op": "test", "path": "/metadata/uid", "value": "uid of configmaps"}
    assert apply[2]["metadata"]["uid"] == "uid of configmaps"
    assert apply[2]["data"]["servers"].count("cache-7.test.svc") == len(status[2]["status"]["servers"]) == 2


def test_a_rejected_request_ends_the_client() -> None:
    with pytest.raises(ExceptionGroup) as found:
        sent(PROFILES["ours"], stored(7, 1, 1), server=Server(422))
    assert "422" in str(found.value.exceptions[0])


@pytest.mark.parametrize("spec", load.SPECS)
def test_the_benchmark_waits_for_every_child(spec: str) -> None:
    assert list(load.CREATES[spec]) == [f"create {path.rpartition('/')[2]}" for path in NEW[spec]]


def test_the_spec_with_every_field_differs_from_the_minimal_spec_in_every_field() -> None:
    minimal, every = load.SPECS[load.MINIMAL], load.SPECS[load.EVERY_FIELD]
    assert every.keys() == {field.encode_name for field in msgspec.structs.fields(MemcachedSpec)}
    assert [name for name, value in every.items() if minimal.get(name) == value] == []
    assert msgspec.convert(every, MemcachedSpec, strict=True) != MemcachedSpec()
