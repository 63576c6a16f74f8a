"""The part of the spec of every kind about the labels and annotations of its children."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from memcached_api.effects import KEEPS
from memcached_api.scheduling import Labels

MAX_ANNOTATIONS: Final = 32
MAX_ANNOTATION: Final = 1024
"""Characters of an annotation. Kubernetes limits the annotations of an object to 256 KiB together, and copies those of
a Deployment to each of its ReplicaSets. The operator's own must fit beside MAX_ANNOTATIONS of this length."""


class InheritedMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """Labels and annotations of all objects that the operator creates for this one, except the pods."""

    labels: Annotated[Labels, KEEPS] = {}
    """Labels of all children. Keys that the operator sets are rejected. Labels for one kind of child take precedence.
    """

    annotations: Annotated[
        dict[str, Annotated[str, Meta(max_length=MAX_ANNOTATION)]], Meta(max_length=MAX_ANNOTATIONS), KEEPS
    ] = {}
    """Annotations of all children. Keys that the operator or Kubernetes sets are rejected. Annotations for one kind of
    child take precedence."""
