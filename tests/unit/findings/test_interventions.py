from collections.abc import Callable, Sequence

import pytest

from memcached_api.images import Images
from memcached_operator.engine.kind import ReconciledKind
from memcached_operator.findings.interventions import REPLICAS, RESTART, Change, reverted
from memcached_operator.kube.client import FIELD_MANAGER
from memcached_operator.kube.field_managers import Manager, Path
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, STATEFULSETS, Key, Object
from memcached_operator.memcached.controller import memcached as memcached_kind
from memcached_operator.memcachedproxy.controller import memcachedproxy as memcachedproxy_kind
from unit.builders import appservice, memcached, memcachedproxy

CR = memcached()
IMAGES = Images("example.com/memcached:1", "example.com/agent:1")
IMAGE: Path = ("spec", "template", "spec", "containers")
LABEL: Path = ("metadata", "labels", "app.kubernetes.io/name")
DOWNSCALED: Object = {"metadata": {"annotations": {"downscaler/original-replicas": "3"}}}
TARGET = "spec.scaleTargetRef to apiVersion cache.example.com/v1, kind Memcached, name cache"
EXCLUDED = """kubectl patch -n test memcached cache --type=merge -p \
'{"spec":{"inheritedMetadata":{"annotations":{"downscaler/exclude":"true"}}}}'"""

REMEDIES: dict[str, tuple[Change, str, str]] = {
    "kubectl scale": (
        Change(Manager("kubectl", "scale"), [REPLICAS]),
        "changed spec.replicas repeatedly, and the controller reverted it. Field manager: kubectl (subresource scale)",
        "kubectl scale -n test memcached cache --replicas=NUMBER",
    ),
    "kubectl edit": (Change(Manager("kubectl-edit"), [IMAGE]), "spec.template.spec", "kubectl edit -n test memcached"),
    "kubectl edit of the size": (Change(Manager("kubectl-edit"), [REPLICAS]), "kubectl-edit", "kubectl scale -n test"),
    "downscaler by its annotations": (Change(Manager("pykube-ng"), [REPLICAS], live=DOWNSCALED), "pykube-ng", EXCLUDED),
    "kubectl edit of an object with a downscaler": (
        Change(Manager("kubectl-edit"), [IMAGE], live=DOWNSCALED),
        "kubectl-edit",
        "kubectl edit -n test memcached",
    ),
    "kubectl scale of an object that is excluded": (
        Change(
            Manager("kubectl", "scale"), [REPLICAS], live={"metadata": {"annotations": {"downscaler/exclude": "true"}}}
        ),
        "kubectl (subresource scale)",
        "kubectl scale -n test memcached cache --replicas=NUMBER",
    ),
    "downscaler by its name": (Change(Manager("kubedownscaler"), [REPLICAS]), "kubedownscaler", EXCLUDED),
    "HorizontalPodAutoscaler": (
        Change(Manager("kube-controller-manager", "scale"), [REPLICAS]),
        "kube-controller-manager (subresource scale)",
        f"A HorizontalPodAutoscaler scales it: see kubectl get hpa -n test. Set its {TARGET}. If a Scaled",
    ),
    "KEDA": (Change(Manager("keda"), [REPLICAS]), "keda", f"Set in the ScaledObject {TARGET}"),
    "another instance": (
        Change(Manager(FIELD_MANAGER), [IMAGE], replaced_intent=True),
        FIELD_MANAGER,
        "kubectl get deployments -A -l app.kubernetes.io/name=memcached-operator",
    ),
    "policy": (Change(Manager(FIELD_MANAGER), [IMAGE]), FIELD_MANAGER, "A webhook or a policy of the cluster"),
    "unknown client": (
        Change(None, [LABEL]),
        "metadata.labels[app.kubernetes.io/name]",
        "The audit log of the API server names the client. Exclude the object in the configuration of that client",
    ),
    "key with a dot": (Change(None, [("metadata", "labels", "v1.2")]), "metadata.labels[v1.2]", "The audit log"),
    "other client": (Change(Manager("helm"), [LABEL]), "Field manager: helm", "spec.inheritedMetadata"),
    "deletion": (Change(None, deleted=True), "deleted it repeatedly, and the controller created it", "The audit log"),
    "restart of a kind without a field for it": (
        Change(Manager("kubectl-rollout"), [RESTART]),
        "changed spec.template.metadata.annotations[kubectl.kubernetes.io/restartedAt] repeatedly",
        "Change the Memcached instead: kubectl edit -n test memcached cache",
    ),
}


@pytest.mark.parametrize(("change", "cause", "remedy"), REMEDIES.values(), ids=REMEDIES.keys())
@pytest.mark.parametrize("form", [list, tuple])
def test_message_names_the_client_and_its_remedy(
    change: Change, cause: str, remedy: str, form: Callable[[Sequence[Path]], Sequence[Path]]
) -> None:
    change = change._replace(fields=form(change.fields))
    intervention = reverted(CR, Key(STATEFULSETS, "test", "cache"), change)
    assert (intervention.reason, intervention.is_conflict) == ("ChangesReverted", "A Horizontal" in remedy)
    assert intervention.message.startswith("StatefulSet cache: ")
    assert cause in intervention.message
    assert remedy in intervention.message


RESTARTS: dict[str, tuple[ReconciledKind, Object, str]] = {
    "Memcached": (
        memcached_kind(IMAGES),
        memcached(),
        "To replace the pods, whose items are lost, run kubectl memcached restart cache -n test, or set "
        "spec.rollout.restartedAt to the current time",
    ),
    "MemcachedProxy": (
        memcachedproxy_kind(IMAGES),
        memcachedproxy(),
        "To replace the pods, set spec.rollout.restartedAt to the current time: "
        "kubectl edit -n test memcachedproxy front",
    ),
}


@pytest.mark.parametrize(("kind", "cr", "remedy"), RESTARTS.values(), ids=RESTARTS)
def test_restart_has_the_remedy_of_the_kind(kind: ReconciledKind, cr: Object, remedy: str) -> None:
    """Only a Memcached has items, and a command of the plugin."""
    name = cr["metadata"]["name"]
    change = Change(Manager("kubectl-rollout"), [RESTART])
    message = reverted(cr, Key(DEPLOYMENTS, "test", name), change, kind.restart).message
    assert message.endswith(f"sets this time. Field manager: kubectl-rollout. {remedy}")


def test_message_names_the_kind() -> None:
    change = Change(Manager("kubectl", "scale"), [REPLICAS])
    assert "-n test appservice app" in reverted(appservice(), Key(SERVICES, "test", "app"), change).message


def test_message_is_bounded_and_quoted() -> None:
    fields = [("metadata", "labels", f"example.com/{'x' * 300}{number}\n") for number in range(9)]
    message = reverted(CR, Key(SERVICES, "test", "cache"), Change(Manager("m\n" * 500), fields)).message
    assert "\n" not in message
    assert len(message) < 1024
    assert "and 6 more fields" in message
