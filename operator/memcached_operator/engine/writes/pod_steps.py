"""Makes the steps of updates of pods, one write each."""

import logging
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from memcached_operator.engine.kind import PodStep
from memcached_operator.engine.writes.failed_requests import Cooldown
from memcached_operator.engine.writes.result import Result
from memcached_operator.kube import labels, texts
from memcached_operator.kube.client import STRATEGIC_MERGE_PATCH, ApiClient, ApiError
from memcached_operator.kube.compare import fingerprint
from memcached_operator.kube.resource import PODS, Key, Object, nested_map
from memcached_operator.world.live import find_pod
from memcached_operator.world.pod import Pod
from memcached_operator.world.store import Store, version_of

log = logging.getLogger(__name__)

RETRY_PERIOD = 1.0
"""Seconds until the plan is made again if the pod has changed since, in case its event is missed."""

INEFFECTIVE_PERIOD = 30.0
"""Seconds until a step is made again that had no effect, because a policy of the cluster changes the pod."""

CHANGED = (404, 409)
"""Response codes of a write to a pod that has changed or was deleted since the plan was made."""

NO_REPLY, SERVER_ERRORS = 0, 500
"""Response codes of a write that may have been made nevertheless: no reply, and those from 500 on."""

INEFFECTIVE: Final = "Ineffective"
"""The reason of the error of a step that a policy has changed."""

CAPACITY: Final = "NodeCapacity"
"""The cause with which the API server rejects requests that exceed what a node has (Kubernetes 1.37)."""
ALLOCATABLE: Final = "didn't have enough allocatable resources"
"""The part of the API server's message about this cause."""

MAX_CAUSE: Final = 400
"""Characters of a message of the API server: some contain the whole spec of a pod, on many lines."""

FORBIDDEN = 403
"""Response code of a write that a quota, a LimitRange or a policy denies."""


class _Hold(NamedTuple):
    """A policy has changed a step, so that the plan may not see that a pod is being changed.

    `until`: when the next step can be made, in seconds of the monotonic clock. `pod`: the name of that pod. `cause`:
    what the policy does.
    """

    until: float
    pod: str
    cause: str


