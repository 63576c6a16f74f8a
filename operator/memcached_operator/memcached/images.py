"""The images of a Memcached: known problems of them, and their numbers for metrics."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memcached_api.image import repository, variant
from memcached_api.images import Images
from memcached_api.known_problems import REPORT, corrected, known_problems, sentence, text
from memcached_api.memcached.agent import asks_for_agent
from memcached_api.memcached.types import MemcachedSpec, needs_agent, restarts_warm
from memcached_operator.kube.resource import Object, nested_list, nested_map
from memcached_operator.shared import images
from memcached_operator.shared.images import Chosen

_NOTICE = re.compile(rf"memcached \d+\.\d+\.\d+\S* {REPORT} \d+\.\d+\.\d+ corrects: ")
"""The start of a problem_notice."""


def chosen(spec: MemcachedSpec, live: Object | None, defaults: Images) -> Chosen:
    """The images of a Memcached. `live`: its workload, or None. `defaults`: those of this release."""
    return images.chosen(spec.image, spec.agent, live, defaults, has_agent=needs_agent(spec))


def problem_notice(spec: MemcachedSpec, image: str, meta: Object) -> Iterator[str]:
    """What can happen with the release in the tag of the image, and the remedy. `meta`: of the Memcached.

    It does not depend on the default image: a release of the operator writes no status, unless it knows more problems.
    The command names the image if the default one would replace another variant, such as `-alpine`.
    """
    warm = restarts_warm(spec)
    found = known_problems(image, auth=spec.auth is not None, warm_restart=warm)
    if found:
        release, suffix = text(corrected(found)), variant(image)
        to = f" --to {repository(image)}:{release}{suffix}" if suffix else ""
        yield (
            f"{sentence(image, found)}. {_command(meta)}{to}, or set spec.image to release {release}: "
            f"the cached items are {'kept' if warm else 'lost'}"
        )


class ImageCounts(NamedTuple):
    """Numbers of Memcacheds, by their images. They are only reported, as metrics."""

    outdated: int
    """With a `spec.image` that is not the default."""
    problems: int
    """With their own problem_notice in their status."""
    outdated_agents: int
    """With an agent whose `spec.agent.image` is not the default."""


def count_images(objects: Iterable[Object], defaults: Images) -> ImageCounts:
    """Count all in one walk: each object is decoded when it is reached. `defaults`: the images of this release."""
    outdated = problems = outdated_agents = 0
    for obj in objects:
        spec = nested_map(obj, "spec")
        outdated += spec.get("image", defaults.memcached) != defaults.memcached
        problems += _has_notice(obj)
        outdated_agents += asks_for_agent(spec) and (
            nested_map(spec, "agent").get("image", defaults.agent) != defaults.agent
        )
    return ImageCounts(outdated, problems, outdated_agents)


def _has_notice(obj: Object) -> bool:
    """Whether the status has the object's own problem_notice.

    Its spec does not name the image that a pause keeps, or that an annotation of the workload pins. A message can
    contain text of other clients, so the notice must have its releases, and the command with the object's name.
    """
    messages = [each.get("message", "") for each in nested_list(obj, "status", "conditions")]
    starts = [(each, _NOTICE.search(each)) for each in messages]
    rests = [each[start.end() :] for each, start in starts if start is not None]
    return any(f"{_command(obj['metadata'])}{end}" in rest for rest in rests for end in " ,")


def _command(meta: Object) -> str:
    """The remedy in a problem_notice. `meta`: of the Memcached."""
    return f"Run kubectl memcached upgrade -n {meta['namespace']} {meta['name']}"
