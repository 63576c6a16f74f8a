"""The name of a Memcached follows from those of its pods."""

import re

import pytest

from dashboards.selectors import CACHE, SUFFIX

LONG = "c" * 46 + "-" + "d" * 5
"""A name of 52 characters, the most that a Memcached can have."""


@pytest.mark.parametrize(
    ("pod", "cache"),
    [
        ("sessions-0", "sessions"),
        ("sessions-12", "sessions"),
        ("sessions-6c9f8d5b47-x2k8v", "sessions"),
        ("sessions-5-0", "sessions-5"),
        ("sessions-5-6c9f8d5b47-x2k8v", "sessions-5"),
        ("sessions-5-b-44444", "sessions-5"),
        ("a-b-c-f-4455789-24567", "a-b-c-f"),
        (f"{LONG}-6c9f8x2k8v", LONG),
        (f"{LONG[:47]}-6c9f8d5b47x2k8v"[:63], LONG[:47]),
    ],
)
def test_cache_of_a_pod(pod: str, cache: str) -> None:
    found = re.fullmatch(CACHE, pod)
    assert found
    assert found[1] == cache
    assert re.fullmatch(f"{re.escape(cache)}-{SUFFIX}", pod)


@pytest.mark.parametrize("pod", ["sessions-canary-0", "sessions-eu-6c9f8d5b47-x2k8v", "my-sessions-0", "sessions"])
def test_pods_of_another_cache_are_not_selected(pod: str) -> None:
    assert not re.fullmatch(f"sessions-{SUFFIX}", pod)
