"""Texts of others in each message that is not about a pod: quoted, short and on one line."""

import asyncio
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Final, cast

import msgspec
import pytest

from memcached_api.shared.rules.placing import RESTARTED_AT
from memcached_operator.engine.kind import PodStep
from memcached_operator.engine.reconciler import Reconciler
from memcached_operator.engine.reporting.conditions import Condition, with_transition_times
from memcached_operator.engine.reporting.lists import failure
from memcached_operator.engine.reporting.posted_events import event_of
from memcached_operator.engine.reporting.reports import Report, of_rollout
from memcached_operator.engine.runtime.queue import Queue
from memcached_operator.engine.writes.ownership import decide
from memcached_operator.engine.writes.pod_steps import PodSteps
from memcached_operator.engine.writes.result import Result
from memcached_operator.findings import creation
from memcached_operator.findings.interventions import Change, reverted
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.field_managers import Manager
from memcached_operator.kube.resource import (
    DEPLOYMENTS,
    SERVICES,
    STATEFULSETS,
    Key,
    Object,
    key_of,
)
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcached.interventions import interventions
from memcached_operator.memcached.updates.record import UpdateRecord
from memcached_operator.memcachedproxy.references import notices, reads
from memcached_operator.parts.other_budgets import OtherBudget, budget_notices, rollout_notices
from memcached_operator.world.kept_fields import VPA_UPDATES
from memcached_operator.world.knowledge import UNLISTED
from memcached_process.logs import JsonFormatter, TextFormatter
from unit.builders import LABELS, NOW, memcached, owned, pod_of, slots, snapshot_of
from unit.engine.test_gather import KIND
from unit.engine.test_pod_steps import PATCH, POD, Api, whole_store
from unit.findings.test_creation import statefulset
from unit.findings.test_foreign_values import TEXTS, check
from unit.memcached.updates.test_states import HIGHER, OTHER
from unit.memcached.updates.test_steps import BEFORE, FAILED, RAISED
from unit.memcached.updates.test_steps import changed as template_with
from unit.memcached.updates.updating import (
    ARGS,
    ARGUMENTS,
    NEW,
    created,
    decided,
    recorded,
    with_condition,
    with_limit,
    with_status,
)

CHILD: Final = Key(DEPLOYMENTS, "test", "cache")


def owned_by(kind: str, name: str) -> str:
    """The conflict with a Service of another owner."""
    owner = {"apiVersion": "v1", "kind": kind, "name": name, "uid": "x", "controller": True}
    desired: Object = {"metadata": {"name": "cache", "labels": LABELS, "annotations": {}}}
    return decide(memcached(), desired, owned(resource=SERVICES, ownerReferences=[owner])).message


def rejected(text: str) -> str:
    """The problem of an error of the API server."""
    result = Result(tolerant=False)
    with result.record_errors(CHILD):
        raise ApiError(422, "Invalid", text)
    return result.problems[0].message


def changed(manager: Manager | None, *path: str) -> str:
    """The report of a change by another client."""
    return reverted(memcached(), CHILD, Change(manager, (("spec", *path),))).message


def resized(name: str) -> str:
    """The report of a VerticalPodAutoscaler."""
    updates = f"Pod resources updated by {name}: container 0"
    meta = {"name": "cache-0", "creationTimestamp": "2030-01-01T11:59:00Z", "annotations": {VPA_UPDATES: updates}}
    return interventions(snapshot_of(memcached(), pods=({"metadata": meta},)), NOW)[0][0].message


def taken(kind: str, name: str) -> str:
    """The conflict with a pod of another owner."""
    meta: Object = {"name": "cache-0", "namespace": "test", "labels": {}}
    pod: Object = {"metadata": meta, "owner": {"kind": kind, "name": name}, "released": False}
    live = statefulset()
    return creation.problems(snapshot_of(memcached(), {key_of(STATEFULSETS, live): live}, taken=(pod,)))[0].message


def rolled(name: str, image: str) -> str:
    """The report of a new pod template."""
    containers = [{"name": name, "image": image}]
    before, after = ({"spec": {"template": {"spec": {"containers": each}}}} for each in ([], containers))
    with_image = {"spec": {"template": {"spec": {"containers": [{"name": name, "image": "a"}]}}}}
    reports = [of_rollout(CHILD, each, after) for each in (before, with_image)]
    return "; ".join(report.message for report in reports if report)


def unknown(image: str) -> str:
    """The notice about the image of the Memcached behind proxies."""
    return next(notices("cache", reads(slots(1, spec={"image": image})), LABELS))


def denied(text: str) -> str:
    """The problem of a step of a pod that a webhook denies."""
    return asyncio.run(_denied(text))


async def _denied(text: str) -> str:
    api, result = Api(ApiError(403, "Forbidden", text)), Result()
    await PodSteps(cast("ApiClient", api), whole_store()).make(PodStep(pod_of(POD), PATCH), result)
    return result.problems[0].message


def users_unlisted(text: str) -> str:
    """The problem of the list of the pods that may use removed slots."""
    client, key = cast("ApiClient", SimpleNamespace(list=None, get=None)), Key(MEMCACHEDS, "test", "cache")
    reconciler = Reconciler(client, whole_store(), Queue[Key]("test"), [KIND])
    result: Result = vars(Reconciler)["_users_unlisted"](reconciler, key, ApiError(403, "Forbidden", text))
    return result.problems[0].message


