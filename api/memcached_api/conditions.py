"""The conditions of every status, in the order of MEANINGS: always all, but Stalled only while it is True.

Their status is never Unknown, because the first status is written after the children are applied.
"""

from typing import Annotated, ClassVar, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
DEGRADED: Final = "Degraded"
READY: Final = "Ready"
STALLED: Final = "Stalled"  # also a reason of Progressing
OBSERVED_TYPES: Final = (AVAILABLE, PROGRESSING, DEGRADED)
"""The conditions that are observed. The others follow from them and their causes."""

UNOBSERVED_GENERATION: Final = -1
"""The `observedGeneration` that the CRD sets in the status of a new object, as Flux's own kinds do: tools that compare
it with `metadata.generation` see that no controller has observed the object yet."""

TRUE: Final = "True"
FALSE: Final = "False"

# Available
MINIMUM_REPLICAS_AVAILABLE: Final = "MinimumReplicasAvailable"
MINIMUM_REPLICAS_UNAVAILABLE: Final = "MinimumReplicasUnavailable"

# Progressing
ROLLING_OUT: Final = "RollingOut"
WAITING_FOR_DELETION: Final = "WaitingForDeletion"
WAITING_FOR_MEMCACHED: Final = "WaitingForMemcached"
WAITING_FOR_PROXIES: Final = "WaitingForProxies"
MOVING_KEYS: Final = "MovingKeys"
MOVE_STUCK: Final = "MoveStuck"
PAUSED: Final = "Paused"
ROLLOUT_COMPLETE: Final = "RolloutComplete"

# Degraded
PROGRESS_DEADLINE_EXCEEDED: Final = "ProgressDeadlineExceeded"
PODS_CRASHING: Final = "PodsCrashing"
SWEEP_FAILED: Final = "SweepFailed"
IMAGE_UNAVAILABLE: Final = "ImageUnavailable"
SECRET_UNAVAILABLE: Final = "SecretUnavailable"  # noqa: S105 - a reason
APPLY_FAILED: Final = "ApplyFailed"
CONFLICT: Final = "Conflict"
INVALID_SPEC: Final = "InvalidSpec"
REFERENCE_NOT_FOUND: Final = "ReferenceNotFound"
REFERENCE_INVALID: Final = "ReferenceInvalid"
AS_EXPECTED: Final = "AsExpected"

OTHER_REASON: Final = "another"
"""In MEANINGS, stands for the reasons of other conditions."""


class Meaning(NamedTuple):
    """The meaning of a reason, and the action that it requires from the user; empty if it requires none.

    `stalls`: the problem does not end without a change by a user, so that the object is Stalled. `says_remedy`: each
    message of this reason has a remedy of its own, so that tools that show the message do not add the action.
    """

    meaning: str
    action: str = ""
    stalls: bool = False
    says_remedy: bool = False


