"""The images of a MemcachedProxy: known problems of them, and their numbers for metrics."""

from collections.abc import Iterator
from typing import Final

from memcached_api.image import Release, official_release, variant
from memcached_api.images import Images
from memcached_api.known_problems import NAME, text
from memcached_api.memcachedproxy.agent import asks_for_agent
from memcached_api.memcachedproxy.limits import MIN_RELEASE
from memcached_operator.kube.resource import Object
from memcached_operator.parts import images
from memcached_operator.parts.images import ImageCounts

EFFECT: Final = "its proxy loses requests or memory"


def problem_notice(image: str, meta: Object) -> Iterator[str]:
    """What can happen with the release in the tag of the image, and the remedy. `meta`: of the MemcachedProxy.

    Admission rejects such an image in `spec.image`. The operator can have another default image, or have had one.
    """
    if (release := _old_release(image)) is not None:
        yield (
            f"memcached {text(release)} has known problems, which {text(MIN_RELEASE)} corrects: {EFFECT}. Set "
            f"spec.image of MemcachedProxy {meta['namespace']}/{meta['name']} to release "
            f"{text(MIN_RELEASE)}{variant(image)} or later: each connection of a client is closed once"
        )


def image_counts(cr: Object, running: str, defaults: Images) -> ImageCounts:
    """Count one MemcachedProxy. `running`: the image in its workload. `defaults`: the images of this release."""
    return images.image_counts(cr, running, defaults, asks_for_agent, lambda _, image: _old_release(image) is not None)


def _old_release(image: str) -> Release | None:
    """The release in the tag of an image, if it is too old for a proxy."""
    release = official_release(image, NAME)
    return release if release is not None and release < MIN_RELEASE else None
