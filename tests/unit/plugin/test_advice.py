"""What `status` says about pods, containers and conditions: the cause, and a command that can be pasted."""

from dataclasses import replace
from typing import Any

import pytest

from kubectl_memcached.model.advice import needs_attention, of_object, of_pods
from kubectl_memcached.model.conditions import REMEDIES, remedies
from kubectl_memcached.model.pods import Container, Endpoint, Pod, pods
from kubectl_memcached.model.shell import Shell
from kubectl_memcached.model.statistics.metrics import DAY, AgentMetrics
from kubectl_memcached.model.statistics.replies import parse_stats
from kubectl_memcached.model.statistics.rows import Reading, row
from unit.plugin.samples import Object, memcached, stats

SHELL = Shell("shop", ("--context=a b",))


def reading(number: int, changed: dict[str, Any], *containers: Container, **of_pod: Any) -> Reading:
    """The counters of a pod."""
    this_pod = Pod(
        f"sessions-{number}", "shop", f"node-{number}", Endpoint(11211), ready=True, containers=containers, **of_pod
    )
    return Reading(this_pod, parse_stats(stats(**changed)))


def advice(*readings: Reading, cr: dict[str, Any] | None = None, now: float = 0) -> list[str]:
    """The advice about these pods."""
    return of_pods(cr or memcached(), [row(each, now) for each in readings], readings, SHELL)


def killed(name: str) -> Container:
    """A container that was out of memory."""
    return Container(name, logged_before=True, restarts=2, last_exit="OOMKilled")


@pytest.mark.parametrize(
    ("first", "sentence"),
    [
        (reading(0, {"listen_disabled_num": 3}), "the connection limit was reached 3 times"),
        (
            reading(0, {}, killed("memcached")),
            "memcached was out of memory and restarted 2 times: raise spec.resources",
        ),
        (reading(0, {}, killed("agent")), "agent was out of memory and restarted 2 times: raise spec.agent.resources"),
        (reading(0, {}, killed("istio-proxy")), "istio-proxy was out of memory and restarted 2 times"),
        (reading(0, {"version": "1.6.18"}), "different versions of memcached, 1.6.18 and 1.6.45"),
        (reading(0, {"get_hits": 90000}), "a client uses an old list of servers"),
        (replace(reading(0, {}), settings={"verbosity": "2"}), "the log contains the keys of all commands"),
        (replace(reading(0, {}), metrics=AgentMetrics(expires=13.5 * DAY)), "the certificate expires in 13 days"),
        (reading(0, {}, unready="no gate"), "sessions-0: the pod is not ready: no gate"),
    ],
)
def test_advice(first: Reading, sentence: str) -> None:
    assert [sentence in advised for advised in advice(first, reading(1, {}))] == [True]


OPTIONS = "-n shop '--context=a b'`"


@pytest.mark.parametrize("number", [0, 1])
def test_missing_pods_are_advised(number: int) -> None:
    start = "1 of 2 pods exist." if number else "There are no pods."
    events = f"`kubectl get events --field-selector=reason=FailedCreate {OPTIONS}"
    assert advice(*[reading(0, {})] * number) == [
        f"{start} If this does not change within a minute, {events} shows the reason."
    ]
    assert advice(cr=memcached({"size": 0})) == []
    cr = memcached()
    del cr["status"]
    assert advice(cr=cr) == ["There are no pods."]


def test_advice_about_the_object() -> None:
    cr = memcached({"rollout": {"paused": True}})
    (sentence,) = of_object(cr, SHELL)
    assert sentence == f"The rollout is paused: `kubectl memcached resume sessions {OPTIONS} continues it."


def status(waiting: str = "", exited: int | None = None, before: int | None = None, name: str = "memcached") -> Object:
    """The status of a container. It runs, waits for a reason, or has exited with a code."""
    running: Object = {"running": {}}
    state = {"waiting": {"reason": waiting}} if waiting else running
    if exited is not None:
        state = {"terminated": {"reason": "Error", "exitCode": exited}}
    last = {} if before is None else {"terminated": {"reason": "OOMKilled", "exitCode": before}}
    return {"name": name, "state": state, "lastState": last, "restartCount": 0 if before is None else 3}


