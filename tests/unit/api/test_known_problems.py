"""Known problems: of which releases and caches, and what is counted."""

from typing import Any

import pytest

from memcached_api.images import Images
from memcached_api.known_problems import corrected, known_problems, sentence
from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.memcached.images import count_images, problem_notice


@pytest.mark.parametrize(
    ("tag", "auth", "warm", "number"),
    [
        ("1.6.38", False, False, 3),
        ("1.6.38", True, False, 6),
        ("1.6.38", True, True, 7),
        ("1.6.41", True, True, 7),
        ("1.6.42", False, False, 2),
        ("1.6.42", True, False, 3),
        ("1.6.43", False, False, 2),
        ("1.6.43", True, True, 4),
        ("1.6.44", False, False, 1),
        ("1.6.44", True, True, 2),
        ("1.6.45", True, True, 0),
        ("1.6", True, True, 0),
    ],
)
def test_problems_are_those_of_the_release_and_of_what_the_cache_uses(
    tag: str, auth: bool, warm: bool, number: int
) -> None:
    found = known_problems(f"memcached:{tag}", auth=auth, warm_restart=warm)
    assert len(found) == number
    if found:
        assert corrected(found) == (1, 6, 45)
        more = f"; {number - 1} more" if number > 1 else ""
        assert sentence(f"memcached:{tag}", found, 1).endswith(f"{found[0].effect}{more}")


def test_caches_are_counted_by_what_their_status_reports_about_the_image_that_they_run() -> None:
    meta = {"namespace": "shop", "name": "a"}

    def cache(image: str, running: str) -> dict[str, Any]:
        notices = problem_notice(MemcachedSpec(image=image), running, meta)
        message = ". ".join(["All components are healthy", *notices])
        status = {"conditions": [{"type": "Degraded", "message": message}]}
        return {"metadata": meta, "spec": {"image": image}, "status": status}

    old, new = "memcached:1.6.38", "memcached:1.6.45"
    kept_by_a_pause, updated, without_status = cache(new, old), cache(new, new), {"spec": {"image": old}}
    variant = cache(f"{old}-alpine", f"{old}-alpine")
    others = [
        kept_by_a_pause | {"metadata": {**meta, name: value}} for name, value in (("name", "b"), ("namespace", "s"))
    ]
    forged = kept_by_a_pause | {"status": {"conditions": [{"message": "shop a has known problems, which x"}]}}
    listed = (kept_by_a_pause, variant, updated, without_status, forged, *others)
    assert [count_images([each], Images()).problems for each in listed] == [1, 1, 0, 0, 0, 0, 0]
