"""Reviews by the sources in PYTHONPATH, without a server. As a program, it reads objects and prints results, by lines:

python -m support.reviewing memcacheds|appservices <objects
"""

import json
import sys
from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any

import msgspec

from memcached_api.images import DEFAULT_IMAGE, Images
from memcached_api.registry import KINDS
from memcached_webhooks.admission import path_of
from memcached_webhooks.kinds import handlers
from memcached_webhooks.review import CREATE, GroupVersionKind, Request


def results(plural: str, objects: Iterable[Any]) -> Iterator[str]:
    """For each object whether it is allowed, and whether it is with its defaults: `True False`, for example."""
    (kind,) = (kind for kind in KINDS if kind.plural == plural)
    mutate, validate = (handlers(Images(DEFAULT_IMAGE))[path_of(verb, kind)] for verb in ("mutate", "validate"))
    version = GroupVersionKind(kind.group, kind.versions[0], kind.name)

    def request(obj: Any) -> Request:
        return Request("1", CREATE, version, object=msgspec.Raw(json.dumps(obj).encode()))

    for obj in objects:
        defaulted = patched(obj, mutate(request(obj)).patch)
        yield " ".join(str(validate(request(each)).denial is None) for each in (obj, defaulted))


def patched(obj: Any, patch: Iterable[Any]) -> Any:
    """A copy of an object with the defaults of a JSON patch."""
    found = deepcopy(obj)
    for step in patch:
        *parents, last = step["path"].split("/")[1:]
        parent = found
        for name in parents:
            parent = parent[name]
        parent[last] = deepcopy(step["value"])  # a later step may change it
    return found


if __name__ == "__main__":
    sys.stdout.writelines(f"{each}\n" for each in results(sys.argv[1], map(json.loads, sys.stdin)))
