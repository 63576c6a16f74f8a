"""The images of a Memcached: known problems of them, and their numbers for metrics."""

from collections.abc import Iterator, Mapping
from typing import Any

from memcached_api.image import repository, variant
from memcached_api.images import Images
from memcached_api.known_problems import corrected, known_problems, sentence, text
from memcached_api.memcached.agent import asks_for_agent
from memcached_api.memcached.rules.extstore import has_extstore
from memcached_api.memcached.rules.warm_restart import is_warm
from memcached_api.memcached.types import MemcachedSpec, needs_agent, restarts_warm
from memcached_api.values import is_object
from memcached_operator.kube.resource import Object
from memcached_operator.parts import images
from memcached_operator.parts.images import Chosen, ImageCounts


def chosen(spec: MemcachedSpec, live: Object | None, defaults: Images) -> Chosen:
    """The images of a Memcached. `live`: its workload, or None. `defaults`: those of this release."""
    return images.chosen(spec.image, spec.agent, live, defaults, has_agent=needs_agent(spec))


def problem_notice(spec: MemcachedSpec, image: str, meta: Object) -> Iterator[str]:
    """What can happen with the release in the tag of the image, and the remedy. `meta`: of the Memcached.

    It does not depend on the default image: a release of the operator writes no status, unless it knows more problems.
    The command names the image, because the default one can have the problems, too, or be of another variant.
    """
    warm = restarts_warm(spec)
    disk = spec.cache.extstore is not None
    found = known_problems(image, auth=spec.auth is not None, warm_restart=warm, extstore=disk)
    if found:
        release = text(corrected(found))
        to = f"{repository(image)}:{release}{variant(image)}"
        command = f"kubectl memcached upgrade -n {meta['namespace']} {meta['name']} --to {to}"
        yield (
            f"{sentence(image, found)}. Run {command}, or set spec.image to release {release}: "
            f"the cached items are {'kept' if warm else 'lost'}"
        )


def image_counts(cr: Object, running: str, defaults: Images) -> ImageCounts:
    """Count one Memcached. `running`: the image in its workload. `defaults`: the images of this release."""
    return images.image_counts(cr, running, defaults, asks_for_agent, _has_problems)


def _has_problems(spec: Mapping[str, Any], image: str) -> bool:
    """Whether an image has known problems for a cache with this spec, which is not decoded, and may be invalid."""
    auth, warm = is_object(spec.get("auth")), is_warm(spec)
    return bool(known_problems(image, auth=auth, warm_restart=warm, extstore=has_extstore(spec)))
