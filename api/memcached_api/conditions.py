"""The conditions every status of ours carries: always all three, in the order of TYPES.

None is ever Unknown: the first status is written when the children are, and knows of all three.
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


# What each reason tells, for the reference page.
MEANINGS: Final = {
    AVAILABLE: {
        MINIMUM_REPLICAS_AVAILABLE: "enough pods are ready to serve",
        MINIMUM_REPLICAS_UNAVAILABLE: "fewer pods are ready than it takes to serve; Degraded names the cause, if known",
    },
    PROGRESSING: {
        ROLLING_OUT: "pods are being created or replaced",
        WAITING_FOR_DELETION: "what a deleted object of the same name left behind is still being removed",
        ROLLOUT_COMPLETE: "every pod is as the spec says",
        STALLED: "the rollout makes no headway; Degraded names the cause",
    },
    DEGRADED: {
        PROGRESS_DEADLINE_EXCEEDED: "the rollout took longer than its deadline",
        PODS_CRASHING: "a container ends again and again; the message has its exit code and reason",
        IMAGE_UNAVAILABLE: "the image cannot be pulled; correct `spec.image`, or the `imagePullSecrets`",
        APPLY_FAILED: "the API server refused a child of the object; the message has its words",
        CONFLICT: "an object of the same name belongs to somebody else; remove it or rename one of the two",
        INVALID_SPEC: "the spec breaks a rule; the message names field, value and remedy",
        AS_EXPECTED: "nothing is wrong",
    },
}


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    """One aspect of an object's state; `last_transition_time` is RFC 3339 in UTC and moves only when `status` does."""

    SCHEMA: ClassVar[str] = "io.k8s.apimachinery.pkg.apis.meta.v1.Condition"

    type: Annotated[str, Meta(max_length=316)]
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[str, Meta(min_length=1, max_length=1024)]
    message: Annotated[str, Meta(max_length=32768)]
    last_transition_time: Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
    observed_generation: int = 0
