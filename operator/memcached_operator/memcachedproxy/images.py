"""The images of a MemcachedProxy: known problems of them, and their numbers for metrics."""

from collections.abc import Iterable, Iterator
from typing import Final

from memcached_api.image import official_release, variant
from memcached_api.images import Images
from memcached_api.known_problems import NAME, REPORT, text
from memcached_api.memcachedproxy.agent import asks_for_agent
from memcached_api.memcachedproxy.limits import MIN_RELEASE
from memcached_operator.kube.resource import Object
from memcached_operator.shared import images
from memcached_operator.shared.images import ImageCounts, has_notice

EFFECT: Final = "its proxy loses requests or memory"


def problem_notice(image: str, meta: Object) -> Iterator[str]:
    """What can happen with the release in the tag of the image, and the remedy. `meta`: of the MemcachedProxy.

    Admission rejects such an image in `spec.image`. The operator can have another default image, or have had one.
    """
    release = official_release(image, NAME)
    if release is not None and release < MIN_RELEASE:
        corrected = f"{text(MIN_RELEASE)}{variant(image)}"
        yield (
            f"memcached {text(release)} {REPORT} {text(MIN_RELEASE)} corrects: {EFFECT}. {_remedy(meta)} to release "
            f"{corrected} or later: each connection of a client is closed once"
        )


def count_images(objects: Iterable[Object], defaults: Images) -> ImageCounts:
    """The numbers of MemcachedProxies. `defaults`: the images of this release."""
    return images.count_images(objects, defaults, asks_for_agent, _has_notice)


def _has_notice(obj: Object) -> bool:
    """Whether the status has the object's own problem_notice, in which the remedy has the object's name."""
    return has_notice(obj, lambda meta: [f"{_remedy(meta)} "])


def _remedy(meta: Object) -> str:
    """The remedy in a problem_notice. `meta`: of the MemcachedProxy."""
    return f"Set spec.image of MemcachedProxy {meta['namespace']}/{meta['name']}"
