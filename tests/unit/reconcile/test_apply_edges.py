"""Changes that need more than an apply: of Services, whose node ports the API server allocates, and of others' maps."""

import pytest

from memcached_operator.kube.resource import Key, Object
from unit.reconcile.test_apply import DEPLOYMENT, SERVICE, Owner, child, reasons


@pytest.mark.parametrize(
    ("key", "changed", "verbs"),
    [
        (SERVICE, True, ["apply", "get", "apply"]),
        (SERVICE, False, ["apply"]),
        (DEPLOYMENT, True, ["apply"]),  # its status changes all the time
    ],
)
def test_only_the_known_version_of_a_service_is_applied(key: Key, changed: bool, verbs: list[str]) -> None:
    """The API server may still have an older one in its cache, and must notice before it allocates node ports."""
    owner = Owner()
    owner.apply(child(), child(SERVICE, type="NodePort"))
    owner.apply(child(), child(SERVICE, type="ClusterIP"))
    owner.api.calls.clear()
    if changed:
        owner.api.put(key, owner.api.objects[key])
    spec: Object = {"minReadySeconds": 4} if key == DEPLOYMENT else {"type": "NodePort"}
    others = child(SERVICE, type="ClusterIP") if key == DEPLOYMENT else child()
    outcome = owner.apply(child(key, **spec), others)
    assert (outcome.problems, outcome.errors) == ([], [])
    assert owner.api.verbs() == verbs
    assert owner.api.objects[key]["spec"] == spec


@pytest.mark.parametrize(("applied", "verb"), [(True, "scale"), (False, "preparation_patch")])
def test_child_that_another_owner_has_adopted_is_not_changed(applied: bool, verb: str) -> None:
    """The event of the adoption has not arrived."""
    owner = Owner(applied=applied)
    if applied:
        owner.apply(child(minReadySeconds=1, replicas=1))
    adopted: list[Object] = []
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "other", "controller": True}
    owner.api.hooks[verb].append(
        lambda: adopted.append(owner.api.put(DEPLOYMENT, owner.api.objects[DEPLOYMENT], ownerReferences=[theirs]))
    )
    result = owner.apply(child(minReadySeconds=1, replicas=2))
    assert (reasons(result), owner.api.objects[DEPLOYMENT]) == (["Conflict"], adopted[0])


def test_field_that_another_client_changes_before_the_child_is_scaled_is_restored() -> None:
    """It must not be mistaken for the effect of a policy, for which nothing is written again."""
    owner = Owner()
    owner.apply(child(minReadySeconds=1, replicas=1))
    live = owner.api.objects[DEPLOYMENT]
    changed = {**live, "spec": {**live["spec"], "minReadySeconds": 9}}

    def change() -> None:
        owner.api.put(DEPLOYMENT, changed)

    owner.api.hooks["scale"].append(change)
    owner.apply(child(minReadySeconds=1, replicas=2))
    assert owner.spec == {"minReadySeconds": 1, "replicas": 2}
