"""What GitOps tools take our objects for: kstatus's own library, and the script for Argo CD in docs/gitops.md."""

import asyncio
import json
from typing import NamedTuple

import pytest

from cluster.public.programs import GITOPS_FAMILY, directory, ensure_built
from integration.control_plane import ControlPlane
from integration.test_manager import IMAGE, cache, run_operator
from memcached_api.appservice.types import APPSERVICE
from memcached_api.images import Images
from memcached_operator.appservice.controller import APPSERVICES, appservice
from memcached_operator.engine.kind import Outcome
from memcached_operator.findings.finding import Problem
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import DEPLOYMENTS, Object, key_of
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from support import programs
from support.code_blocks import located
from support.kube import kubectl
from unit import builders
from unit.builders import NOW, crashed, deployment, pod, rolled_out, snapshot_of

pytestmark = pytest.mark.nightly  # it asks what other programs think of the objects, and builds them

PROGRAM = "gitops-health"
SCRIPT = located("gitops.md", "## Argo CD\n", languages=("lua",)).text


class Health(NamedTuple):
    """The results of kstatus and of the script."""

    kstatus: str
    argo: str


def healths(objects: list[Object]) -> list[Health]:
    """The results for each object."""
    ensure_built(GITOPS_FAMILY, [PROGRAM])
    command = [directory(GITOPS_FAMILY) / PROGRAM]
    given = json.dumps({"script": SCRIPT, "objects": objects})
    found = json.loads(programs.output(command, stdin=given))
    return [Health(each["kstatus"]["status"], each["argo"]["status"]) for each in found]


MEMCACHED_CONTROLLER, APPSERVICE_CONTROLLER = memcached(Images(IMAGE)), appservice()
PODS = (pod("a"), pod("b"), pod("c"))
NO_PROGRESS = {"Progressing": {"status": "False", "reason": "ProgressDeadlineExceeded"}}
PAUSED = {**rolled_out(), "spec": {"replicas": 3, "paused": True}}
INVALID, CONFLICT = (
    Problem("InvalidSpec", "spec.size: must be at least 1"),
    Problem("Conflict", "Service cache is not ours"),
)
PROGRESSING, HEALTHY = Health("InProgress", "Progressing"), Health("Current", "Healthy")
FAILED = Health("Failed", "Degraded")

Seen = tuple[Object | None, tuple[Object, ...], tuple[Problem, ...]]
SITUATIONS: dict[str, tuple[Seen, Health]] = {
    "ready": ((rolled_out(), PODS, ()), HEALTHY),
    "no child yet": ((None, (), ()), PROGRESSING),
    "pods are replaced": ((deployment(updatedReplicas=1), PODS, ()), PROGRESSING),
    "pods crash": ((deployment(updatedReplicas=2), (crashed(),), ()), Health("InProgress", "Degraded")),
    "a quota": ((rolled_out(), PODS, (Problem("ApplyFailed", "quota"),)), Health("InProgress", "Degraded")),
    "invalid": ((rolled_out(), PODS, (INVALID,)), FAILED),
    "a conflict": ((rolled_out(), PODS, (CONFLICT,)), FAILED),
    "no progress for 10 minutes": ((deployment(conditions=NO_PROGRESS), (crashed(),), ()), FAILED),
    "paused": ((PAUSED, PODS, ()), Health("Current", "Suspended")),
    "paused, without ready pods": (({**deployment(), "spec": {"replicas": 3, "paused": True}}, (), ()), PROGRESSING),
}


def observed(kind: str, seen: Seen) -> Object:
    """An object with the status that the controller writes in this situation."""
    live, pods, problems = seen
    controller = APPSERVICE_CONTROLLER if kind == APPSERVICE.name else MEMCACHED_CONTROLLER
    cr = builders.appservice("cache", size=3) if kind == APPSERVICE.name else builders.memcached(size=3)
    children = {} if live is None else {key_of(DEPLOYMENTS, live): live}
    found = controller.status(snapshot_of(cr, children, pods), Outcome(problems), NOW)
    return {**cr, "status": found.status}


@pytest.mark.parametrize("kind", ["Memcached", "AppService"])
def test_health_of_each_situation(kind: str) -> None:
    found = healths([observed(kind, seen) for seen, _ in SITUATIONS.values()])
    assert dict(zip(SITUATIONS, found, strict=True)) == {name: health for name, (_, health) in SITUATIONS.items()}


def test_a_change_that_the_controller_has_not_seen_is_in_progress() -> None:
    ready = observed("Memcached", SITUATIONS["ready"][0])
    changed = {**ready, "metadata": {**ready["metadata"], "generation": 2}}
    deleted = {**ready, "metadata": {**ready["metadata"], "deletionTimestamp": "2030-01-01T12:00:00Z"}}
    assert healths([changed, deleted]) == [PROGRESSING, Health("Terminating", "Progressing")]


def an_appservice(namespace: str) -> Object:
    """An AppService."""
    meta = {"name": "app", "namespace": namespace}
    spec = {"image": IMAGE, "size": 1, "ports": [{"port": 80}]}
    return {"apiVersion": APPSERVICES.api_version, "kind": APPSERVICES.kind, "metadata": meta, "spec": spec}


@pytest.mark.server
@pytest.mark.usefixtures("kubeconfig")
def test_objects_without_a_controller_are_in_progress_and_ready_with_one(plane: ControlPlane, namespace: str) -> None:
    """In both versions of the API, and `kubectl wait` ends when the pods are ready."""
    stored = [plane.create(MEMCACHEDS, cache(namespace)), plane.create(APPSERVICES, an_appservice(namespace))]
    older = json.loads(
        kubectl(
            "get", "memcacheds.v1alpha1.cache.example.com/cache", f"--namespace={namespace}", "--output=json"
        ).stdout
    )
    for obj in (*stored, older):
        assert obj["status"] == {"observedGeneration": -1}
    assert healths([*stored, older]) == [PROGRESSING] * 3

    async def scenario(client: ApiClient) -> None:
        for name in ("memcached/cache", "appservice/app"):
            wait = ("wait", "--for=condition=Ready", name, f"--namespace={namespace}", "--timeout=80s")
            await asyncio.to_thread(kubectl, *wait)
        found = [await client.get(key) for key in map(key_of, (MEMCACHEDS, APPSERVICES), stored)]
        assert healths([obj for obj in found if obj is not None]) == [HEALTHY, HEALTHY]

    run_operator(plane, (namespace,), scenario, kinds=(MEMCACHED_CONTROLLER, APPSERVICE_CONTROLLER))
