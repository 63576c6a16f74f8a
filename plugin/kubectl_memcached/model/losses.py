"""The items that are lost by following advice that names fields of a Memcached."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from kubectl_memcached.model.objects import Object, mapping

PATH: Final = re.compile(r"\bspec(?:\.\w+)+")
ARGUMENTS: Final = ("spec.cache.maxConnections", "spec.cache.verbosity", "spec.cache.extraArgs")
RESOURCES: Final = ("spec.resources.", "spec.agent.resources.")
AGENT: Final = (("tls",), ("auth",), ("monitoring",), ("rollout", "warmUp"))
"""The sections with which the pods have an agent."""
KEPT: Final = ("spec.tls.secretName", "spec.auth.secretName", "spec.rollout.paused", "spec.rollout.maxUnavailable")
"""Fields that the advice names, but does not tell the user to change, whose loss it names itself, or that change no
pod."""


def sentences(cr: Object, advice: Iterable[str]) -> Iterator[str]:
    """A sentence if advice names fields whose change replaces the pods of this Memcached."""
    text = "\n".join(advice)
    named = dict.fromkeys(PATH.findall(text))
    if losing := [field for field in named if _loses(field, mapping(cr, "spec"), lower=f"ower {field}" in text)]:
        yield f"Changing {' or '.join(losing)} replaces the pods, and their items are lost."


def _loses(field: str, spec: Object, *, lower: bool) -> bool:
    """Whether a change of a field replaces the pods. `lower`: the value becomes lower."""
    if field in KEPT:
        return False
    if spec.get("identity") != "Stable":
        return True
    warm = mapping(spec, "cache").get("warmRestart") is True
    grows = not warm and any(_is_enabled(spec, path) for path in AGENT)
    if field.startswith(RESOURCES):
        is_derived = field.startswith("spec.resources.limits") and "memory" not in mapping(spec, "cache")
        return is_derived and not grows
    return lower or not grows if field == "spec.cache.memory" else not (warm and field in ARGUMENTS)


def _is_enabled(spec: Object, path: tuple[str, ...]) -> bool:
    """Whether a section is present and not disabled."""
    section = mapping(spec, *path[:-1]).get(path[-1])
    return section is not None and mapping(spec, *path).get("enabled") is not False