def observed(
    *statuses: Object, init: Object | None = None, native: bool = False, phase: str = "Running", **more: Any
) -> list[str]:
    """The advice about a pod whose containers have these statuses, at 100 s."""
    policy = {"restartPolicy": "Always"} if native else {}
    spec = {
        "containers": [{"name": each["name"]} for each in statuses],
        "initContainers": [{"name": init["name"], **policy}] if init else [],
    }
    found = {"containerStatuses": [*statuses], "initContainerStatuses": [init] if init else [], "phase": phase, **more}
    (pod_now,) = pods([{"metadata": {"name": "sessions-0"}, "spec": spec, "status": found}])
    return advice(Reading(pod_now, problem=pod_now.problem), cr=memcached({"size": 1}), now=100)


def log(container: str, *, previous: bool = True) -> str:
    """The command that shows a log."""
    return f"see `kubectl logs sessions-0 -c {container} {'--previous ' if previous else ''}{OPTIONS}"


NEW, OLD = "1970-01-01T00:01:30Z", "1970-01-01T00:00:30Z"
AGENT_WAITS = status("ContainerCreating", name="agent")
IMAGE = "ImagePullBackOff"
OBSERVED: dict[str, tuple[list[str], list[str]]] = {
    "runs": (observed(status(), status(name="agent")), []),
    "is new": (
        observed(status("ContainerCreating"), AGENT_WAITS, startTime=NEW, phase="Pending"),
        ["memcached has not started: ContainerCreating"],
    ),
    "has not started for a minute": (
        observed(status("ContainerCreating"), AGENT_WAITS, startTime=OLD, phase="Pending"),
        [f"memcached has not started: ContainerCreating: see `kubectl describe pod sessions-0 {OPTIONS}"],
    ),
    "image of memcached": (
        observed(status(IMAGE), status(name="agent"), phase="Pending"),
        [f"memcached has not started: {IMAGE}"],
    ),
    "image of the agent": (
        observed(status(), status(IMAGE, name="agent"), phase="Pending"),
        [f"the pod is Pending: container agent has not started: {IMAGE}"],
    ),
    "memcached crashes": (
        observed(status("CrashLoopBackOff", before=64), status(name="agent")),
        [
            "memcached does not run: CrashLoopBackOff; it last exited with OOMKilled, exit code 64: "
            + log("memcached"),
            "memcached was out of memory and restarted 3 times: raise spec.resources.limits.memory",
        ],
    ),
    "memcached has exited": (
        observed(status(exited=1)),
        ["memcached does not run: Error, exit code 1: " + log("memcached", previous=False)],
    ),
    "agent crashes": (
        observed(status(), status("CrashLoopBackOff", before=137, name="agent")),
        [
            "container agent does not run: CrashLoopBackOff; it last exited with OOMKilled, exit code 137: "
            + log("agent"),
            "agent was out of memory and restarted 3 times: raise spec.agent.resources.limits.memory",
        ],
    ),
    "init container crashes": (
        observed(status("PodInitializing"), init=status(exited=2, name="wait"), startTime=NEW, phase="Pending"),
        ["the pod is Pending: container wait does not run: Error, exit code 2: " + log("wait", previous=False)],
    ),
    "init container is complete": (observed(status(), init=status(exited=0, name="wait")), []),
    "native sidecar has exited": (
        observed(status(), init=status(exited=0, name="proxy"), native=True),
        ["container proxy does not run: Error, exit code 0: " + log("proxy", previous=False)],
    ),
}


@pytest.mark.parametrize(("found", "sentences"), OBSERVED.values(), ids=OBSERVED)
def test_container_that_does_not_run_is_named_and_has_a_complete_command(
    found: list[str], sentences: list[str]
) -> None:
    assert found == [f"sessions-0: {sentence}" for sentence in sentences]


