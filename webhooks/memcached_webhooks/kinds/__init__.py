"""Admission of every registered kind. A module of this package has the name of a kind, in lower case: its `admission`
has the defaults and warnings of that kind. A kind without a module has none."""

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from memcached_api.kinds import Kind
from memcached_api.registry import KINDS
from memcached_webhooks.admission import Admission
from memcached_webhooks.review import Handler


def handlers(default_image: str, kinds: Iterable[Kind[Any]] = KINDS) -> dict[str, Handler]:
    """The handler for each path. `default_image`: the image of memcached to set in an object without one."""
    return {path: handler for kind in kinds for path, handler in _admission(kind, default_image).handlers().items()}


def _admission(kind: Kind[Any], default_image: str) -> Admission:
    name = f"{__name__}.{kind.name.lower()}"
    if find_spec(name) is None:
        return Admission(kind)
    admission: Callable[[str], Admission] = import_module(name).admission
    return admission(default_image)
