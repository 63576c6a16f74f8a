"""The second table of the admission policies: what the controller can do with an object that another client changed."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from integration.confined import ACCOUNT_NAMESPACE, CHILDREN, FOREIGN, LABELS, child, container, merged, owner, pod
from integration.issuing import CONFIGURATIONS, configuration
from integration.policy_rows import APPARMOR, EGRESS, OTHER_OWNER, OTHER_SPEC, TCP, not_written, spec, template
from memcached_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NETWORK_POLICIES,
    PROMETHEUS_RULES,
    SERVICES,
    Key,
    Object,
    Resource,
)
from memcached_operator.memcached.alerts.caches import GROUP, rules_of
from support.policies import message

NAME: Final = "stored"
Denied = Mapping[str, tuple[Object, ...]]
"""Denial → changes."""


class Stored(NamedTuple):
    """An object as another client stored it, and changes by the controller: allowed ones, and others by their denial.

    `deletion` is the denial of its deletion by the controller, and of a transfer of its fields; no message if allowed.
    """

    obj: Object
    resource: Resource
    allowed: tuple[Object, ...]
    denied: Denied
    deletion: str = ""

    @property
    def key(self) -> Key:
        """The key of the object."""
        return Key(self.resource, self.obj["metadata"].get("namespace", ""), self.obj["metadata"]["name"])

    @property
    def changes(self) -> list[tuple[str, Object]]:
        """All changes, each after its denial; an empty one if it is allowed."""
        denied = [(denial, each) for denial, changes in self.denied.items() for each in changes]
        return [*(("", each) for each in self.allowed), *denied]

    @property
    def name(self) -> str:
        """The name of the row in the output of a test."""
        return f"{self.resource.kind} {self.allowed or self.denied}"[:200]


def _child(resource: Resource, theirs: Object, *allowed: Object, denied: Denied) -> Stored:
    """A child after a change by another client."""
    return Stored(merged(child(resource, NAME), theirs), resource, allowed, denied)


def _foreign(resource: Resource, **meta: Any) -> Stored:
    """An object in a namespace of Kubernetes that has never been a child."""
    obj = merged(child(resource, NAME), {"metadata": {"namespace": FOREIGN, **meta}})
    claims = ({"labels": LABELS}, {"labels": {"stolen": "yes"}}, {"labels": LABELS, "ownerReferences": [owner()]})
    return Stored(obj, resource, (), {UNOWNED: tuple({"metadata": each} for each in claims)}, UNOWNED)


META: Final[tuple[Object, ...]] = (
    {"labels": {"a": "b"}},
    {"labels": {"app.kubernetes.io/name": None}},
    {"annotations": {"a": "b"}},
    {"finalizers": ["example.com/held"]},
)
UNOWNED: Final = message("changes and deletes an object only if")
NO_LABEL: Final = message("only with app.kubernetes.io/managed-by")
NO_OWNER: Final = message("only with a controller reference")
HOST_NETWORK: Final = not_written("spec.template.spec.hostNetwork")
OWNERS: Final = [owner(), OTHER_OWNER]
IMAGE: Final = container("image", "other:1")
KEPT: Final = {"name": "theirs", "rules": [{"record": "a", "expr": "vector(1)"}]}
RULES: Final = {"name": GROUP, "rules": rules_of(ACCOUNT_NAMESPACE, NAME)}
STORED_CHILDREN: Final = (
    *(_foreign(resource, labels=None, ownerReferences=None) for resource in CHILDREN),
    *(_foreign(resource, ownerReferences=[{**OTHER_OWNER, "controller": True}]) for resource in CHILDREN),
    # It can only be labelled again, or be adopted again, or be deleted.
    *(
        row
        for resource in CHILDREN
        if resource != CONFIG_MAPS  # the name of this child depends on that of the owner
        for other in (OTHER_SPEC[resource],)
        for row in (
            _child(
                *(resource, {"metadata": {"labels": None}}, {"metadata": {"labels": LABELS}}),
                denied={NO_LABEL: (other,)},
            ),
            _child(
                *(resource, {"metadata": {"ownerReferences": None}}, {"metadata": {"ownerReferences": [owner()]}}),
                denied={NO_OWNER: (other, *({"metadata": each} for each in META))},
            ),
        )
    ),
    _child(
        SERVICES,
        {"metadata": {"ownerReferences": OWNERS, "finalizers": ["example.com/held"]}},
        OTHER_SPEC[SERVICES],
        denied={},
    ),
    # The first write migrates the field ownership.
    _child(
        SERVICES, spec(type="LoadBalancer"), {"metadata": {"annotations": {"a": "b"}}}, spec(type="NodePort"), denied={}
    ),
    _child(
        SERVICES,
        spec(externalIPs=["192.0.2.1"]),
        spec(ports=[{"port": 81}]),
        denied={message("spec.externalIPs: "): (spec(externalIPs=["192.0.2.1", "192.0.2.2"]),)},
    ),
    _child(
        NETWORK_POLICIES,
        spec(**EGRESS),
        spec(policyTypes=["Ingress"]),
        denied={message("sets only ingress, podSelector"): (spec(policyTypes=["Ingress"], egress=[{"ports": [TCP]}]),)},
    ),
    _child(
        DEPLOYMENTS,
        template("annotations", **{APPARMOR: "unconfined"}),
        IMAGE,
        denied={
            message("metadata.annotations: memcached-operator writes"): (
                template("annotations", **{APPARMOR: "localhost/a"}),
            )
        },
    ),
    _child(
        DEPLOYMENTS,
        {"metadata": {"namespace": FOREIGN, "ownerReferences": OWNERS}, **template("labels", team="a")},
        IMAGE,
        denied={message("only its own labels in a namespace"): (template("labels", team="b"),)},
    ),
    # The second change is the remedy of docs/troubleshoot.md.
    _child(
        DEPLOYMENTS,
        pod("hostNetwork", True),
        OTHER_SPEC[DEPLOYMENTS],
        pod("", {"containers": [{"image": "other:1"}], "hostNetwork": None}),
        denied={HOST_NETWORK: (IMAGE,)},
    ),
    _child(
        PROMETHEUS_RULES,
        spec(groups=[KEPT]),
        spec(groups=[KEPT, RULES]),
        denied={message("spec.groups: "): (spec(groups=[{**KEPT, "rules": []}, RULES]),)},
    ),
)

FIRST_WEBHOOK: Final[tuple[Object, ...]] = (
    *(
        {"clientConfig": {"service": each}}
        for each in ({"name": "a"}, {"namespace": "a"}, {"path": "/a"}, {"port": 444})
    ),
    {"clientConfig": {"service": None, "url": "https://evil.example.com"}},
    {"failurePolicy": "Fail"},
    {"matchPolicy": "Exact"},
    {"namespaceSelector": {"matchLabels": {"a": "b"}}},
    {"objectSelector": {"matchLabels": {"a": "b"}}},
    {"timeoutSeconds": 1},
    {"admissionReviewVersions": ["v1", "v1beta1"]},
    {"name": "evil.example.com"},
    {"matchConditions": [{"name": "always", "expression": "false"}]},
    {"matchConditions": None},
    {"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}]},
)
"""Changes of the first webhook of a configuration."""
METADATA: Final[tuple[Object, ...]] = (
    *({"labels": None}, {"labels": {"a": "b"}}, {"annotations": {"cert-manager.io/inject-ca-from": "evil/evil"}}),
    *({"ownerReferences": [owner()]}, {"finalizers": ["example.com/held"]}),
)


def _configuration(resource: Resource) -> Stored:
    """A webhook configuration, of which only the certificate authorities can be changed."""
    obj = merged(configuration(Key(resource, "", NAME)), {"metadata": {"labels": {"ours": "yes"}}})
    condition = {"matchConditions": [{"name": "always", "expression": "true"}]}
    first, second = obj["webhooks"][0] | condition, obj["webhooks"][1]
    trusting = [merged(hook, {"clientConfig": {"caBundle": "YQ=="}}) for hook in (first, second)]
    only_mutating = ({"reinvocationPolicy": "IfNeeded"},) if resource == CONFIGURATIONS[0] else ()
    webhooks: list[Any] = [[merged(first, change), second] for change in (*FIRST_WEBHOOK, *only_mutating)]
    webhooks += [[first], None, [first, second, {**second, "name": "hook2.example.com"}]]
    return Stored(
        {**obj, "webhooks": [first, second]},
        resource,
        ({"webhooks": trusting}, {"webhooks": trusting, "metadata": {"managedFields": [{}]}}),
        {
            message("webhooks: "): tuple({"webhooks": each} for each in webhooks),
            message("changes only caBundle"): tuple({"metadata": each} for each in METADATA),
        },
        message("creates and deletes no webhook configurations"),
    )


STORED: Final = (*STORED_CHILDREN, *map(_configuration, CONFIGURATIONS))