class PodSteps:
    """Makes steps. Every response updates the store, so that the next plan knows of it before the event arrives."""

    def __init__(self, client: ApiClient, store: Store) -> None:
        self._client = client
        self._store = store
        self._cooldown = Cooldown()
        self._unknown: set[Key] = set()
        """Pods with a step whose outcome is not known, because its reply was lost."""
        self._held: dict[tuple[str, str], _Hold] = {}
        """The objects of which no step is made at present, by namespace and name."""
        self.clock: Callable[[], float] = time.monotonic

    async def make(self, step: PodStep, result: Result) -> None:
        """Make a step, and record in `result` why it failed. A pod that has changed since needs another plan."""
        key = Key(PODS, step.pod.metadata.namespace, step.pod.name)
        if await self._is_unclear(key, result):
            return
        if (hold := self._hold_of(step.pod)) is not None:
            error = ApiError(FORBIDDEN, INEFFECTIVE, hold.cause)
            if key.name == hold.pod:
                result.fail(error, _message(key, step, error))
            else:
                result.fail(error, f"Pod {key.name} cannot be {step.verb} before pod {hold.pod}: {hold.cause}")
            return
        try:
            with self._cooldown.guard(key, _intent(step)):
                reply = await self._sent(key, step)
        except ApiError as error:
            if error.code in CHANGED and not self._lacks_subresource(key, step, error):
                result.requeue(RETRY_PERIOD)
                return
            result.fail(error, _message(key, step, error))
            return
        log.info("%s is %s", key, step.verb)
        if reply.get("kind") == PODS.kind:  # the reply to a deletion can be a Status
            self._store.put(PODS, reply)
            result.requeue(0)  # the event of this write is no news, but the next step may follow at once

    async def _is_unclear(self, key: Key, result: Result) -> bool:
        """Read the pods of the namespace whose steps may have been made. True if there was one: it needs another plan.

        Otherwise a second slot could be disturbed before the event of the first one arrives.
        """
        unclear = [each for each in self._unknown if each.namespace == key.namespace]
        for each in unclear:
            try:
                await self._read(each)
            except ApiError as error:
                text = f"Pod {each.name} cannot be read after a change whose reply was lost: {_cause(error)}"
                result.fail(error, text)
                return True
            self._unknown.discard(each)
        if unclear:
            result.requeue(0)
            result.only_read = True
        return bool(unclear)

    async def _read(self, key: Key) -> None:
        """Update the store with a pod."""
        pod, known = await find_pod(self._client, key.namespace, key.name), self._store.entry(key)
        if pod is not None:
            self._store.put(PODS, pod)
        elif known is not None:
            self._store.remove(key, known.version)

    def _lacks_subresource(self, key: Key, step: PodStep, error: ApiError) -> bool:
        """Whether the API server does not serve the subresource, although the pod exists."""
        entry = self._store.entry(key)
        return (
            error.code == 404 and bool(step.subresource) and entry is not None and entry.version == _version(step.pod)
        )

    async def _sent(self, key: Key, step: PodStep) -> Object:
        """As `_write`, and note a step whose outcome is not known."""
        try:
            return await self._write(key, step)
        except ApiError as error:
            if error.code == NO_REPLY or error.code >= SERVER_ERRORS:
                self._unknown.add(key)
            raise

    async def _write(self, key: Key, step: PodStep) -> Object:
        """Write only this version of the pod: the API server rejects the write if the pod has changed since.

        Raises ApiError, also if the write had no effect: it counts as denied, and is repeated later.
        """
        meta = step.pod.metadata
        if step.patch is None:
            return await self._client.delete(key, meta.uid, meta.resource_version)
        version = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        patch = {**step.patch, "metadata": {**step.patch.get("metadata", {}), **version}}
        reply = await self._client.patch(key, patch, STRATEGIC_MERGE_PATCH, step.subresource)
        lost = _lost(reply, step.patch)
        if lost or version_of(reply) == _version(step.pod):
            self._store.put(PODS, reply)
            detail = f", and does not let its {lost} be changed: correct that policy" if lost else ""
            cause = f"a cluster policy changes the request{detail}"
            self._held[_instance(step.pod)] = _Hold(self.clock() + INEFFECTIVE_PERIOD, key.name, cause)
            raise ApiError(FORBIDDEN, INEFFECTIVE, cause, INEFFECTIVE_PERIOD)
        return reply

    def _hold_of(self, pod: Pod) -> _Hold | None:
        """Why no step is made of a pod's object; None if one can be made."""
        now = self.clock()
        self._held = {instance: hold for instance, hold in self._held.items() if hold.until > now}
        return self._held.get(_instance(pod))


def _version(pod: Pod) -> int:
    return int(pod.metadata.resource_version or 0)


def _instance(pod: Pod) -> tuple[str, str]:
    """The namespace and the name of the object to which a pod belongs, as its labels say."""
    return pod.metadata.namespace, pod.metadata.labels.get(labels.INSTANCE, "")


def _lost(reply: Object, patch: Object) -> str:
    """The first label or annotation that a pod has otherwise than a patch; empty without one."""
    for part in ("labels", "annotations"):
        found = nested_map(reply, "metadata", part)
        for name, text in nested_map(patch, "metadata", part).items():
            if found.get(name) != text:
                return f"{part.removesuffix('s')} {name}"
    return ""


def _message(key: Key, step: PodStep, error: ApiError) -> str:
    denied = step.capacity_remedy if _lacks_capacity(error) and step.capacity_remedy else step.denied_remedy
    text = denied if error.code == FORBIDDEN else step.remedy
    remedy = f". {text}" if text and error.permanent else ""
    return f"Pod {key.name} cannot be {step.verb}: {_cause(error)}{remedy}"


def _lacks_capacity(error: ApiError) -> bool:
    """Whether the API server denies a resize because of what the node of the pod has (PodResizeValidator).

    Its first versions name no cause.
    """
    return CAPACITY in error.causes or ALLOCATABLE in error.message


def _cause(error: ApiError) -> str:
    """What the API server says, as a clause."""
    return texts.clause(error.message, MAX_CAUSE)


def _intent(step: PodStep) -> str:
    """A digest of the step on this pod: the next pod has the same name."""
    return fingerprint({"uid": step.pod.metadata.uid, "patch": step.patch, "subresource": step.subresource})
