"""The field managers that have set the image of a cache."""

import re
from typing import Final

from kubectl_memcached.model.objects import Object, mapping, objects, text

MANAGER: Final = "kubectl-memcached-upgrade"
"""The field manager of the changes."""
ONE_OFF: Final = frozenset(
    {MANAGER, "kubectl-create", "kubectl-edit", "kubectl-patch", "kubectl-set", "kubectl-replace"}
)
"""Managers of single commands, which do not set the field again."""
GITOPS: Final = re.compile(r"argocd|kustomize-controller|helm|flux|fleet|rancher|kapp|config-?sync|reconciler-manager")
"""In the names of managers that set the field again from Git, whatever the operation."""
_CLIENT_SIDE: Final = "kubectl-client-side-apply"
_PLAIN: Final = re.compile(r"[\w.:/-]{1,63}", re.ASCII)
"""Names that are printed as they are."""
_SHOWN: Final = 40
"""Characters of another name that are printed."""


def owners(cr: Object) -> list[tuple[str, str]]:
    """The field managers that have set `spec.image`, with their operations. A default of admission has none."""
    entries = objects(cr, "metadata", "managedFields")
    found = [each for each in entries if "f:image" in mapping(each, "fieldsV1", "f:spec")]
    return [(text(each, "manager"), text(each, "operation")) for each in found]


def is_ours(cr: Object) -> bool:
    """Whether only this command owns the image: it was interrupted before it gave the image up."""
    return {name for name, _ in owners(cr)} == {MANAGER}


def obstacle(cr: Object, image: str, *, take_ownership: bool) -> str:
    """Why an owner of the image has to change it, with the remedy; empty if it can be changed. `image`: the new one."""
    for name, operation in owners(cr):
        shown = _shown(name)
        if GITOPS.search(name):
            return f"{shown} sets its image. Set it in what {shown} applies: `image: {image}`"
        if operation == "Apply" or (name == _CLIENT_SIDE and not take_ownership):
            return f"{shown} has set its image. Set `image: {image}` in the manifest and run kubectl apply"
        if name not in ONE_OFF and not take_ownership:
            return f"{shown} has set its image. Set it there: `image: {image}`. Or use --take-ownership"
    return ""


def _shown(name: str) -> str:
    """The name, which the client chooses: quoted and shortened if it could be read as a part of the sentence."""
    return name if _PLAIN.fullmatch(name) else repr(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…")
