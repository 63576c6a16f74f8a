"""The simulated API server (tests/simulation/api) responds to each script as a real one of Kubernetes 1.35 does."""

import asyncio
import json
import random
import re
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast

import aiohttp
import pytest

from faults.state import difference
from integration import api_children, api_objects
from integration.api_steps import NAMESPACE, Step
from integration.control_plane import NAMESPACES, ControlPlane, eventually, without_controllers
from memcached_operator.kube.config import Config
from memcached_operator.kube.resource import Object
from simulation.api.kinds import ROLE_BINDINGS, ROLES
from simulation.api.server import ApiServer, Reply, Request

UID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]+)?Z")
VERSION = re.compile(r"(?<=version: )[0-9]+ \([0-9]+\)|(?<=precondition \()[0-9]+(?=\))|(?<=in record \()[0-9]+(?=\))")
ADDRESS = re.compile(r"10(\.[0-9]+){3}")
GENERATED = re.compile("gen-[a-z0-9]{5}")
GO_VALUES = re.compile(r"(?<=if it was previously negative\)\n).*", re.DOTALL)
MASKED = ("resourceVersion", "uid", "nodePort", "continue", "remainingItemCount", "healthCheckNodePort")
"""Fields whose values differ between servers."""
WATCH_SECONDS = 1
SCRIPTS: Final[Mapping[str, list[Step]]] = {**api_children.SCRIPTS, **api_objects.SCRIPTS}
"""Scripts of requests to which the simulated API server must respond as a real one does."""


class Simulation:
    """Sends requests to the simulation."""

    def __init__(self) -> None:
        self.server = ApiServer(lambda: datetime(2030, 1, 1, tzinfo=UTC), random.Random(1))  # noqa: S311 - no secret
        body = json.dumps({"metadata": {"name": NAMESPACE}}).encode()
        self.server.handle(Request("POST", "/api/v1/namespaces", body=body))

    async def send(self, step: Step, body: Any, query: Mapping[str, str]) -> tuple[int, Any]:
        """Send a request; the status and the decoded body, or the events of a watch."""
        text = b"" if body is None else json.dumps(body).encode()
        request = Request(step.method, step.path, query, step.content_type, text, step.user)
        if step.method != "WATCH":
            reply = self.server.handle(request)
            return reply.status, decoded(reply.body.decode())
        lines: list[bytes] = []
        watch = self.server.watch(request._replace(method="GET", query={**query, "watch": "true"}), lines.append)
        if isinstance(watch, Reply):
            return watch.status, json.loads(watch.body)
        watch.close()
        return 200, [json.loads(line) for line in lines]


class Real:
    """Sends requests to a real API server, where each script has a namespace of its own."""

    def __init__(self, connection: Config, session: aiohttp.ClientSession, namespace: str) -> None:
        self._server = connection.server
        self._session = session
        self._namespace = namespace
        self._rules: list[Object] = []
        self._user = ""

    async def send(self, step: Step, body: Any, query: Mapping[str, str]) -> tuple[int, Any]:
        """Send a request; the status and the decoded body, or the events of a watch."""
        headers = {"Content-Type": step.content_type} | (
            {"Impersonate-User": self._own(step.user)} if step.user else {}
        )
        is_watch = step.method == "WATCH"
        if is_watch:
            query = {**query, "watch": "true", "timeoutSeconds": str(WATCH_SECONDS)}
        data = None if body is None else self._own(json.dumps(body))
        method, url = "GET" if is_watch else step.method, self._server + self._own(step.path)
        async with self._session.request(method, url, params=query, data=data, headers=headers) as response:
            text = (await response.text()).replace(self._namespace, NAMESPACE)
        if step.path.startswith((ROLES.path(NAMESPACE), ROLE_BINDINGS.path(NAMESPACE))) and response.status < 400:
            await self._authorized(json.loads(text))
        return response.status, list(map(json.loads, text.splitlines())) if is_watch else decoded(text)

    async def _authorized(self, written: Object) -> None:
        """Wait until the server decides by a Role and its RoleBinding, which its authorizer reads by a watch."""
        self._rules = written.get("rules", self._rules)
        if "subjects" in written:
            self._user = f"system:serviceaccount:{self._namespace}:{written['subjects'][0]['name']}"
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": self._namespace},
        }
        url = f"{self._server}/apis/{body['apiVersion']}/selfsubjectrulesreviews"

        async def is_known() -> bool:
            async with self._session.post(url, json=body, headers={"Impersonate-User": self._user}) as response:
                found = (await response.json())["status"]["resourceRules"]
            return all(rule in found for rule in self._rules)

        if self._user:
            await eventually(is_known)

    def _own(self, text: str) -> str:
        return text.replace(NAMESPACE, self._namespace)


def decoded(text: str) -> Any:
    """A body: JSON or another text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


async def run(steps: list[Step], server: Simulation | Real) -> list[tuple[int, Any]]:
    """The replies to all steps."""
    replies: list[tuple[int, Any]] = []
    for step in steps:
        seen = [body for _, body in replies]
        body = step.body(seen) if callable(step.body) else step.body
        query = step.query(seen) if callable(step.query) else step.query
        replies.append(await server.send(step, body, query))
    return replies


def masked(value: Any) -> Any:
    """A reply without values that differ between servers."""
    if isinstance(value, list):
        return [masked(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("Object", value)
        if "causes" in fields:  # those of several managers have no order
            fields = {**fields, "causes": sorted(fields["causes"], key=str)}
        if "managedFields" in fields:  # in the order of their times
            fields = {**fields, "managedFields": sorted(fields["managedFields"], key=_manager)}
        return {name: name.upper() if name in MASKED else masked(each) for name, each in fields.items()}
    if isinstance(value, str):
        for pattern in (UID, TIME, VERSION, ADDRESS, GENERATED, GO_VALUES):
            value = pattern.sub("MASKED", value)
    return value


def _manager(entry: Object) -> tuple[str, ...]:
    return entry["manager"], entry["operation"], entry.get("subresource", "")


@pytest.fixture(scope="module")
def real(plane: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane without controllers, which would write objects of their own."""
    with without_controllers(plane):
        yield plane


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_replies_are_those_of_a_real_server(real: ControlPlane, name: str) -> None:
    namespace = f"{NAMESPACE}-{list(SCRIPTS).index(name)}-{uuid.uuid4().hex[:4]}"
    real.create(NAMESPACES, {"metadata": {"name": namespace}})

    async def both() -> tuple[list[tuple[int, Any]], list[tuple[int, Any]]]:
        connection = real.connection
        async with connection.session() as session:
            expected = await run(SCRIPTS[name], Real(connection, session, namespace))
        return expected, await run(SCRIPTS[name], Simulation())

    expected, found = asyncio.run(both())
    for number, (step, one, other) in enumerate(zip(SCRIPTS[name], found, expected, strict=True)):
        problem = difference(list(masked(list(one))), list(masked(list(other))))
        assert not problem, f"step {number}: {step.method} {step.path} {step.content_type}: {problem}"
