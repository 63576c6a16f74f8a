"""Secrets whose content pods may not have, because the kubelet does not read an immutable Secret again.

While a pod on its node uses an immutable Secret, the kubelet keeps its content, even for new pods and after the Secret
was deleted and created again (kubernetes pkg/kubelet/util/manager/watch_based_manager.go).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kubectl_memcached.model import units
from kubectl_memcached.model.objects import Object, first, mapping, objects, text

FIELDS: Final = (("auth", "secretName"), ("tls", "secretName"), ("tls", "clientCASecretName"))
"""The fields of a spec that name Secrets."""
SKEW: Final = 60.0
"""Seconds by which the clocks of a node and of the API server may differ."""
MAX_NAMES: Final = 3
"""Pods that a sentence names."""


@dataclass(frozen=True)
class Secret:
    """What is known of a Secret, without its content. `created`: seconds since 1970; None if it is not known."""

    immutable: bool = False
    created: float | None = None


def fields(cr: Object) -> dict[str, str]:
    """By the name of a Secret, the field of the spec that names it."""
    named = {text(cr, "spec", *path): f"spec.{'.'.join(path)}" for path in reversed(FIELDS)}
    return {name: field for name, field in named.items() if name}


def sentences(cr: Object, pods: Iterable[Object], known: Mapping[str, Secret]) -> Iterator[str]:
    """A sentence for each immutable Secret that was created after pods had mounted one of the same name."""
    listed = list(pods)
    for name, field in fields(cr).items():
        secret = known.get(name, Secret())
        older = [text(pod, "metadata", "name") for pod in listed if _mounted_before(pod, name, secret)]
        if older:
            shown = ", ".join(older[:MAX_NAMES]) + (f" and {len(older) - MAX_NAMES} more" * (len(older) > MAX_NAMES))
            yield (
                f"Secret {name} is immutable, and was created after {shown} had mounted a Secret of this name. Pods, "
                f"even new ones, may still get the content of the deleted Secret. {_remedy(field)}."
            )


def rejection(name: str, *, immutable: bool) -> str:
    """The end of a sentence about a memcached that rejects the users of a Secret."""
    if not immutable:
        return (
            f" {name}: it may not have reloaded them yet, or the kubelet keeps the content of a deleted immutable "
            "Secret of this name (docs/auth.md)"
        )
    return (
        f" {name}, which is immutable. If it was created again, pods, even new ones, may still get the content of the "
        f"deleted Secret. {_remedy('spec.auth.secretName')}"
    )


def _remedy(field: str) -> str:
    return (
        f"Create a Secret with another name, and set {field} to it: this replaces the pods, and their items are lost. "
        "A restart may have no effect"
    )


def _mounted_before(pod: Object, name: str, secret: Secret) -> bool:
    """Whether a pod had mounted a Secret of this name before the immutable one was created."""
    if not secret.immutable or secret.created is None or name not in _names(pod):
        return False
    since = _mounted_since(pod)
    return since is not None and since < secret.created - SKEW


def _names(pod: Object) -> Iterator[str]:
    """The Secrets in the volumes of a pod."""
    for volume in objects(pod, "spec", "volumes"):
        yield text(volume, "secret", "secretName")
        for source in objects(volume, "projected", "sources"):
            yield text(source, "secret", "name")


def _mounted_since(pod: Object) -> float | None:
    """The time at which a pod had its volumes, at the latest: in seconds since 1970. None if that is not known."""
    condition = first(objects(pod, "status", "conditions"), "type", "PodReadyToStartContainers")
    texts = [text(condition, "lastTransitionTime")] if condition.get("status") == "True" else []
    statuses = objects(pod, "status", "containerStatuses")
    texts += [text(mapping(status, "state", "running"), "startedAt") for status in statuses]
    return min((at for each in texts if (at := units.seconds(each)) is not None), default=None)
