"""The rollout of slots: their StatefulSet has the strategy OnDelete, because the operator updates the pods itself.

`kubectl rollout status` does not support that.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from memcached_api.annotations import PAUSED_ANNOTATION
from memcached_operator.engine.kind import PodUpdate
from memcached_operator.findings.rollout import Rollout, counted
from memcached_operator.kube.resource import STATEFULSETS, Object, nested_list, nested_map
from memcached_operator.memcached import warm_up
from memcached_operator.memcached.slots.pause import OUTDATED
from memcached_operator.parts import agent
from memcached_operator.parts.workloads.statefulset import with_progress
from memcached_operator.world.pod import Pod
from memcached_operator.world.snapshot import Snapshot

MAX_NAMES = 3
"""Maximum names of pods in a message."""


def rollout(snapshot: Snapshot, update: PodUpdate | None, now: datetime) -> Rollout:
    """The rollout, from the counts of the StatefulSet controller, the times in its pods, and the update of the pods."""
    live = snapshot.child(STATEFULSETS)
    counts = counted(STATEFULSETS.kind, live)
    if live is None:
        return counts
    template = nested_map(live, "spec", "template")
    counts = _with_serving(_with_pause(counts, live, snapshot.cr), template, snapshot.pods)
    seconds = warm_up.timeout_of(template)
    warming = [] if seconds is None else _warming(template, snapshot.pods)
    others = update.doing.items() if update else ()
    doing = [f"{name} {text}" for name, text in others if name not in warming]
    return with_progress(
        replace(counts, doing=(*_sentences(warming, seconds or 0), *doing)),
        live,
        snapshot,
        now,
        updated=update is None or update.complete,
        extra=seconds or 0,
    )


def _with_pause(counts: Rollout, live: Object, cr: Object) -> Rollout:
    """The counts during a pause: pods with an older template than the spec's are not updated."""
    if nested_map(cr, "spec", "rollout").get("paused") is not True:
        return counts
    outdated = nested_map(live, "metadata", "annotations").get(PAUSED_ANNOTATION) == OUTDATED
    return replace(counts, paused=True, updated=0 if outdated else counts.updated)


def _with_serving(counts: Rollout, template: Mapping[str, Any], pods: Iterable[Pod]) -> Rollout:
    """The counts if pods serve before they are ready: those whose first container is ready, beside others."""
    first, *others = nested_list(template, "spec", "containers")
    if not others:
        return counts
    return replace(counts, serving=sum(pod.serves(first["name"]) and not pod.is_unreported for pod in pods))


def _warming(template: Mapping[str, Any], pods: Iterable[Pod]) -> list[str]:
    """The names of the pods that serve while they are not ready, because their caches are cold, sorted."""
    has_agent = len(nested_list(template, "spec", "containers")) > 1
    return sorted(pod.name for pod in pods if _is_cold(pod)) if has_agent else []


def _is_cold(pod: Pod) -> bool:
    """Whether nothing but the agent, which runs, keeps a pod from being ready."""
    unready = [status for status in pod.status.container_statuses if not status.ready]
    waits = [status.name for status in unready if status.state.running is not None]
    return pod.is_active and len(unready) == 1 and waits == [agent.CONTAINER]


def _sentences(warming: list[str], seconds: int) -> Iterator[str]:
    """A sentence about the pods that are still warming up, for messages; none without such pods."""
    if not warming:
        return
    names = ", ".join(warming[:MAX_NAMES])
    more = f" and {len(warming) - MAX_NAMES} more" if len(warming) > MAX_NAMES else ""
    verb = "is" if len(warming) == 1 else "are"
    yield f"{names}{more} {verb} warming up, for at most {seconds} s"