_MEANINGS: Final = {
    AVAILABLE: {
        MINIMUM_REPLICAS_AVAILABLE: Meaning("Enough pods are ready."),
        MINIMUM_REPLICAS_UNAVAILABLE: Meaning("Too few pods are ready.", "See the message and the Degraded condition."),
    },
    PROGRESSING: {
        ROLLING_OUT: Meaning(
            "Pods are being created or replaced. The message names what a pod has waited for longer than a minute.",
            "If Degraded is True, or if the message names a cause, correct it. Otherwise, wait.",
        ),
        WAITING_FOR_DELETION: Meaning(
            "A child of a deleted object with the same name is still being deleted.",
            "Wait. If the child named in the message does not disappear, a finalizer blocks its deletion.",
        ),
        WAITING_FOR_MEMCACHED: Meaning(
            (
                "The Memcached to which a MemcachedProxy refers is not available, so requests fail. Or it is not known "
                "whether it exists, because the operator cannot list Memcacheds. Pods that run are not changed then."
            ),
            "See the conditions of the Memcached, or correct the cause that the message contains.",
        ),
        WAITING_FOR_PROXIES: Meaning(
            (
                "The size of a Memcached has been reduced, but a MemcachedProxy still uses a slot that is to be "
                "removed. The slot is kept until no pod of the MemcachedProxy uses it. Or the operator cannot list "
                "MemcachedProxies, so it does not know whether one uses the slot."
            ),
            "Wait. If the message stays, correct the MemcachedProxy that it names: its rollout is paused, or its pods "
            "cannot start. If it is deleted or refers to another Memcached, the slot is removed when its pods have "
            "stopped. If the message contains an error of the API server, correct its cause.",
        ),
        MOVING_KEYS: Meaning(
            "The size of a Memcached with `spec.scaling.warm` changes: its proxies move keys in phases.",
            "Wait. The message contains the phase, and what it waits for.",
        ),
        MOVE_STUCK: Meaning(
            "A phase of such a change has waited for more than 15 minutes, for example because pods of a proxy still "
            "use the one before it.",
            "Correct the MemcachedProxy, the pod or the slot that the message names.",
        ),
        PAUSED: Meaning(
            "The rollout is paused. Changes that require new pods wait, and all other changes are applied.",
            "Set `spec.rollout.paused` of a Memcached or a MemcachedProxy to false. For an AppService, run `kubectl "
            "rollout resume` for its Deployment.",
        ),
        ROLLOUT_COMPLETE: Meaning("Every pod matches the spec."),
        STALLED: Meaning("The rollout is stalled.", "See the Degraded condition."),
    },
    DEGRADED: {
        INVALID_SPEC: Meaning(
            (
                "The stored spec violates a rule that was added later. The operator cannot build valid children from "
                "it, and does not change the existing ones."
            ),
            "Correct the spec as the message says.",
            stalls=True,
        ),
        REFERENCE_INVALID: Meaning(
            (
                "The Memcached to which a MemcachedProxy refers exists, but memcached's proxy cannot use it. Pods that "
                "run are not changed."
            ),
            "Change the field that the message names, or refer to another Memcached.",
            stalls=True,
            says_remedy=True,
        ),
        REFERENCE_NOT_FOUND: Meaning(
            "The Memcached to which a MemcachedProxy refers does not exist. Pods that run are not changed.",
            "Create the Memcached, or correct `spec.memcachedRef.name`.",
            says_remedy=True,
        ),
        CONFLICT: Meaning(
            "The name of a child, or of a slot's pod, is already used by an object that was created manually, or that "
            "belongs to another object. The operator does not modify it, and checks again: a child every 10 s, a pod "
            "within 5 minutes. Or a HorizontalPodAutoscaler has scaled the Deployment at least twice within an hour, "
            "although this object sets its size: this ends some minutes after its last change. Or another client "
            "changes a child again soon after each revert, at least 7 times in a row. Or clients reach pods that do "
            "not belong to this object, because the pods have its labels.",
            "Delete or rename one of the two objects. Let the autoscaler scale this object instead of its Deployment. "
            "The message names the other client and the remedy.",
            stalls=True,
            says_remedy=True,
        ),
        APPLY_FAILED: Meaning(
            "The API server rejected a child or its pods. Examples of causes: a quota, a LimitRange, Pod Security, a "
            "missing ServiceAccount or PriorityClass, a missing permission, a node port that is in use, or an "
            "admission policy that forbids a field that another client added, or the deletion of pods, or a claim of a "
            "volume for which there is no class or no room. When the cause is corrected, pods are created or deleted "
            "within 5 minutes.",
            "Follow the remedy in the message, or correct the cause in the API server's error message.",
        ),
        SECRET_UNAVAILABLE: Meaning(
            "A pod cannot mount a volume because a Secret, or one of its keys, does not exist. A pod that started "
            "before the Secret was deleted keeps running with the previous files. Then the reason appears within "
            "about 10 minutes.",
            "Create the Secret or the key that the message names. The kubelet retries within about 2 minutes. The "
            "reason clears when the pod starts or, for a running pod, about 8 minutes after the last failed attempt.",
            says_remedy=True,
        ),
        IMAGE_UNAVAILABLE: Meaning(
            "The image of a container cannot be pulled, for example because of a typo or a private registry. An "
            "AppService has the pull secrets of the ServiceAccount `default`.",
            "Correct the field that the message names, such as `spec.image` or `spec.agent.image`. If the container is "
            "not part of the object, correct what adds it to the pods.",
            says_remedy=True,
        ),
        PODS_CRASHING: Meaning(
            "A container crashes repeatedly or cannot start. The reason clears when the pod has been ready for 30 s.",
            "Follow the remedy in the message, or run the command in it. If it names neither, check the exit code and "
            "the reason in it. Exit code 64 means that memcached rejected its options or certificate.",
        ),
        SWEEP_FAILED: Meaning(
            "Before a change of size, new pods of a MemcachedProxy remove outdated items from the slots. A pod has not "
            "ended this for 5 minutes. Clients are served by the pods before it.",
            "Repair the slot that the message names, or set the size of the Memcached to the value before.",
        ),
        PROGRESS_DEADLINE_EXCEEDED: Meaning(
            "The rollout has made no progress for 10 minutes.",
            "Correct the cause that the message names, or run the command in it.",
            stalls=True,
        ),
        AS_EXPECTED: Meaning(
            "No problem is known. If all pods run and the rollout is complete, all components are healthy. Otherwise, "
            "the message contains what is missing."
        ),
    },
    READY: {
        AS_EXPECTED: Meaning("True: enough pods are ready, the rollout is complete, and Degraded is False."),
        PAUSED: Meaning("The rollout is paused. The status is copied from Available.", "See Progressing."),
        OTHER_REASON: Meaning(
            (
                "False: reason and message are copied from the first condition that prevents readiness, in the order "
                "Degraded, Progressing, Available."
            ),
            "See that condition.",
        ),
    },
}
SEVERITY: Final = tuple(reason for reason in _MEANINGS[DEGRADED] if reason != AS_EXPECTED)
"""The reasons of problems, the most severe first: the order of the table."""

STALLING: Final = tuple(reason for reason in SEVERITY if _MEANINGS[DEGRADED][reason].stalls)
"""The reasons of Stalled."""

MEANINGS: Final = {
    **_MEANINGS,
    STALLED: {reason: Meaning("The same meaning as for Degraded.", "See Degraded.") for reason in STALLING},
}
"""Every reason by type of condition. docs/api.md and the plugin's remedies are generated from this table."""


def rank(reason: str) -> int:
    """The place of a problem's reason in the order of severity. One that is not in the table comes last."""
    return SEVERITY.index(reason) if reason in SEVERITY else len(SEVERITY)


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    """One aspect of an object's state. `last_transition_time` (RFC 3339, UTC) changes only when `status` changes."""

    SCHEMA: ClassVar[str] = "io.k8s.apimachinery.pkg.apis.meta.v1.Condition"

    type: Annotated[str, Meta(max_length=316)]
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[str, Meta(min_length=1, max_length=1024)]
    message: Annotated[str, Meta(max_length=32768)]
    last_transition_time: Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
    observed_generation: int = 0
