"""Reports what affects the clients or the pods of an object, although it does not belong to it.

Pods with its labels get its clients: its Services select pods by labels. The operator deletes none of them. An orphan
may have been kept for its items, and the pods of other owners are theirs.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from memcached_api import conditions as c
from memcached_operator.findings.finding import Problem
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube import texts
from memcached_operator.kube.labels import INSTANCE
from memcached_operator.kube.resource import NETWORK_POLICIES, Key
from memcached_operator.world.snapshot import Snapshot, Stray

MAX_NAMES: Final = 3
"""Maximum owners and pods in a message. The next ones follow when these do not have the labels any more."""


def problems(snapshot: Snapshot, rules: PodRules) -> Iterator[Problem]:
    """The problems that clients reach pods which do not belong to the object. They do not block its rollout."""
    found, meta = snapshot.strays, snapshot.cr["metadata"]
    texts = [_leftover(key, found.beside, rules) for key in found.workloads]
    texts += [_blocked(owner, meta["name"]) for owner in found.owners if owner.blocked_by][:MAX_NAMES]
    if owners := [owner for owner in found.owners if not owner.is_deleted]:
        texts.append(_of_others(owners, meta["name"], rules))
    if found.pods:
        texts.append(_without_owner(found.pods, meta["namespace"], meta["name"], rules))
    return (Problem(c.CONFLICT, text, blocks=False) for text in texts)


def notices(snapshot: Snapshot, rules: PodRules) -> Iterator[str]:
    """A sentence for each policy that an earlier object of this name has left, and for pods that will be deleted."""
    for key in snapshot.strays.policies:
        is_network = key.resource == NETWORK_POLICIES
        effect = "restricts the connections to" if is_network else "limits the evictions of"
        what = "the connections that it prevents" if is_network else "the evictions that it prevents"
        yield (
            f"{_name(key)} has no owner, but {effect} the pods of this {rules.kind}. It is not modified. To allow "
            f"{what}, run {_delete([key])}"
        )
    deleted = [owner for owner in snapshot.strays.owners if owner.is_deleted and not owner.blocked_by]
    yield from (_deleted(owner, snapshot.cr["metadata"]["name"]) for owner in deleted[:MAX_NAMES])


def _leftover(key: Key, beside: Iterable[Key], rules: PodRules) -> str:
    """The text about a workload that has lost its owner."""
    return (
        f"{_name(key)} has no owner, and Service {key.name} sends clients of this {rules.kind} to its pods as well"
        f"{', which have other items' if rules.loss else ''}. It is not modified. To delete it with its pods"
        f"{_items(rules)}, run {_delete([key, *beside])}"
    )


def _deleted(owner: Stray, service: str) -> str:
    """The text about pods of a workload that is being deleted."""
    return f"Service {service} also sends clients to pods of {_owner(owner)}, which is being deleted"


def _blocked(owner: Stray, service: str) -> str:
    """The text about pods of a workload whose deletion finalizers block."""
    return f"{_deleted(owner, service)}: {owner.blocked_by}. The controllers of the finalizers must remove them"


def _of_others(owners: Sequence[Stray], service: str, rules: PodRules) -> str:
    """The text about pods of other owners."""
    return (
        f"Pods of {_some(map(_owner, owners))} have the labels of this {rules.kind}, but do not belong to it, and "
        f"Service {service} sends clients to them as well. They are not modified. Give them another label {INSTANCE}, "
        f"or delete what owns them, with the pods{_items(rules)}"
    )


def _without_owner(pods: Sequence[str], namespace: str, service: str, rules: PodRules) -> str:
    """The text about pods without an owner."""
    names = " ".join(pods[:MAX_NAMES])
    return (
        f"Service {service} sends clients of this {rules.kind} to pods without an owner as well, because they have its "
        f"labels: {_some(pods)}. They are not modified. Delete them{_items(rules)}. Or, to keep them running without "
        f"these clients, run kubectl label pod {names} {INSTANCE}- -n {namespace}"
    )


def _items(rules: PodRules) -> str:
    """What is deleted with a pod, as the end of a clause."""
    return " and their items" if rules.loss else ""


def _name(key: Key) -> str:
    return f"{key.resource.kind} {key.name}"


def _owner(owner: Stray) -> str:
    return f"{texts.name(owner.kind)} {texts.name(owner.name)}"


def _some(names: Iterable[str]) -> str:
    """The first names, and whether there are others."""
    known = list(names)
    return f"{', '.join(known[:MAX_NAMES])}{' and others' if len(known) > MAX_NAMES else ''}"


def _delete(keys: Iterable[Key]) -> str:
    """The command that deletes objects of one namespace. It returns at once."""
    found = list(keys)
    names = " ".join(f"{key.resource.kind.lower()}/{key.name}" for key in found)
    return f"kubectl delete -n {found[0].namespace} --wait=false {names}"