def unlisted(text: str) -> str:
    """The cause of a list that failed."""
    return failure(SERVICES, "test", UNLISTED.failed(403, text))


def not_resized(text: str) -> str:
    """The problem of a node that cannot resize a pod now."""
    pod = with_limit(created(0, BEFORE, record=RAISED), "256Mi")
    return problem_of(with_condition(pod, "PodResizePending", reason="Deferred", message=text), HIGHER)


def not_started(text: str) -> str:
    """The problem of an agent that has not started, which must restart memcached."""
    target = template_with(annotations={ARGS: "-c 2"})
    record = UpdateRecord(NEW, "2030-01-01T11:50:00Z", {"memcached": ARGUMENTS})
    state = {"waiting": {"reason": "ContainerCreating", "message": text}}
    return problem_of(with_status(created(0, target, NEW, record), "agent", containerID="", state=state), target)


def restored(text: str) -> str:
    """The problem of an image, with the message of the record that the pod has then."""
    target = template_with(image="memcached:2")
    waiting = {"waiting": {"reason": "ErrImagePull", "message": f'"memcached:2" {text}'}}
    step = decided(target, with_status(created(0, target, NEW, FAILED, ready=None), state=waiting, ready=False)).step
    record = msgspec.json.decode(recorded(step and step.patch) or "", type=UpdateRecord)
    return problem_of(created(0, BEFORE, record=record), target)


def mirrored(image: str) -> str:
    """The remedy for the image of a pod that admission has replaced."""
    pod = created(0, BEFORE, record=UpdateRecord(NEW, failed="no image"))
    first, *others = pod["spec"]["containers"]
    return problem_of({**pod, "spec": {"containers": [{**first, "image": image}, *others]}}, template_with(image="a"))


def budgets(name: str) -> str:
    """The notices about another owner's PodDisruptionBudget."""
    other = OtherBudget(name)
    return " ".join((*budget_notices(other), *rollout_notices(other)))


def problem_of(pod: Object, target: Object) -> str:
    """The problem of the update of a pod."""
    return decided(target, pod).problems[0].message


MESSAGES: Final[dict[str, Callable[[str], str]]] = {
    "kind of an owner": lambda text: owned_by(text, "a"),
    "name of an owner": lambda text: owned_by("Deployment", text),
    "error of the API server": rejected,
    "field manager": lambda text: changed(Manager(text), "replicas"),
    "subresource": lambda text: changed(Manager("a", text), "replicas"),
    "field": lambda text: changed(None, text),
    "VerticalPodAutoscaler": resized,
    "PodDisruptionBudget": budgets,
    "kind of the owner of a pod": lambda text: taken(text, "a"),
    "name of the owner of a pod": lambda text: taken("ReplicaSet", text),
    "container": lambda text: rolled(text, "a"),
    "new image": lambda text: rolled("a", text),
    "image of another object": unknown,
    "error of a step of a pod": denied,
    "error of a list": unlisted,
    "error of a list of pods": users_unlisted,
    "condition of a resize": not_resized,
    "container that waits": not_started,
    "image that is not available": restored,
    "image of admission": mirrored,
    "record of an update": lambda text: problem_of(created(0, BEFORE, record=UpdateRecord(NEW, failed=text)), OTHER),
}


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES.keys())
def test_text_of_another_client_is_quoted(message: Callable[[str], str]) -> None:
    for text in TEXTS:
        found = message(text)
        assert "zzz" in found
        check(found)


@pytest.mark.parametrize("message", [unlisted, restored, denied])
def test_sentence_is_quoted_once(message: Callable[[str], str]) -> None:
    assert "\\\\" not in message('no "zzz". Delete it')


def logged(formatter: logging.Formatter, text: str) -> str:
    """The line of the log with a text."""
    return formatter.format(logging.LogRecord("operator", logging.WARNING, "", 1, "failed: %s", (text,), None))


def in_condition(text: str) -> str:
    """The message of a condition with a text."""
    condition: Condition = {"type": "Ready", "status": "True", "reason": "Reason", "message": text}
    return with_transition_times((), [condition], NOW)[0]["message"]


LINES: Final[dict[str, Callable[[str], str]]] = {
    "condition": in_condition,
    "Event": lambda text: event_of(memcached(), Report("Failed", text), NOW)["message"],
    "line of the log": lambda text: logged(TextFormatter("%(name)s %(message)s"), text),
    "line of the log as JSON": lambda text: logged(JsonFormatter(), text),
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES.keys())
def test_whole_message_is_on_one_line(line: Callable[[str], str]) -> None:
    """Also if a text were not quoted."""
    for text in TEXTS:
        found = line(text)
        assert "zzz" in found
        assert found.isprintable()
        assert len(found) < 9000


def test_time_of_a_restart_is_a_word() -> None:
    template = {"metadata": {"annotations": {RESTARTED_AT: "2030-01-01\n11:59:00Z"}}}
    child = {**owned(resource=DEPLOYMENTS), "spec": {"template": template}}
    found = interventions(snapshot_of(memcached(), {CHILD: child}), NOW)[0]
    assert '"2030-01-01\\n11:59:00Z"' in found[0].message
