"""The remedies for the errors with which the API server rejects a pod, or a policy requires a label."""

import pytest

from memcached_api.remedies import text_of
from memcached_operator.appservice.containers import LACKS
from memcached_operator.findings import creation
from memcached_operator.findings.creation_remedies import remedy
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube.resource import Object
from unit.builders import deployment
from unit.findings.test_creation import FAILING, NO_SETS, QUOTA, RAISE, RULES, UNABLE, observed, of_replica_set

ADD = "add what it requires to spec.podTemplate.metadata, or change the policy"

REMEDIES: dict[str, tuple[str, str]] = {
    "quota": (QUOTA, RAISE),
    "quota for objects": (QUOTA.replace("pods=", "count/pods="), RAISE),
    "quota for resources": (QUOTA.replace("pods=", "limits.memory="), f"{RAISE} or spec.resources"),
    "quota for pods and resources": (QUOTA.replace("pods=1", "limits.memory=1,pods=1"), f"{RAISE} or spec.resources"),
    "quota with amounts": (
        "exceeded quota: mem, requested: limits.memory=1Gi, used: limits.memory=0, limited: limits.memory=1Mi",
        "raise ResourceQuota mem,",
    ),
    "quota that needs a limit": ("failed quota: cpu: must specify limits.cpu for: memcached", "spec.resources"),
    "limit": ("maximum memory usage per Container is 128Mi, but limit is 256Mi", "change the LimitRange, or lower"),
    "request": ("minimum cpu usage per Container is 1, but request is 100m", "change the LimitRange, or raise"),
    "sum": ("maximum cpu usage per Pod is 1, but limit is 2", "change the LimitRange, or lower"),
    "ratio": (
        "memory max limit to request ratio per Container is 1, but provided ratio is 2.0",
        "change the LimitRange",
    ),
    "account": (
        'error looking up service account sa/nope: serviceaccount "nope" not found',
        "create ServiceAccount nope in this namespace, or correct spec.podTemplate.spec.serviceAccountName",
    ),
    "priority": (
        "no PriorityClass with name nope was found",
        "create PriorityClass nope, or correct spec.podTemplate.spec.priorityClassName",
    ),
    "runtime": (
        'pod rejected: RuntimeClass "nope" not found',
        "create RuntimeClass nope, or correct spec.podTemplate.spec.runtimeClassName",
    ),
    "security": ('violates PodSecurity "restricted:latest": privileged', "lower the level in the label"),
    "default limit of a LimitRange": (
        'Pod "cache-0" is invalid: spec.containers[0].resources.requests: Invalid value: "128Mi": must be less than or '
        "equal to memory limit of 64Mi",
        "set spec.resources.limits, or set spec.agent.resources.limits for the container agent, or change the LimitR",
    ),
    "label that a policy requires": (
        "ValidatingAdmissionPolicy 'labels' with binding 'labels' denied request: missing required label team",
        ADD,
    ),
    "label that Gatekeeper requires": (
        'admission webhook "validation.gatekeeper.sh" denied the request: [must-have] you must provide labels: {"a"}',
        ADD,
    ),
    "label that Kyverno requires": (
        'admission webhook "validate.kyverno.svc-fail" denied the request: \n\nresource Pod/test/cache-0 was blocked '
        "due to the following policies \n\nrequire-labels:\n  check: 'validation error: The label `example.com/team` "
        "is required. rule check failed at path /metadata/labels/example.com/team/'",
        ADD,
    ),
    "annotation that a webhook requires": (
        'admission webhook "a.example.com" denied the request: annotation example.com/owner must be set',
        ADD,
    ),
    "label that must not be set": (
        'admission webhook "a.example.com" denied the request: label team must not be set',
        "",
    ),
    "label in another error": ("is invalid: metadata.labels: Invalid value: required label", ""),
    "webhook": ('admission webhook "a.example.com" denied the request: no', ""),
    "unknown": ("{}", ""),
}


@pytest.mark.parametrize(("text", "expected"), REMEDIES.values(), ids=REMEDIES.keys())
def test_remedy(text: str, expected: str) -> None:
    advice = text_of(remedy(f'pods "cache-0" is forbidden: {text}'))
    assert expected in advice
    assert bool(advice) is bool(expected)


def test_label_of_pods_without_a_field_for_it_is_a_matter_of_the_policy() -> None:
    """An AppService has no pod template."""
    text = "ValidatingAdmissionPolicy 'a' with binding 'a' denied request: missing required label team"
    assert PodRules("AppService", lacks=LACKS).advice(remedy(text)) == "change the policy"


def test_remedy_is_one_that_the_kind_has() -> None:
    """An AppService has neither an agent nor spec.podTemplate."""
    rules = PodRules("AppService", lacks=LACKS)
    for text, expected in (
        ("failed quota: cpu: must specify limits.cpu", "spec.resources, or create a LimitRange with default values"),
        ("maximum memory usage per Container is 1", "change the LimitRange, or lower spec.resources"),
        ('serviceaccount "default" not found', "create ServiceAccount default in this namespace"),
    ):
        assert rules.advice(remedy(text)).removeprefix("set what it names in ") == expected


SURGES: dict[str, tuple[Object, str, PodRules, str]] = {
    "one more pod": (deployment(conditions=FAILING, replicas=3), QUOTA, RULES, f"{text_of(RULES.surge)}; or {RAISE}"),
    "one more pod of a kind without the field": (
        deployment(conditions=FAILING, replicas=3),
        QUOTA,
        PodRules("AppService"),
        RAISE,
    ),
    "a pod that is missing": (deployment(conditions=FAILING, replicas=2), QUOTA, RULES, RAISE),
    "another error": (deployment(conditions=FAILING, replicas=3), 'RuntimeClass "a" not found', RULES, "create R"),
    "a ReplicaSet": (deployment(conditions=UNABLE, replicas=3), NO_SETS, RULES, "raise ResourceQuota none"),
}


@pytest.mark.parametrize(("live", "error", "rules", "expected"), SURGES.values(), ids=SURGES.keys())
def test_quota_without_room_for_the_additional_pod_of_a_rollout(
    live: Object, error: str, rules: PodRules, expected: str
) -> None:
    (problem,) = creation.problems(observed(live, of_replica_set(error)), rules)
    assert f"; {expected}" in problem.message
    assert ("maxSurge" in problem.message) is ("maxSurge" in expected)
