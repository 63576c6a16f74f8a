"""What the status says of an update that cannot go on, and that the remedy in the message ends it, as written."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any, Final, NamedTuple

import pytest
from aiohttp import web

from faults.faulty import Exchange, Reject
from faults.rules import Rule
from memcached_operator.engine.reporting.conditions import reported_transitions
from memcached_operator.engine.reporting.reports import of_condition
from memcached_operator.kube.resource import PODS, Object
from memcached_operator.memcached.updates.confirmation import REPLACE_IT
from memcached_operator.memcached.updates.patches import CAPACITY_REMEDY, DENIED_ADDED, DENIED_REMEDY, UNDO_ADDED
from simulation.in_place.cache import (
    LIMITED,
    MINUTE,
    MORE,
    NAMESPACE,
    REPLACE,
    Cache,
    agent,
    is_foreign,
    mirrored,
    missing,
    run,
    spec,
)
from support.kubelet import DEFERRED, ERROR, INFEASIBLE

Remedy = Callable[[Cache], Awaitable[None]]


class Case(NamedTuple):
    """`nodes`: what is wrong with them. `change`: of the spec. `says`: parts of the message. `remedy`: as it says.

    `after`: seconds until the message is there, from the change.
    """

    nodes: dict[str, Any]
    change: Object
    says: tuple[str, ...]
    remedy: Remedy
    after: float = MINUTE


async def set_back(cache: Cache) -> None:
    """Set the previous values again."""
    await cache.write(spec())


async def request_less(cache: Cache) -> None:
    """Request less."""
    cache.correct(resizes="")  # it is the reason why the nodes refuse any change
    await cache.write(spec(resources={**LIMITED["resources"], "requests": {"cpu": "15m"}}))


async def restart(cache: Cache) -> None:
    """Set spec.rollout.restartedAt to the current time."""
    written = cache.live["spec"]
    await cache.write({**written, "rollout": {**written["rollout"], "restartedAt": "2030-01-01T12:00:00Z"}})


async def free(cache: Cache) -> None:
    """Free resources on the nodes: the user does nothing else."""
    cache.correct(resizes="")


async def provide(cache: Cache) -> None:
    """Correct the image."""
    cache.correct(lacks=missing())
    await cache.write({**cache.live["spec"], "image": "memcached:2", **agent("agent:1")})


async def set_previous_first(cache: Cache) -> None:
    """The registry works again: set the previous image, then the same one again."""
    cache.correct(lacks=missing())
    wanted = cache.live["spec"]
    await cache.write(spec(), 3 * MINUTE)
    await cache.write(wanted)


RUNTIME: Final = "its node cannot resize it: the runtime cannot update containers. It keeps its items"
CASES: dict[str, Case] = {
    "a runtime that cannot resize: set back": Case(
        {"resizes": ERROR}, MORE, (RUNTIME, "Set the previous values"), set_back
    ),
    "a runtime that cannot add a limit: set back": Case({"resizes": ERROR}, LIMITED, (RUNTIME, UNDO_ADDED), set_back),
    "a node without room, and a new limit: set back": Case(
        {"resizes": INFEASIBLE}, LIMITED, ("again, apart from added amounts, and",), set_back
    ),
    "a node without room, and a new limit: request less": Case(
        {"resizes": INFEASIBLE}, LIMITED, ("request less in the spec",), request_less
    ),
    "a runtime that cannot resize: replace": Case({"resizes": ERROR}, MORE, (RUNTIME, REPLACE), restart),
    "a node without room at present": Case(
        {"resizes": DEFERRED}, MORE, ("Node didn't have enough capacity", "which then resizes it"), free
    ),
    "a node that had no room: set back": Case({"resizes": INFEASIBLE}, MORE, ("request less in the spec",), set_back),
    "a node that had no room: the next try": Case(
        {"resizes": INFEASIBLE}, MORE, ("The next try is at 2030-01-01T",), free
    ),
    "a resize of which nothing is reported": Case(
        {"resizes": "never"},
        MORE,
        ("has not finished within 10 minutes", "Set the previous values again"),
        set_back,
        660,
    ),
    "a missing image: correct it": Case(
        {"lacks": missing("memcached:9")},
        {"image": "memcached:9"},
        (
            "the image memcached:9 of container memcached cannot be pulled: "
            'failed to pull and unpack image "memcached:9": not found',
            "Correct the image",
        ),
        provide,
    ),
    "an image that was missing for a while": Case(
        {"lacks": missing("memcached:2")},
        {"image": "memcached:2"},
        ("uses its previous image again", "To try the same image again, set the previous one first"),
        set_previous_first,
    ),
    "an agent's image that is missing, while amounts change": Case(
        {"lacks": missing("agent:9")},
        agent("agent:9") | MORE,
        ("the image agent:9 of container agent cannot be pulled", "Correct the image"),
        provide,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_remedy_ends_the_problem(name: str) -> None:
    case = CASES[name]

    async def scenario(cache: Cache) -> None:
        cache.check_complete()
        cache.correct(**case.nodes)
        await cache.write(spec(**case.change), case.after)
        assert cache.degraded["status"] == "True"
        message = cache.degraded["message"]
        assert [part for part in case.says if part not in message] == [], message
        await case.remedy(cache)
        await asyncio.sleep(30 * MINUTE)
        cache.check_complete()

    run(scenario)


def test_agent_that_never_ran_is_corrected_together_with_its_limit() -> None:
    """Its first image is missing: nothing reports its amounts, and the node resizes memcached."""

    async def scenario(cache: Cache) -> None:
        assert "agent:9 of container agent cannot be pulled" in cache.degraded["message"]
        await cache.write(spec(**agent("agent:1", "96Mi"), **MORE), 5 * MINUTE)
        cache.check_complete()

    run(scenario, spec(**agent("agent:9")), missing("agent:9"))


ALL: Final = {"cache-0", "cache-1"}
DENIED: Final[dict[str, tuple[Object, set[str], str, str, Remedy, set[str]]]] = {
    "previous values": (MORE, ALL, "exceeded quota", DENIED_REMEDY, set_back, set()),
    "corrected": (MORE, ALL, "exceeded quota", DENIED_REMEDY, free, set()),
    "added, corrected": (LIMITED, {"cache-0"}, "exceeded quota", DENIED_ADDED, free, set()),
    "added, previous values": (LIMITED, {"cache-0"}, "exceeded quota", DENIED_ADDED, set_back, {"cache-1"}),
    "a node that is too small, request less": (LIMITED, ALL, "CAPACITY", CAPACITY_REMEDY, request_less, set()),
    "a node that is too small, replaced": (LIMITED, ALL, "CAPACITY", REPLACE, restart, ALL),
}
"""The change, the pods whose resizes are rejected, why, a part of the message, the remedy, and the pods it replaces."""
MESSAGES: Final = {"CAPACITY": "cpu, node didn't have enough allocatable resources: requested: 20, allocatable: 10"}


@pytest.mark.parametrize("name", DENIED)
def test_rejected_resize_ends_with_its_remedy(name: str) -> None:
    """No pod is deleted before: a new one could be rejected, too."""
    change, denied, why, says, remedy, replaced = DENIED[name]
    reject = Reject(403, "Forbidden", message=MESSAGES.get(why, why))

    async def scenario(cache: Cache) -> None:
        async def fault(exchange: Exchange) -> web.StreamResponse:
            is_less = "15m" in str(cache.live["spec"]["resources"])
            return await (exchange.forward() if is_less else reject(exchange))

        rules = [
            each for pod in denied for each in cache.sandbox.proxy.inject(Rule("patch pods/resize", fault, name=pod))
        ]
        before = cache.uids()
        await cache.write(spec(**change), 5 * MINUTE)
        assert says in cache.degraded["message"]
        assert cache.uids() == before
        await remedy(cache)
        for each in rules if remedy is free else ():
            each.stop()
        await asyncio.sleep(10 * MINUTE)
        cache.check_complete()
        assert {pod for pod, uid in cache.uids().items() if uid != before[pod]} == replaced

    run(scenario)


def test_deletion_whose_replies_are_lost_is_tried_ever_less_often() -> None:
    """Before each attempt, the pod is read: it may be deleted."""

    async def scenario(cache: Cache) -> None:
        rules = cache.sandbox.proxy.inject(Rule("delete pods", Reject(504)))
        before = cache.uids()
        await cache.write(spec(containerPort=12000), 2 * MINUTE)
        assert "Pod cache-1 cannot be" in cache.degraded["message"]
        attempts = [each for each in cache.sandbox.proxy.requests.entries if each.call.verb == "delete"]
        assert 3 < len(attempts) < MOST_ATTEMPTS
        assert cache.uids() == before
        for each in rules:
            each.stop()
        await asyncio.sleep(10 * MINUTE)
        cache.check_complete()
        assert {*cache.uids().values()}.isdisjoint(before.values())

    run(scenario)


def test_update_that_a_node_does_not_make_ends_when_the_pod_is_deleted() -> None:
    async def scenario(cache: Cache) -> None:
        cache.nodes.reaction = 12 * MINUTE
        await cache.write(spec(image="memcached:2"), 11 * MINUTE)
        message = cache.degraded["message"]
        assert "this was not confirmed within 10 minutes" in message
        assert REPLACE_IT in message
        cache.correct(reaction=1.0)
        await cache.plane.client.request("DELETE", PODS.path(NAMESPACE, "cache-1"))
        await asyncio.sleep(20 * MINUTE)
        cache.check_complete()

    run(scenario)


MOST_ATTEMPTS: Final = 30
"""In two minutes, with a backoff that doubles from 0.5 s to 6 s, the most in the simulation."""
PULLED: Final = re.compile(
    r'the image (\S+) of container \w+ cannot be pulled: failed to pull and unpack image "([^"]+)": not found'
)


@pytest.mark.parametrize(
    ("container", "change"), [("memcached", {"image": "memcached:2"}), ("agent", agent("agent:2"))]
)
def test_event_and_status_name_one_image_and_the_remedy_that_helps(container: str, change: Object) -> None:
    """Admission replaces the image in new pods only, so that it cannot be pulled where it is changed in place."""

    async def scenario(cache: Cache) -> None:
        await cache.write(spec(**change), 15 * MINUTE)
        reports = [
            report
            for before, after in pairwise(cache.statuses)
            for report in map(of_condition, reported_transitions(before, after, rollout=False))
            if report.reason == "ImageUnavailable"
        ]
        assert len(reports) == 1, reports
        assert REPLACE in reports[0].message
        assert "admission replaced the image" in cache.degraded["message"], cache.degraded["message"]
        texts = [str(status.get("conditions")) for status in cache.statuses]
        assert [text for text in texts if "correct spec." in text or "operator knows" in text] == []
        assert {found for text in texts for found in PULLED.findall(text)} == {(f"{container}:2", f"{container}:2")}
        await restart(cache)
        await asyncio.sleep(30 * MINUTE)
        cache.check_complete()

    run(scenario, lacks=is_foreign, admit=mirrored)
