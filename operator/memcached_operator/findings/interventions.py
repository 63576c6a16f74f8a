"""The texts about other clients that keep changing a child, with the remedy for each known client. Pure functions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from memcached_operator.findings.finding import Intervention
from memcached_operator.kube import texts
from memcached_operator.kube.field_managers import Manager, Path
from memcached_operator.kube.resource import Key, Object, nested_map

REVERTED: Final = "ChangesReverted"
"""The reason of the Events about such a client."""

REPLICAS: Final = ("spec", "replicas")
RESTART: Final = ("spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
"""The field that `kubectl rollout restart` sets. It is desired only with `spec.rollout.restartedAt`."""

MAX_FIELDS: Final = 3
"""Fields in a message."""

DOWNSCALER: Final = "downscaler/"
"""The prefix of the annotations that kube-downscaler, py-kube-downscaler and GoKubeDownscaler write and read."""


class Change(NamedTuple):
    """A change by another client that the controller reverts.

    `manager`: None if it is not known. `fields`: those that differ. `deleted`: the child was deleted. `live`: the child
    as the client left it. `replaced_intent`: the child has the digest of an intent that this process did not write.
    """

    manager: Manager | None
    fields: Sequence[Path] = ()
    deleted: bool = False
    live: Mapping[str, Any] = {}
    replaced_intent: bool = False


def reverted(cr: Object, key: Key, change: Change, restart: Callable[[Object], str] | None = None) -> Intervention:
    """The intervention of a client that keeps changing or deleting a child of `cr`.

    `restart`: see `ReconciledKind`.
    """
    child = f"{key.resource.kind} {key.name}"
    remedy = restart(cr) if restart is not None and RESTART in change.fields else ""
    if remedy:
        what = f"{child}: kubectl rollout restart was reverted, because spec.rollout.restartedAt sets this time"
    elif change.deleted:
        what = f"{child}: another client deleted it repeatedly, and the controller created it again"
    else:
        what = (
            f"{child}: another client changed {field_names(change.fields)} repeatedly, and the controller reverted it"
        )
    manager = "" if change.manager is None else f". Field manager: {_named(change.manager)}"
    text = f"{what}{manager}. {remedy or _remedy(cr, change)}"
    return Intervention(REVERTED, text, is_conflict=_is_of_autoscaler(change))


def field_names(paths: Sequence[Path]) -> str:
    """The first fields for messages, and the number of others."""
    names = [_field(path) for path in paths[:MAX_FIELDS]]
    more = f" and {len(paths) - MAX_FIELDS} more fields" if len(paths) > MAX_FIELDS else ""
    return ", ".join(names) + more


def _field(path: Path) -> str:
    """A path as in kubectl: the keys of labels and annotations, which contain dots, in brackets."""
    parts = (f"[{name}]" if "." in name or "/" in name else f".{name}" for name in path)
    return texts.name("".join(parts).removeprefix("."))


def _named(manager: Manager) -> str:
    subresource = f" (subresource {texts.name(manager.subresource)})" if manager.subresource else ""
    return f"{texts.name(manager.name or 'unknown')}{subresource}"


def _remedy(cr: Object, change: Change) -> str:
    return next(text(cr) for applies, text in _KNOWN if applies(change))


def _is_of_downscaler(change: Change) -> bool:
    annotations = nested_map(change.live, "metadata", "annotations")
    name = change.manager.name if change.manager else ""
    is_excluded = annotations.get(f"{DOWNSCALER}exclude") == "true"
    has_schedule = any(annotation.startswith(DOWNSCALER) for annotation in annotations) and not is_excluded
    return "downscaler" in name or (has_schedule and _scales(change))


def _is_of(change: Change, *names: str, prefix: str | None = None) -> bool:
    name = change.manager.name if change.manager else ""
    return name in names or (prefix is not None and name.startswith(prefix))


def _is_of_autoscaler(change: Change) -> bool:
    return _is_of(change, "kube-controller-manager") and _scales(change)


def _is_of_operator(change: Change) -> bool:
    return change.manager is not None and change.manager.is_operator


def _scales(change: Change) -> bool:
    return [*change.fields] == [REPLICAS]  # a list never equals a tuple


def _target(cr: Object) -> str:
    return f"spec.scaleTargetRef to apiVersion {cr['apiVersion']}, kind {cr['kind']}, name {cr['metadata']['name']}"


def _object(cr: Object) -> str:
    """The object as an argument of kubectl."""
    return f"-n {cr['metadata']['namespace']} {cr['kind'].lower()} {cr['metadata']['name']}"


def _exclude_from_downscaler(cr: Object) -> str:
    patch = f'{{"spec":{{"inheritedMetadata":{{"annotations":{{"{DOWNSCALER}exclude":"true"}}}}}}}}'
    return (
        f"A downscaler stops it. To exclude all objects of this {cr['kind']}, run "
        f"kubectl patch {_object(cr)} --type=merge -p '{patch}'"
    )


_KNOWN: Final[Sequence[tuple[Callable[[Change], bool], Callable[[Object], str]]]] = (
    (_is_of_downscaler, _exclude_from_downscaler),
    (
        _is_of_autoscaler,
        lambda cr: (
            f"A HorizontalPodAutoscaler scales it: see kubectl get hpa -n {cr['metadata']['namespace']}. Set its "
            f"{_target(cr)}. If a ScaledObject owns it, set this there, and spec.minReplicaCount to at least 1"
        ),
    ),
    (
        lambda change: _is_of(change, "keda") and _scales(change),
        lambda cr: f"Set in the ScaledObject {_target(cr)}, and spec.minReplicaCount to at least 1",
    ),
    (
        lambda change: _is_of(change, prefix="kubectl") and _scales(change),
        lambda cr: f"spec.size sets the number of pods: run kubectl scale {_object(cr)} --replicas=NUMBER instead",
    ),
    (
        lambda change: _is_of(change, prefix="kubectl"),
        lambda cr: f"Change the {cr['kind']} instead: kubectl edit {_object(cr)}",
    ),
    (
        lambda change: _is_of_operator(change) and change.replaced_intent,
        lambda _: (
            "Another instance of this operator writes it, too. List the instances with kubectl get deployments -A -l "
            "app.kubernetes.io/name=memcached-operator. Remove one, or set WATCH_NAMESPACE so that only one of them "
            "watches this namespace"
        ),
    ),
    (
        _is_of_operator,
        lambda _: "A webhook or a policy of the cluster changes what the controller writes. Exclude the object there",
    ),
    (
        lambda change: change.manager is None,
        lambda cr: f"The audit log of the API server names the client. {_exclude(cr)}",
    ),
    (lambda _: True, lambda cr: _exclude(cr)),
)
"""The other remedies, the most specific first."""


def _exclude(cr: Object) -> str:
    return (
        "Exclude the object in the configuration of that client. If it excludes objects by a label or an annotation, "
        f"spec.inheritedMetadata adds one to all objects of this {cr['kind']}"
    )
