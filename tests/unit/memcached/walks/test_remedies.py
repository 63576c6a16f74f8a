"""What the status says of an update that cannot go on, and that the remedy in the message ends it, as written."""

import random
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pytest

from memcached_operator.kube.resource import Object
from memcached_operator.memcached.updates.patches import UNDO_ADDED
from memcached_operator.world.snapshot import Resize
from unit.memcached.walks.cluster import CR, Cluster
from unit.memcached.walks.invariants import Checks
from unit.memcached.walks.test_walks import first_spec

MINUTE: Final = 60.0


class Case(NamedTuple):
    """`nodes`: what is wrong with them. `change`: of the spec. `says`: parts of the message. `remedy`: as it says.

    `after`: seconds until the message is there, from the change.
    """

    nodes: dict[str, Any]
    change: Object
    says: tuple[str, ...]
    remedy: Callable[[Cluster], None]
    after: float = MINUTE


def spec(**changes: Any) -> Object:
    """A spec with warm restarts and two slots."""
    return {**first_spec(random.Random(0)), "size": 2, "cache": CACHE, **changes}  # noqa: S311 - no secret


CACHE: Final = {"memory": "64Mi", "warmRestart": True, "maxConnections": 1024}
MORE: Final = {"resources": {"requests": {"cpu": "20m"}}}
LIMITED: Final = {"resources": {"requests": {"cpu": "20m"}, "limits": {"cpu": "1"}}}
NEW_AGENT: Final = {"agent": {"image": "agent:9", "resources": {"limits": {"memory": "48Mi"}}}}
REPLACE: Final = "To replace the pods and lose their items, set spec.rollout.restartedAt to the current time"


def started(kind: type[Cluster] = Cluster, written: Object | None = None, **nodes: Any) -> tuple[Any, Checks]:
    """A cluster with a cache for 2 minutes, and its checks. `nodes`: what is wrong with them from the beginning."""
    checks = Checks()
    cluster = kind(random.Random(0), written or spec(), Resize.ANY, checks.step)  # noqa: S311 - no secret
    checks.cluster = cluster
    for name, value in nodes.items():
        setattr(cluster.nodes, name, value)
    cluster.run(2 * MINUTE)
    return cluster, checks


def set_back(cluster: Cluster) -> None:
    """Set the previous values again."""
    cluster.change_spec(spec())


def request_less(cluster: Cluster) -> None:
    """Request less."""
    cluster.nodes.room = ""  # it is the reason why the nodes refuse any change
    cluster.change_spec(spec(resources={**LIMITED["resources"], "requests": {"cpu": "15m"}}))


def restart(cluster: Cluster) -> None:
    """Set spec.rollout.restartedAt to the current time."""
    written = cluster.objects[CR]["spec"]
    cluster.change_spec({**written, "rollout": {**written["rollout"], "restartedAt": "2030-01-01T12:00:00Z"}})


def free(cluster: Cluster) -> None:
    """Free resources on the nodes: the user does nothing else."""
    cluster.nodes.room = ""


def provide(cluster: Cluster) -> None:
    """Correct the image."""
    cluster.nodes.missing.clear()
    cluster.change_spec({**cluster.objects[CR]["spec"], "image": "memcached:2", "agent": spec()["agent"]})


def set_previous_first(cluster: Cluster) -> None:
    """The registry works again: set the previous image, then the same one again."""
    cluster.nodes.missing.clear()
    wanted = cluster.objects[CR]["spec"]
    cluster.change_spec(spec())
    cluster.run(3 * MINUTE)
    cluster.change_spec(wanted)


RUNTIME: Final = "its node cannot resize it: the runtime cannot update containers. It keeps its items"
CASES: dict[str, Case] = {
    "a runtime that cannot resize: set back": Case(
        {"room": "Error"}, MORE, (RUNTIME, "Set the previous values"), set_back
    ),
    "a runtime that cannot add a limit: set back": Case({"room": "Error"}, LIMITED, (RUNTIME, UNDO_ADDED), set_back),
    "a node without room, and a new limit: set back": Case(
        {"room": "Infeasible"}, LIMITED, ("again, apart from added amounts, and",), set_back
    ),
    "a node without room, and a new limit: request less": Case(
        {"room": "Infeasible"}, LIMITED, ("request less in the spec",), request_less
    ),
    "a runtime that cannot resize: replace": Case({"room": "Error"}, MORE, (RUNTIME, REPLACE), restart),
    "a node without room at present": Case(
        {"room": "Deferred"}, MORE, ("Node didn't have enough capacity", "which then resizes it"), free
    ),
    "a node that had no room: set back": Case({"room": "Infeasible"}, MORE, ("request less in the spec",), set_back),
    "a node that had no room: the next try": Case(
        {"room": "Infeasible"}, MORE, ("The next try is at 2030-01-01T",), free
    ),
    "a resize of which nothing is reported": Case(
        {"room": "never"}, MORE, ("has not finished within 10 minutes", "Set the previous values again"), set_back, 660
    ),
    "a missing image: correct it": Case(
        {"missing": {"memcached:9"}},
        {"image": "memcached:9"},
        (
            "the image memcached:9 of container memcached cannot be pulled: "
            'failed to pull and unpack image "memcached:9": not found',
            "Correct the image",
        ),
        provide,
    ),
    "an image that was missing for a while": Case(
        {"missing": {"memcached:2"}},
        {"image": "memcached:2"},
        ("uses its previous image again", "To try the same image again, set the previous one first"),
        set_previous_first,
    ),
    "an image that admission replaces in new pods only": Case(
        {"mirror": True},
        {"image": "memcached:2"},
        ("admission replaced the image memcached:1 with mirror/memcached:1", REPLACE),
        restart,
    ),
    "an agent's image that is missing, while amounts change": Case(
        {"missing": {"agent:9"}},
        NEW_AGENT | MORE,
        ("the image agent:9 of container agent cannot be pulled", "Correct the image"),
        provide,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_remedy_ends_the_problem(case: Case) -> None:
    cluster, checks = started(mirror="mirror" in case.nodes)
    assert cluster.plan.update.complete
    for name, value in case.nodes.items():
        setattr(cluster.nodes, name, value)
    cluster.change_spec(spec(**case.change))
    cluster.run(case.after)
    degraded = cluster.status()["Degraded"]
    assert degraded["status"] == "True"
    assert [part for part in case.says if part not in degraded["message"]] == [], degraded["message"]
    case.remedy(cluster)
    cluster.run(30 * MINUTE)
    checks.end(complete=True)
    assert cluster.status()["Degraded"]["message"] == "All components are healthy"


def test_agent_that_never_ran_is_corrected_together_with_its_limit() -> None:
    """Its first image is missing: nothing reports its amounts, and the node resizes memcached."""
    cluster, checks = started(written=spec(**NEW_AGENT), missing={"agent:9"})
    assert "agent:9 of container agent cannot be pulled" in cluster.status()["Degraded"]["message"]
    agent = {"image": "agent:1", "resources": {"limits": {"memory": "96Mi"}}}
    cluster.change_spec(spec(agent=agent, **MORE))
    cluster.run(5 * MINUTE)
    checks.end(complete=True)
