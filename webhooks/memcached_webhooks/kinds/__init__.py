"""Admission of every registered kind. A module of this package has the name of a kind, in lower case: its `admission`
has the defaults and warnings of that kind. A kind without a module has none."""

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from memcached_api.images import Images
from memcached_api.kind import Kind
from memcached_api.registry import KINDS
from memcached_webhooks.admission import Admission
from memcached_webhooks.review import Handler


def handlers(images: Images, kinds: Iterable[Kind[Any]] = KINDS) -> dict[str, Handler]:
    """The handler for each path. `images`: those to set in a Memcached that names none."""
    return {path: handler for kind in kinds for path, handler in _admission(kind, images).handlers().items()}


def _admission(kind: Kind[Any], images: Images) -> Admission:
    name = f"{__name__}.{kind.name.lower()}"
    if find_spec(name) is None:
        return Admission(kind)
    admission: Callable[[Images], Admission] = import_module(name).admission
    return admission(images)
