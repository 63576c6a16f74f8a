"""The origin of a pod: an annotation of the pod template, and so of each pod, with which both are compared.

The spec of a pod is not compared: admission of the cluster may have changed it, for example the registry of an image.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from memcached_api.annotations import ORIGIN_ANNOTATION
from memcached_api.memcached.changes.resizing import Amounts, are_amounts, shape
from memcached_operator.kube.compare import encoded, fingerprint
from memcached_operator.kube.resource import Object, nested_map
from memcached_operator.memcached.updates.amounts import amounts_in, plain
from memcached_operator.parts.workloads import children
from memcached_operator.world.pod import Pod

Digest = Callable[[Mapping[str, Amounts]], str]
"""`Origin.fixed` of a pod template as a function of the amounts of its containers, in their order."""

VERSION: Final = 1
"""The version of the format of the annotation."""


class Origin(msgspec.Struct, frozen=True):
    """A pod template. `fixed`: a digest of all that needs a new pod. `images` and `resources`: by container.

    `version`: that of the format, and of what is in the digest. Pods keep what an earlier release has written: the
    digest of the same template must stay the same, or have another version that the digest of this one can be compared
    with. Otherwise, the next change of each object would replace its pods.
    """

    fixed: str
    images: dict[str, str]
    resources: dict[str, dict[str, dict[str, str]]]
    version: int = VERSION


def with_origin(template: Object, fixed: Any) -> Object:
    """A pod template with its ORIGIN_ANNOTATION. `fixed`: the part that needs a new pod, without the resources."""
    containers = template["spec"]["containers"]
    origin = Origin(
        digest(fixed, {container["name"]: amounts_in(nested_map(container, "resources")) for container in containers}),
        {container["name"]: container["image"] for container in containers},
        {container["name"]: plain(amounts_in(nested_map(container, "resources"))) for container in containers},
    )
    return children.with_metadata(template, {}, {ORIGIN_ANNOTATION: text_of(origin)})


def digest(fixed: Any, amounts: Mapping[str, Amounts]) -> str:
    """`Origin.fixed` of a pod template. `fixed`: as in with_origin. `amounts`: of the containers, in their order."""
    return fingerprint([fixed, shape(amounts)])


def text_of(origin: Origin) -> str:
    """The annotation of an origin."""
    return encoded(origin).decode()


def origin_of(pod: Pod) -> Origin:
    """Return the origin of a pod; NO_ORIGIN without a valid annotation."""
    return origin_in(pod.metadata.annotations.get(ORIGIN_ANNOTATION)) or NO_ORIGIN


def template_origin(template: Object) -> Origin | None:
    """Return the origin of a pod template; None without a valid annotation."""
    return origin_in(nested_map(template, "metadata", "annotations").get(ORIGIN_ANNOTATION))


def origin_in(text: str | None) -> Origin | None:
    """Return the origin in an annotation; None if it is not valid."""
    try:
        origin = _ORIGINS.decode(text or "")
    except (msgspec.MsgspecError, RecursionError):  # deeply nested JSON: another client can change the annotation
        return None
    return origin if origin.version == VERSION and are_amounts(origin.resources) else None


NO_ORIGIN: Final = Origin("", {}, {})
"""The origin of a pod that names none: no target accepts it."""
_ORIGINS: Final = msgspec.json.Decoder(Origin)
