"""A throw-away third kind: the API module that a new kind would have. It has no rules, defaults or warnings of its own,
and no release contains it."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from memcached_api.conditions import Condition
from memcached_api.kind import PROBLEM_COLUMNS, STATE_COLUMNS, Kind
from memcached_api.kubernetes import LIST_BY_TYPE
from memcached_api.validation.common_rules import MAX_SIZE, MIN_SIZE

_COUNT: Final = Meta(extra_json_schema={"format": "int32"})


class WidgetSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The desired state of the widget."""

    size: Annotated[int, Meta(ge=MIN_SIZE, le=MAX_SIZE)] = 1
    """Number of pods."""

    image: Annotated[str, Meta(min_length=1, max_length=1024)] = "registry.k8s.io/pause:3.10"
    """Container image to run."""

    settings: Annotated[str, Meta(max_length=4096)] = ""
    """Content of the configuration file."""


class WidgetStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The last observed state."""

    observed_generation: int = 0
    """The `metadata.generation` of the spec that this status refers to."""

    replicas: Annotated[int, _COUNT] = 0
    """Number of pods that exist."""

    ready_replicas: Annotated[int, _COUNT] = 0
    """Number of pods that are ready."""

    selector: str = ""
    """Label selector of the pods, in text form."""

    nodes: Annotated[list[str], Meta(extra_json_schema={"x-kubernetes-list-type": "set"})] = []
    """Names of the running pods, sorted."""

    conditions: Annotated[list[Condition], Meta(extra_json_schema=LIST_BY_TYPE)] = []
    """The conditions Available, Progressing and Degraded, in this order."""


WIDGET: Final = Kind(
    group="test.example.com",
    versions=("v1", "v1beta1"),
    name="Widget",
    plural="widgets",
    short_names=("wdg",),
    description="A group of pods with a configuration file, for tests.",
    spec=WidgetSpec,
    status=WidgetStatus,
    rules=(),
    columns=(*STATE_COLUMNS, *PROBLEM_COLUMNS),
)
