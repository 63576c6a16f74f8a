"""The operator is removed, the Memcached remains, and nothing blocks its deletion."""

from demo import waiting
from demo.cache.opening import OPERATOR
from demo.errors import DemoError
from demo.olm import objects
from demo.olm.installing import OWNED, WEBHOOKS
from demo.olm.objects import CATALOG_NAMESPACE, OPERATOR_NAMESPACE, PACKAGE, SECOND
from demo.olm.upgrading import check_unchanged
from demo.stage import Stage
from demo.waiting import Progress


def removes(stage: Stage) -> None:
    """Delete Subscription and release: OLM removes operator and webhooks; Memcached and pods remain."""
    before = objects.fingerprint(stage.pods())
    stage.show(["delete", "-n", OPERATOR_NAMESPACE, "subscription", PACKAGE])
    stage.show(["delete", "-n", OPERATOR_NAMESPACE, "clusterserviceversion", SECOND])
    waiting.wait(stage.screen, lambda: _removed(stage), "the removal of the operator")
    check_unchanged(before, objects.fingerprint(stage.pods()))
    stage.show(stage.kubectl.here("get", "memcacheds,pods"))
    stage.screen.say("The operator and its webhook configurations are removed; the pods keep running.")


def _removed(stage: Stage) -> Progress:
    left = stage.kubectl.items(["get", "deployments,pods", "-n", OPERATOR_NAMESPACE, "-l", OPERATOR])
    left += stage.kubectl.items(["get", WEBHOOKS, "-l", OWNED])
    return Progress(not left, f"{len(left)} objects left: {', '.join(each['metadata']['name'] for each in left[:3])}")


def cleans_up(stage: Stage) -> None:
    """The Memcached can be changed and deleted without the operator; after that, only the CRDs remain."""
    target = f"memcached/{stage.name}"
    stage.show(stage.kubectl.here("annotate", target, "demo=finished"))
    stage.show(stage.kubectl.here("delete", target, "--cascade=foreground"))
    if stage.pods():
        raise DemoError("the Memcached is deleted, but some of its pods are not")
    stage.show(["delete", "namespace", stage.kubectl.namespace, OPERATOR_NAMESPACE])


def next_steps(_: Stage) -> str:
    """What to try next, and how to clean up."""
    lines = (
        "Next steps:",
        "  docs/install.md                    install the operator on another cluster, with or without OLM",
        f"  kubectl -n {CATALOG_NAMESPACE} get catalogsource {PACKAGE}",
        "Clean up:",
        "  make uninstall                     the CustomResourceDefinitions, which OLM does not delete",
        "  make cluster-down                  the cluster itself, with OLM",
    )
    return "\n".join(lines)
