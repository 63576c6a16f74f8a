"""What other clients did to the workload of a Memcached without changing a field that the controller sets."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from memcached_api.remedies import Action, Direction, Remedy, text_of
from memcached_api.shared.rules.placing import RESTARTED_AT
from memcached_operator.findings.finding import Intervention
from memcached_operator.kube import texts
from memcached_operator.kube.resource import DEPLOYMENTS, STATEFULSETS, Object, nested_map
from memcached_operator.kube.times import past_time, time_of
from memcached_operator.memcached.losses import loss_with
from memcached_operator.memcached.spec import checked
from memcached_operator.world.kept_fields import VPA_IN_PLACE, VPA_UPDATES
from memcached_operator.world.pod import Pod
from memcached_operator.world.snapshot import Snapshot

RESTARTED: Final = "RestartedByKubectl"
VPA: Final = "ChangedByVerticalPodAutoscaler"
"""The reasons of the Events."""

RECOMMENDED: Final[Remedy] = (Action("set spec.resources to what it recommends", ("spec.resources",), Direction.ADDED),)
"""It may set amounts that are not set."""

REPORT_PERIOD: Final = timedelta(hours=1)
"""Time for which an intervention is reported. The annotations that show it stay for longer."""

MAX_SKEW: Final = timedelta(minutes=5)
"""The maximum by which the clock of a user's machine, from which the annotation is, can be fast."""


def interventions(snapshot: Snapshot, now: datetime) -> tuple[tuple[Intervention, ...], float | None]:
    """The interventions of the last hour, and the seconds until the report of the first of them ends, or None."""
    found = [*_restarts(snapshot, now), *_vertical_autoscaling(snapshot, now)]
    ends = [(at - now + REPORT_PERIOD).total_seconds() for _, at in found]
    return tuple(intervention for intervention, _ in found), min(ends, default=None)


def restart(cr: Object) -> str:
    """How to replace the pods of a Memcached, and what that costs."""
    name, namespace = cr["metadata"]["name"], cr["metadata"]["namespace"]
    return (
        f"To replace the pods, whose items are lost, run kubectl memcached restart {name} -n {namespace}, or set "
        "spec.rollout.restartedAt to the current time"
    )


def _restarts(snapshot: Snapshot, now: datetime) -> Iterator[tuple[Intervention, datetime]]:
    """`kubectl rollout restart` of the workload, whose annotation of the pod template the spec does not contain."""
    if nested_map(snapshot.cr, "spec", "rollout").get("restartedAt"):
        return  # the annotation is that of the spec, or will be reverted
    for resource in (DEPLOYMENTS, STATEFULSETS):
        child = snapshot.child(resource)
        text = nested_map(child or {}, "spec", "template", "metadata", "annotations").get(RESTARTED_AT)
        at = past_time(text, now + MAX_SKEW)
        if at is None or now - at >= REPORT_PERIOD:
            continue
        name = f"{resource.kind} {snapshot.cr['metadata']['name']}"
        effect = "replaced its pods, and their items are lost"
        if resource == STATEFULSETS:
            effect = "had no effect, because the controller updates the pods itself"
        what = f"kubectl rollout restart of {name} at {texts.name(str(text))} {effect}"
        yield Intervention(RESTARTED, f"{what}. {restart(snapshot.cr)}"), at


def _vertical_autoscaling(snapshot: Snapshot, now: datetime) -> Iterator[tuple[Intervention, datetime]]:
    """The last pod that a VerticalPodAutoscaler created with other resources, or resized."""
    pods = [(at, pod) for pod in snapshot.pods if (at := _changed_by_vpa(pod)) and now - at < REPORT_PERIOD]
    if not pods:
        return
    at, pod = max(pods, key=lambda each: each[0])
    updates = pod.metadata.annotations.get(VPA_UPDATES, "")
    name = updates.partition(" updated by ")[2].partition(":")[0]
    vpa = f"VerticalPodAutoscaler {texts.name(name)}" if name else "A VerticalPodAutoscaler"
    what = f"{vpa} changes the resources of the pods. Depending on its mode, it also evicts pods, whose items are lost"
    remedy = f"{text_of(RECOMMENDED)}{loss_with(checked(snapshot.cr)[0])(RECOMMENDED)}"
    yield Intervention(VPA, f"{what}. Set its spec.updatePolicy.updateMode to Off, and {remedy}"), at


def _changed_by_vpa(pod: Pod) -> datetime | None:
    """The time at which a pod was created that a VerticalPodAutoscaler has changed; None for another pod."""
    changed = pod.metadata.annotations.keys() & {VPA_UPDATES, VPA_IN_PLACE}
    return time_of(pod.metadata.creation_timestamp) if changed else None
