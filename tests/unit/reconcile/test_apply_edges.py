"""Changes that need more than an apply: of Services, whose node ports the API server allocates, and of others' maps."""

import pytest

from memcached_operator.kube.resource import SERVICES, Key, Object
from unit.fakes import merged
from unit.reconcile.test_apply import DEPLOYMENT, SERVICE, Owner, child


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


def test_service_is_applied_to_the_version_that_the_transfer_of_its_ownership_made() -> None:
    owner = Owner()
    owner.apply(child(), child(SERVICE, type="ClusterIP"))
    owner.api.calls.clear()
    owner.apply(child(), child(SERVICE, type="NodePort"))
    assert owner.api.verbs(SERVICES) == ["preparation_patch", "apply"]


def test_removal_of_a_map_of_another_client_needs_no_apply() -> None:
    """An apply would keep the map, and the API server would deny it."""
    owner = Owner()
    wanted = child(updateStrategy={"type": "OnDelete", "rollingUpdate": None})
    owner.apply(wanted)
    drifted = merged(owner.api.objects[DEPLOYMENT], {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1}}}})
    owner.api.put(DEPLOYMENT, drifted)
    owner.observe()
    owner.api.calls.clear()
    outcome = owner.apply(wanted)
    assert (outcome.problems, outcome.errors) == ([], [])
    assert owner.api.verbs() == ["preparation_patch"]
    assert owner.api.objects[DEPLOYMENT]["spec"]["updateStrategy"] == {"type": "OnDelete"}
