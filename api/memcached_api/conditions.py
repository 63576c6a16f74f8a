"""The conditions of every status: always all three, in the order of TYPES.

Their status is never Unknown, because the first status is written after the children are applied.
"""

from typing import Annotated, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
DEGRADED: Final = "Degraded"
TYPES: Final = (AVAILABLE, PROGRESSING, DEGRADED)

TRUE: Final = "True"
FALSE: Final = "False"

# Available
MINIMUM_REPLICAS_AVAILABLE: Final = "MinimumReplicasAvailable"
MINIMUM_REPLICAS_UNAVAILABLE: Final = "MinimumReplicasUnavailable"

# Progressing
ROLLING_OUT: Final = "RollingOut"
WAITING_FOR_DELETION: Final = "WaitingForDeletion"
ROLLOUT_COMPLETE: Final = "RolloutComplete"
STALLED: Final = "Stalled"

# Degraded
PROGRESS_DEADLINE_EXCEEDED: Final = "ProgressDeadlineExceeded"
PODS_CRASHING: Final = "PodsCrashing"
IMAGE_UNAVAILABLE: Final = "ImageUnavailable"
APPLY_FAILED: Final = "ApplyFailed"
CONFLICT: Final = "Conflict"
INVALID_SPEC: Final = "InvalidSpec"
AS_EXPECTED: Final = "AsExpected"


# The meaning of each reason, for the API reference.
MEANINGS: Final = {
    AVAILABLE: {
        MINIMUM_REPLICAS_AVAILABLE: "enough pods are ready to serve",
        MINIMUM_REPLICAS_UNAVAILABLE: "too few pods are ready to serve; Degraded has the cause, if known",
    },
    PROGRESSING: {
        ROLLING_OUT: "pods are being created or replaced",
        WAITING_FOR_DELETION: "children of a deleted object with the same name are still being deleted",
        ROLLOUT_COMPLETE: "all pods are updated and ready",
        STALLED: "the rollout is stalled; see the Degraded condition",
    },
    DEGRADED: {
        PROGRESS_DEADLINE_EXCEEDED: "the rollout took longer than its deadline",
        PODS_CRASHING: "a container terminates repeatedly or cannot be started; the message has the cause",
        IMAGE_UNAVAILABLE: "the image cannot be pulled; correct `spec.image`, or the `imagePullSecrets`",
        APPLY_FAILED: "the API server rejected a child of the object; the message has its error message",
        CONFLICT: "an object of the same name is not managed by this object; delete or rename one of the two",
        INVALID_SPEC: "the spec is invalid; the message has field, value and remedy",
        AS_EXPECTED: "all components are healthy",
    },
}


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    """One aspect of an object's state. `last_transition_time` (RFC 3339, UTC) changes only when `status` changes."""

    SCHEMA: ClassVar[str] = "io.k8s.apimachinery.pkg.apis.meta.v1.Condition"

    type: Annotated[str, Meta(max_length=316)]
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[str, Meta(min_length=1, max_length=1024)]
    message: Annotated[str, Meta(max_length=32768)]
    last_transition_time: Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
    observed_generation: int = 0
