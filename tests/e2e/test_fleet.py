"""`kubectl memcached upgrade` with real pods: what the status says ends it, and GitOps and broken images stop it."""

import json
import re
from typing import Any

import pytest

from kubectl_memcached.model.owners import MANAGER
from support import kube
from support.kube import Object
from support.memcached import IMAGE, OTHER_IMAGE, SMALL, conditions, memcached, pods_of, wait_until_ready
from support.plugin import kubectl_memcached

pytestmark = pytest.mark.usefixtures("cluster")

MISSING = "localhost/memcached-operator/missing:1"
ONE_OFF = "--field-manager=kubectl-edit"
CACHES: dict[str, Object] = {
    "canary": {"identity": "Stable", "cache": {"memory": "64Mi", "warmRestart": True}},
    "other": {"identity": "Stable", "cache": {"memory": "16Mi"}},
    "owned": {"cache": {"memory": "16Mi"}},
}


def create(namespace: str) -> None:
    """Two caches with an old image that has no owner, and one that Flux applies."""
    for name, spec in CACHES.items():
        obj = memcached(namespace, name, image=OTHER_IMAGE, resources=SMALL, **spec)
        obj["metadata"]["labels"] = {"stage": name}
        kube.apply(obj, *(("--server-side", "--field-manager=kustomize-controller") if name == "owned" else (ONE_OFF,)))
    for name in CACHES:
        wait_until_ready(namespace, name)


def images(namespace: str) -> dict[str, set[str]]:
    """The images of the pods of each cache."""
    return {name: {pod["spec"]["containers"][0]["image"] for pod in pods_of(namespace, name)} for name in CACHES}


def upgrade(namespace: str, *words: str) -> tuple[int, Any, str]:
    """The exit code, the caches by name, and the lines of an upgrade."""
    done = kubectl_memcached("upgrade", "-n", namespace, *words, "--yes", "-o", "json")
    found: list[Any] = json.loads(done.stdout)["caches"] if done.stdout else []
    return done.returncode, {each["name"]: each for each in found}, done.stderr


def test_upgrade_ends_what_the_status_reports_and_leaves_others_alone(namespace: str) -> None:
    create(namespace)
    message = conditions(namespace, "canary")["Degraded"]["message"]
    assert "All components are healthy. memcached 1.6.38 has known problems, which 1.6.45 corrects: " in message
    command = re.search(r"Run kubectl memcached ([^,]+),", message)
    assert command is not None
    # An image that does not exist stops at the first cache.
    code, _, said = upgrade(namespace, "canary", "other", "owned", "--canary=stage=canary", f"--to={MISSING}")
    assert (code, f"the image {MISSING} of container memcached cannot be pulled" in said) == (1, True), said
    assert "1 cache unchanged. To go on, run the same command again" in said
    assert images(namespace)["other"] == images(namespace)["owned"] == {OTHER_IMAGE}
    back = re.search(r"To return it, run kubectl memcached (.*?)\. ", said)
    assert back is not None
    assert kubectl_memcached(*back[1].split(), "--yes").returncode == 0
    assert images(namespace)["canary"] == {OTHER_IMAGE}
    done = kubectl_memcached(*command[1].split(), "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cached items are kept" in done.stdout
    assert conditions(namespace, "canary")["Degraded"]["message"] == "All components are healthy"
    code, found, _ = upgrade(namespace, *CACHES)
    assert (code, {name: each["state"] for name, each in found.items()}) == (
        1,
        {"canary": "done", "other": "done", "owned": "skipped"},
    )
    assert found["owned"]["reason"].startswith("kustomize-controller sets its image. Set it in what")
    assert images(namespace) == {"canary": {IMAGE}, "other": {IMAGE}, "owned": {OTHER_IMAGE}}


def test_later_apply_takes_over_an_image_that_admission_had_set(namespace: str) -> None:
    obj = memcached(namespace, resources=SMALL, cache={"memory": "16Mi"})
    kube.apply(obj, "--server-side", "--field-manager=kustomize-controller")
    wait_until_ready(namespace)
    code, found, said = upgrade(namespace, "cache", f"--to={OTHER_IMAGE}")
    assert (code, found["cache"]["state"], found["cache"]["itemsKept"]) == (0, "done", False), said
    managed = kube.must_get("memcacheds", namespace, "cache")["metadata"]["managedFields"]
    assert MANAGER not in {each["manager"] for each in managed}
    obj["spec"]["image"] = IMAGE
    kube.apply(obj, "--server-side", "--field-manager=kustomize-controller")
    wait_until_ready(namespace)
    assert {pod["spec"]["containers"][0]["image"] for pod in pods_of(namespace)} == {IMAGE}