UNSCHEDULED = {
    "1 node(s) were unschedulable": ". Uncordon a node, or add one",
    "2 Insufficient cpu, 1 Insufficient memory": (
        ". Lower spec.resources.requests.cpu, or add a node; or lower spec.cache.memory or "
        "spec.resources.requests.memory, or add a node"
    ),
    "1 node(s) had untolerated taint(s)": (
        ". Repair or uncordon the node if the taint begins with node.kubernetes.io, otherwise add "
        "spec.podTemplate.spec.tolerations, or remove the taint"
    ),
    "waiting": "",
}


@pytest.mark.parametrize("message", UNSCHEDULED)
def test_pod_without_a_node_has_a_remedy(message: str) -> None:
    unscheduled = {"type": "PodScheduled", "status": "False", "message": message}
    (sentence,) = observed(phase="Pending", conditions=[unscheduled])
    assert sentence == f"sessions-0: the pod has no node: {message}{UNSCHEDULED[message]}"


def test_healthy_agent_is_not_blamed_for_a_pod_that_cannot_be_reached() -> None:
    agent = Container("agent")
    found = reading(0, {}, Container("memcached"), agent)
    found = replace(found, pod=replace(found.pod, endpoint=Endpoint(11211, metrics_port=9150)))
    silent = replace(found, problem="You may not forward", agent_problem="not read")
    assert advice(silent, reading(1, {})) == ["sessions-0: You may not forward"]
    alone = replace(found, agent_problem="the agent does not reply")
    assert advice(alone, reading(1, {})) == [f"sessions-0: the agent does not reply: {log('agent', previous=False)}"]


@pytest.mark.parametrize(
    ("number", "names"),
    [(2, "sessions-0, sessions-1"), (4, "all 4 pods"), (5, "sessions-0, sessions-1, sessions-2 and 1 more pods")],
)
def test_sentence_about_several_pods_is_printed_once(number: int, names: str) -> None:
    readings = [replace(reading(each, {}), problem="no reply") for each in range(min(number, 4))]
    others = [reading(each, {}) for each in range(4, number)]
    assert advice(*readings, *others) == [f"{names}: no reply"]


ROLLING = {"Available": "False", "Progressing": "True", "Degraded": "False", "Ready": "False"}
REASONS = {"Available": "MinimumReplicasUnavailable", "Progressing": "RollingOut", "Ready": "RollingOut"}
DEADLINE = {**REASONS, "Degraded": "ProgressDeadlineExceeded", "Progressing": "Stalled"}


@pytest.mark.parametrize(
    ("degraded", "reasons", "useless", "expected"),
    [
        (
            False,
            REASONS,
            False,
            {"Available": "See the message.", "Progressing": REMEDIES["Progressing", "RollingOut"]},
        ),
        (False, REASONS, True, {"Available": "See Advice.", "Progressing": "See Advice."}),
        (
            True,
            {**REASONS, "Degraded": "ImageUnavailable"},
            True,
            {
                "Available": REMEDIES["Available", "MinimumReplicasUnavailable"],
                "Progressing": "See the Degraded condition.",
            },
        ),
        (
            True,
            DEADLINE,
            True,
            {
                "Available": REMEDIES["Available", "MinimumReplicasUnavailable"],
                "Progressing": "See the Degraded condition.",
                "Degraded": "See Advice.",
            },
        ),
    ],
)
def test_waiting_is_no_remedy_if_it_does_not_help(
    degraded: bool, reasons: dict[str, str], useless: bool, expected: dict[str, str]
) -> None:
    cr = memcached(None, {**ROLLING, "Degraded": str(degraded)}, **reasons)
    assert remedies(cr, SHELL, waiting_is_useless=useless) == expected


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([reading(0, {}), reading(1, {})], False),
        ([reading(0, {})], True),
        ([reading(0, {}), reading(1, {}, problem="the pod has no node")], True),
        ([reading(0, {}), reading(1, {}, Container("memcached", "x", starting=True), problem="x", since=NEW)], False),
        ([reading(0, {}), reading(1, {}, Container("memcached", "x", starting=True), problem="x", since=OLD)], True),
        ([reading(0, {}), reading(1, {}, Container("memcached", "x"), problem="x", since=NEW)], True),
    ],
)
def test_pods_that_need_attention(readings: list[Reading], expected: bool) -> None:
    assert needs_attention(memcached(), [row(each, 100) for each in readings]) is expected
