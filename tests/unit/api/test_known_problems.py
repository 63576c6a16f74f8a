"""Known problems: of which releases and caches, and what is counted."""

from typing import Any

import pytest

from memcached_api.images import Images
from memcached_api.known_problems import corrected, known_problems, sentence
from memcached_operator.memcached.images import image_counts


@pytest.mark.parametrize(
    ("tag", "auth", "warm", "disk", "number"),
    [
        ("1.6.38", False, False, False, 3),
        ("1.6.38", True, False, False, 6),
        ("1.6.38", True, True, False, 7),
        ("1.6.41", True, True, False, 7),
        ("1.6.42", False, False, False, 2),
        ("1.6.42", True, False, False, 3),
        ("1.6.43", False, False, False, 2),
        ("1.6.43", True, True, False, 4),
        ("1.6.44", False, False, False, 1),
        ("1.6.44", True, True, False, 2),
        ("1.6.45", True, True, False, 0),
        ("1.6", True, True, False, 0),
        ("1.6.38", False, False, True, 4),
        ("1.6.40", True, False, True, 7),
        ("1.6.41", False, False, True, 3),
    ],
)
def test_problems_are_those_of_the_release_and_of_what_the_cache_uses(
    tag: str, auth: bool, warm: bool, disk: bool, number: int
) -> None:
    found = known_problems(f"memcached:{tag}", auth=auth, warm_restart=warm, extstore=disk)
    assert len(found) == number
    if found:
        assert corrected(found) == (1, 6, 45)
        more = f"; {number - 1} more" if number > 1 else ""
        assert sentence(f"memcached:{tag}", found, 1).endswith(f"{found[0].effect}{more}")


@pytest.mark.parametrize(
    ("spec", "tag", "counts"),
    [
        ({}, "1.6.38", True),
        ({"image": "memcached:1.6.45"}, "1.6.38-alpine", True),
        ({"image": "memcached:1.6.38"}, "1.6.45", False),
        ({"cache": {"warmRestart": True}, "auth": None}, "1.6.44", True),
        ({"cache": "invalid"}, "1.6", False),
        ({"cache": {"extstore": {}}}, "1.6.40", True),
    ],
)
def test_caches_are_counted_by_the_image_that_their_workload_runs(spec: dict[str, Any], tag: str, counts: bool) -> None:
    assert image_counts({"spec": spec}, f"memcached:{tag}", Images()).problems == counts
    assert image_counts({"spec": spec}, "", Images()).problems == 0
