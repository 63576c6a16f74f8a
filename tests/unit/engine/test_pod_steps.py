"""The writes of updates of pods, and what the cluster can do with pods."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memcached_operator.engine.discovery import discover_resize
from memcached_operator.engine.kind import PodStep
from memcached_operator.engine.writes.pod_steps import INEFFECTIVE_PERIOD, RETRY_PERIOD, PodSteps
from memcached_operator.engine.writes.result import Result
from memcached_operator.kube.client import STRATEGIC_MERGE_PATCH, ApiClient, ApiError
from memcached_operator.kube.resource import PODS, Key, Object
from memcached_operator.world.snapshot import Resize
from memcached_operator.world.store import Store
from support.stores import whole_store
from unit.builders import pod_of

POD: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "cache-0", "namespace": "test", "uid": "u", "resourceVersion": "7"},
}
KEY = Key(PODS, "test", "cache-0")
PATCH: Object = {"metadata": {"labels": {"a": "b"}}}


@dataclass
class Api:
    """Answers writes with the pod in a new version, or with an error."""

    error: ApiError | None = None
    version: str = "8"
    loses: str = ""
    is_deleted: bool = False
    requests: list[Any] = field(default_factory=list[Any])

    async def delete(self, key: Key, uid: str, resource_version: str) -> Object:
        """Delete a pod, after some time."""
        return self._reply("delete", key, uid, resource_version)

    async def patch(self, key: Key, patch: Any, content_type: str, subresource: str) -> Object:
        """Patch a pod. A policy of the cluster removes what `loses` names."""
        reply = self._reply("patch", key, patch, content_type, subresource)
        given = patch.get("metadata", {})
        lost = self.loses.partition(" ")[2]
        kept = {
            part: {name: text for name, text in given.get(part, {}).items() if name != lost}
            for part in ("annotations", "labels")
        }
        return {**reply, "metadata": {**given, **kept, **reply["metadata"]}}

    async def list(self, _: Any, __: str, *, fields: str, limit: int) -> AsyncGenerator[Any]:
        """Read a pod. The controller may not get it."""
        found = self._reply("list", fields, limit)
        yield SimpleNamespace(items=[] if self.is_deleted else [found])

    def _reply(self, *request: Any) -> Object:
        self.requests.append(request)
        if self.error:
            raise self.error
        return {**POD, "metadata": {**POD["metadata"], "resourceVersion": self.version}}


def made(step: PodStep, error: ApiError | None = None, times: int = 1, version: str = "8") -> tuple[Api, Store, Result]:
    """Make a step. `version`: that of the pod afterwards."""
    api, cache, result = Api(error, version), whole_store(), Result()
    steps = PodSteps(cast("ApiClient", api), cache)

    async def run() -> None:
        for _ in range(times):
            await steps.make(step, result)

    asyncio.run(run())
    return api, cache, result


VERSION = {"uid": "u", "resourceVersion": "7"}
WRITES: dict[str, tuple[PodStep, tuple[Any, ...]]] = {
    "delete": (PodStep(pod_of(POD)), ("delete", KEY, "u", "7")),
    "patch": (
        PodStep(pod_of(POD), PATCH),
        ("patch", KEY, {"metadata": {"labels": {"a": "b"}, **VERSION}}, STRATEGIC_MERGE_PATCH, ""),
    ),
    "resize": (
        PodStep(pod_of(POD), {"spec": {}}, "resize"),
        ("patch", KEY, {"spec": {}, "metadata": VERSION}, STRATEGIC_MERGE_PATCH, "resize"),
    ),
}


@pytest.mark.parametrize(("step", "request_"), WRITES.values(), ids=WRITES.keys())
def test_step_writes_only_the_version_that_the_plan_has_seen(step: PodStep, request_: Any) -> None:
    api, cache, result = made(step)
    assert api.requests == [request_]
    entry = cache.entry(KEY)
    assert entry is not None
    assert entry.version == 8, "the next plan must know of this write"
    assert (result.requeue_after, result.problems) == (0, [])


@pytest.mark.parametrize("code", [404, 409])
def test_pod_that_has_changed_needs_another_plan(code: int) -> None:
    _, _, result = made(PodStep(pod_of(POD), PATCH), ApiError(code, "Conflict", "changed"))
    assert (result.errors, result.problems, result.requeue_after) == ([], [], RETRY_PERIOD)


ERRORS = {
    "transient": (ApiError(500, "InternalError", "no"), "RollingOut", "Pod cache-0 cannot be resized: no"),
    "permanent": (ApiError(422, "Invalid", "no"), "ApplyFailed", "Pod cache-0 cannot be resized: no. Use another"),
    "denied": (ApiError(403, "Forbidden", "no"), "ApplyFailed", "Pod cache-0 cannot be resized: no. Ask for less"),
    "denied for the node": (
        ApiError(403, "Forbidden", "no", causes=("NodeCapacity",)),
        "ApplyFailed",
        "Pod cache-0 cannot be resized: no. Request less",
    ),
    "denied for the node, without a cause": (
        ApiError(403, "Forbidden", "Node didn't have enough allocatable resources: cpu, requested: 2, allocatable: 1"),
        "ApplyFailed",
        "Pod cache-0 cannot be resized: Node didn't have enough allocatable resources: cpu, requested: 2, "
        "allocatable: 1. Request less",
    ),
    "of many lines": (
        ApiError(422, "Invalid", "a\nb" * 500),
        "ApplyFailed",
        'Pod cache-0 cannot be resized: "' + r"a\nb" * 75 + "…" + r"a\nb" * 25 + '". Use another',
    ),
    "with a sentence of a webhook": (
        ApiError(422, "Invalid", "no. Delete the namespace: kubectl delete namespace test"),
        "ApplyFailed",
        'Pod cache-0 cannot be resized: "no. Delete the namespace: kubectl delete namespace test". Use another',
    ),
}


@pytest.mark.parametrize(("error", "reason", "message"), ERRORS.values(), ids=ERRORS.keys())
def test_failed_step_is_reported(error: ApiError, reason: str, message: str) -> None:
    _, _, result = made(PodStep(pod_of(POD), PATCH, "resize", "Use another", "Ask for less", "Request less"), error)
    assert (result.errors, [(each.reason, each.message) for each in result.problems]) == ([error], [(reason, message)])


@pytest.mark.parametrize("code", [0, 504])
def test_pod_is_read_before_the_next_step_if_the_reply_to_the_last_one_was_lost(code: int) -> None:
    """It may have been made: a second slot would be disturbed before its event arrives."""
    other: Object = {**POD, "metadata": {**POD["metadata"], "name": "cache-1"}}

    async def run() -> None:
        api, cache = Api(ApiError(code, "Timeout", "lost")), whole_store()
        cache.put(PODS, POD)
        steps, result = PodSteps(cast("ApiClient", api), cache), Result()
        await steps.make(PodStep(pod_of(POD), PATCH), result)
        for error, version in ((api.error, 7), (None, 8)):
            api.error = error
            await steps.make(PodStep(pod_of(other)), result)
            assert api.requests.pop() == ("list", "metadata.name=cache-0", 1)
            entry = cache.entry(KEY)
            assert entry is not None
            assert entry.version == version
        assert (result.requeue_after, result.only_read) == (0, True)
        await steps.make(PodStep(pod_of(other)), result)
        assert api.requests.pop()[0] == "delete"

    asyncio.run(run())


def test_pod_is_forgotten_if_a_step_whose_reply_was_lost_has_deleted_it() -> None:
    async def run() -> None:
        api, cache = Api(ApiError(0, "Unreachable", "lost")), whole_store()
        cache.put(PODS, POD)
        steps, result = PodSteps(cast("ApiClient", api), cache), Result()
        await steps.make(PodStep(pod_of(POD)), result)
        api.error, api.is_deleted = None, True
        await steps.make(PodStep(pod_of(POD)), result)
        assert cache.entry(KEY) is None
        assert [request[0] for request in api.requests] == ["delete", "list"]

    asyncio.run(run())


def test_failed_step_is_not_repeated_at_once() -> None:
    api, _, result = made(PodStep(pod_of(POD), PATCH), ApiError(422, "Invalid", "no"), times=3)
    assert (len(api.requests), len(result.errors)) == (1, 3)


def test_step_without_effect_counts_as_denied() -> None:
    api, _, result = made(PodStep(pod_of(POD), PATCH, "resize", "Use another", "Ask for less"), times=3, version="7")
    message = "Pod cache-0 cannot be resized: a cluster policy changes the request. Ask for less"
    assert [(each.reason, each.message) for each in result.problems] == [("ApplyFailed", message)] * 3
    assert len(api.requests) == 1, "events must not repeat it"
    assert result.errors[0].retry_after == INEFFECTIVE_PERIOD


@pytest.mark.parametrize(
    ("loses", "changed"),
    [
        ("annotation a", ["cache-0", "cache-2"]),
        ("label c", ["cache-0", "cache-2"]),
        ("", ["cache-0", "cache-1", "cache-2"]),
    ],
)
def test_no_other_pod_is_changed_while_a_policy_removes_what_a_step_has_written(loses: str, changed: list[str]) -> None:
    """Without the record of an update, a pod that restarts counts as updated."""
    patch: Object = {"metadata": {"annotations": {"a": "b"}, "labels": {"c": "d"}}}
    other: Object = {**POD, "metadata": {**POD["metadata"], "name": "cache-1", "uid": "v"}}
    elsewhere: Object = {**POD, "metadata": {**POD["metadata"], "namespace": "another"}}
    third: Object = {**other, "metadata": {**other["metadata"], "name": "cache-2", "uid": "w"}}
    api, result, corrected = Api(loses=loses), Result(), Result()
    cache, now = whole_store(), [0.0]
    steps = PodSteps(cast("ApiClient", api), cache)
    steps.clock = lambda: now[0]

    async def run() -> None:
        for pod in (POD, other, elsewhere):
            await steps.make(PodStep(pod_of(pod), patch), result)
        now[0], api.loses = INEFFECTIVE_PERIOD, ""  # the policy is corrected
        await steps.make(PodStep(pod_of(third), patch), corrected)

    asyncio.run(run())
    assert [request[1].name for request in api.requests if request[1].namespace == "test"] == changed
    assert [request[1].name for request in api.requests if request[1].namespace != "test"] == ["cache-0"]
    assert corrected.problems == []
    cause = f"a cluster policy changes the request, and does not let its {loses} be changed: correct that policy"
    failed, waits = "Pod cache-0 cannot be updated", "Pod cache-1 cannot be updated before pod cache-0"
    expected = [f"{text}: {cause}" for text in (failed, waits, failed) if loses]
    assert [problem.message for problem in result.problems] == expected
    entry = cache.entry(KEY)
    assert entry is not None
    assert entry.version == 8, "the next plan must know of this write"


SERVED: dict[str, tuple[list[str], Object, Resize]] = {
    "without the subresource": (["pods", "pods/status"], {}, Resize.NONE),
    "1.33": (["pods", "pods/resize"], {"major": "1", "minor": "33"}, Resize.RAISE),
    "1.33 of a vendor": (["pods/resize"], {"major": "1", "minor": "33+"}, Resize.RAISE),
    "1.34": (["pods/resize"], {"major": "1", "minor": "34"}, Resize.ANY),
    "an odd version": (["pods/resize"], {"major": "1", "minor": "new"}, Resize.RAISE),
    "no version": (["pods/resize"], {}, Resize.RAISE),
}


@pytest.mark.parametrize(("names", "version", "expected"), SERVED.values(), ids=SERVED.keys())
def test_discovery(names: list[str], version: Object, expected: Resize) -> None:
    class Server:
        async def request(self, method: str, path: str) -> Object:
            assert method == "GET"
            return version if path == "/version" else {"resources": [{"name": name} for name in names]}

    assert asyncio.run(discover_resize(cast("ApiClient", Server()))) is expected
