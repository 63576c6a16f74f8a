"""The requests of an upgrade."""

import json
from collections.abc import Sequence
from typing import Any, Final

from kubectl_memcached.cluster.caches import with_pods
from kubectl_memcached.cluster.kubectl import Kubectl, parsed
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.model import failing
from kubectl_memcached.model.objects import GROUP, RESOURCE, Object, full_name, integer, objects, text
from kubectl_memcached.model.owners import MANAGER, is_ours
from kubectl_memcached.model.upgrading import Step

_FIELDS: Final = "--show-managed-fields"
MAX_NAMESPACES: Final = 5
"""In which the default image is asked for."""
_TRIES: Final = 3
"""Of removing our entry from the field managers, whose order other clients can change at the same time."""


def caches(kubectl: Kubectl, names: Sequence[str], selector: str, *, everywhere: bool) -> list[Object]:
    """The Memcacheds with their field managers: those with the names, or those with the labels. Raises PluginError.

    `names`: each with or without its namespace.
    """
    if names:
        return list({full_name(cr): cr for cr in (_named(kubectl, name) for name in names)}.values())
    options = [*(["--all-namespaces"] if everywhere else []), *([f"--selector={selector}"] if selector else [])]
    return kubectl.list("list Memcacheds", RESOURCE, _FIELDS, *options)


def labelled(kubectl: Kubectl, selector: str, namespaces: Sequence[str]) -> set[str]:
    """The full names of the Memcacheds with the labels in some namespaces. Raises PluginError."""
    options = ("list Memcacheds", RESOURCE, f"--selector={selector}")
    return {full_name(cr) for namespace in namespaces for cr in kubectl.list(*options, namespace=namespace)}


def _named(kubectl: Kubectl, name: str) -> Object:
    namespace, _, own = name.rpartition("/")
    return kubectl.get(f"read Memcached {name}", RESOURCE, own, _FIELDS, namespace=namespace)


def default_image(kubectl: Kubectl, namespaces: Sequence[str]) -> str:
    """The image that admission sets in a new Memcached, by a dry run in the first namespace that accepts it.

    A quota or a policy of one namespace can reject it. Raises PluginError if none accepts it.
    """
    problems: list[PluginError] = []
    for namespace in namespaces[:MAX_NAMESPACES]:
        try:
            return _default_image(kubectl, namespace)
        except PluginError as error:
            problems.append(error)
    raise PluginError(f"{problems[0]} Name an image with --to.", problems[0].code)


def _default_image(kubectl: Kubectl, namespace: str) -> str:
    what = "ask for the default image with a dry run"
    obj: dict[str, Any] = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Memcached",
        "metadata": {"generateName": "upgrade-"},
        "spec": {},
    }
    options = ("--dry-run=server", "--filename=-", "-o=json")
    output, _ = kubectl.change(what, "create", *options, namespace=namespace, stdin=json.dumps(obj))
    image = text(parsed(output, what), "spec", "image")
    if not image:
        raise PluginError("Admission of this cluster sets no default image.", ExitCode.MISSING)
    return image


def warnings(kubectl: Kubectl, step: Step) -> list[str]:
    """What admission says about the change, by a dry run. Raises PluginError if it denies it."""
    return _patch(kubectl, step, "--dry-run=server")[1]


def change(kubectl: Kubectl, step: Step) -> int:
    """Set the image; returns the generation of the spec. Raises PluginError."""
    return integer(_patch(kubectl, step)[0], "metadata", "generation") or 0


def disown(kubectl: Kubectl, step: Step) -> None:
    """Remove our entry from the field managers, if there is no other one of the image. Raises PluginError.

    If no client had set the image before, none has afterwards: a later `kubectl apply` sets it without a conflict.
    """
    for _ in range(_TRIES):
        obj = current(kubectl, step)
        if not is_ours(obj):
            return
        entries = [text(each, "manager") for each in objects(obj, "metadata", "managedFields")]
        path = f"/metadata/managedFields/{entries.index(MANAGER)}"
        operations = [{"op": "test", "path": f"{path}/manager", "value": MANAGER}, {"op": "remove", "path": path}]
        words = ["patch", RESOURCE, step.name, "--type=json", f"--field-manager={MANAGER}", "-o=name"]
        what, patch = f"give up the image of Memcached {step.name}", f"--patch={json.dumps(operations)}"
        try:
            kubectl.change(what, *words, patch, namespace=step.namespace)
        except PluginError as error:
            if error.code != ExitCode.CLUSTER:
                raise
        else:
            return


def current(kubectl: Kubectl, step: Step) -> Object:
    """The Memcached of a step. Raises PluginError."""
    return kubectl.get(f"read Memcached {step.name}", RESOURCE, step.name, _FIELDS, namespace=step.namespace)


def pods(kubectl: Kubectl, cr: Object) -> list[Object]:
    """The pods of a Memcached if its image can be the problem; none otherwise. Raises PluginError."""
    return with_pods(kubectl, cr).objects if failing.is_possible(cr) else []


def is_deleted(error: PluginError, step: Step) -> bool:
    """Whether the API server has replied that the Memcached does not exist. Without its API, it does not say so."""
    return error.code == ExitCode.MISSING and error.reason == f'{RESOURCE} "{step.name}" not found'


def _patch(kubectl: Kubectl, step: Step, *options: str) -> tuple[Object, list[str]]:
    """Set the image, unless another client has changed it since it was read."""
    test = [{"op": "test", "path": "/spec/image", "value": step.image}] if step.image else []
    operations = [*test, {"op": "add", "path": "/spec/image", "value": step.target}]
    what = f"change the image of Memcached {step.name}"
    words = ["patch", RESOURCE, step.name, "--type=json", f"--field-manager={MANAGER}", *options]
    output, said = kubectl.change(
        what, *words, f"--patch={json.dumps(operations)}", "-o=json", _FIELDS, namespace=step.namespace
    )
    return parsed(output, what), said
