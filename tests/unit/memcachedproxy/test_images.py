"""Known problems of the image of a proxy."""

import pytest

from memcached_api.annotations import PINNED_IMAGE_ANNOTATION
from memcached_api.images import Images
from memcached_operator.kube.resource import DEPLOYMENTS, key_of
from memcached_operator.memcachedproxy.controller import memcachedproxy as controller
from memcached_operator.memcachedproxy.images import problem_notice
from memcached_operator.memcachedproxy.references import reads
from memcached_operator.world.snapshot import Snapshot
from unit.builders import NOW, announced, memcachedproxy, slots
from unit.memcachedproxy.test_plan import IMAGE, KEY, deployment

META = memcachedproxy()["metadata"]
CR = announced(memcachedproxy())


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("memcached:1.6.38", "1.6.45 or later"),
        ("docker.io/library/memcached:1.6.44-alpine", "1.6.45-alpine or later"),
        ("memcached:1.6.45", ""),
        ("memcached:1.6", ""),
        ("example.com/memcached:1.6.38", ""),
        ("", ""),
    ],
)
def test_release_before_the_first_good_one_is_a_notice(image: str, release: str) -> None:
    notices = list(problem_notice(image, META))
    assert len(notices) == bool(release)
    assert all(f"Set spec.image of MemcachedProxy test/front to release {release}:" in each for each in notices)


@pytest.mark.parametrize("with_cache", [True, False])
def test_notice_ends_when_the_image_is_set(with_cache: bool) -> None:
    """Of the image that another default of the operator has pinned, even while the Memcached cannot be used."""
    kind = controller(Images("memcached:1.6.38"))
    referenced = {KEY: reads(slots(3))}
    live = deployment(kind.plan(Snapshot(CR, referenced=referenced), NOW))
    children = {key_of(DEPLOYMENTS, live): live}
    found = kind.plan(Snapshot(CR, children, referenced=referenced if with_cache else {}), NOW)
    assert [each.partition(",")[0] for each in found.notices] == ["memcached 1.6.38 has known problems"]
    updated = kind.plan(Snapshot(announced(memcachedproxy(image=IMAGE)), children, referenced=referenced), NOW)
    assert updated.notices == ()


def test_forged_pin_is_ignored_with_a_notice() -> None:
    kind = controller(Images(IMAGE))
    referenced = {KEY: reads(slots(3))}
    live = deployment(kind.plan(Snapshot(CR, referenced=referenced), NOW))
    live["metadata"]["annotations"][PINNED_IMAGE_ANNOTATION] = "not an image"
    found = kind.plan(Snapshot(CR, {key_of(DEPLOYMENTS, live): live}, referenced=referenced), NOW)
    assert [PINNED_IMAGE_ANNOTATION in each for each in found.notices] == [True]
    assert deployment(found)["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGE
