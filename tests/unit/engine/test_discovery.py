"""Whether the API server serves a resource."""

import asyncio
from contextlib import nullcontext
from typing import cast

import pytest

from memcached_operator.engine.discovery import is_served
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import Object
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES

SERVED: dict[str, tuple[Object | ApiError, bool | None]] = {
    "served": ({"resources": [{"name": "memcacheds"}, {"name": "memcachedproxies"}]}, True),
    "only others": ({"resources": [{"name": "memcacheds"}]}, False),
    "no group": (ApiError(404, "", "the server could not find the requested resource"), False),
    "forbidden": (ApiError(403, "Forbidden", "may not get path"), None),
    "no response": (ApiError(0, "Timeout", "no response"), None),
}


@pytest.mark.parametrize(("reply", "expected"), SERVED.values(), ids=SERVED.keys())
def test_only_discovery_says_that_a_resource_is_not_served(reply: Object | ApiError, expected: bool | None) -> None:
    class Server:
        async def request(self, method: str, path: str) -> Object:
            assert (method, path) == ("GET", "/apis/cache.example.com/v1alpha1")
            if isinstance(reply, ApiError):
                raise reply
            return reply

    with nullcontext() if expected is not None else pytest.raises(ApiError):
        assert asyncio.run(is_served(cast("ApiClient", Server()), MEMCACHEDPROXIES)) is expected
