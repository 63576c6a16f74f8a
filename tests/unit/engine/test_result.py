import pytest

from memcached_operator.engine.writes.result import CONFLICT_PERIOD, MAX_COPIES, Result
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import CONFIG_MAPS, DEPLOYMENTS, SERVICES, STATEFULSETS, Key, Resource

IMMUTABLE_ADDRESS = ApiError(422, "Invalid", 'spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set')
IMMUTABLE_SPEC = ApiError(422, "Invalid", "spec: Forbidden: updates to statefulset spec for fields other than 'x'")
IMMUTABLE_FIELD = ApiError(422, "Invalid", 'spec.podManagementPolicy: Invalid value: "Parallel": field is immutable')
NEW_TRAFFIC = ApiError(
    422,
    "Invalid",
    'Service "cache" is invalid: spec.trafficDistribution: Unsupported value: "PreferSameZone": supported values: '
    '"PreferClose"',
)
OLD_CLUSTER = "Upgrade the cluster to Kubernetes 1.34 or later, or set spec.service.trafficDistribution to PreferClose"
DENIED = ApiError(422, "Invalid", "ValidatingAdmissionPolicy 'a' with binding 'a' denied request: missing label team")
DENIED_BY_WEBHOOK = ApiError(400, "BadRequest", 'admission webhook "a.b" denied the request: label team is required')
DENIED_TEMPLATE = ApiError(
    400,
    "BadRequest",
    'admission webhook "validate.kyverno.svc-fail" denied the request: \n\nresource Deployment/test/cache was blocked '
    "due to the following policies \n\nrequire-labels:\n  autogen-check-for-labels: 'validation error: The label "
    "`team` is required. rule autogen-check-for-labels failed at path /spec/template/metadata/labels/team/'",
)
DENIED_FIELD = ApiError(
    422,
    "Invalid",
    "ValidatingAdmissionPolicy 'a' with binding 'a' denied request: spec.template.metadata.labels: missing label team",
)
INHERITED = "Add what it requires to spec.inheritedMetadata, or change the policy"
REMEDIES: list[tuple[Resource, ApiError, str]] = [
    (
        SERVICES,
        IMMUTABLE_ADDRESS,
        "Run kubectl delete -n test --cascade=orphan --wait=false service/cache. The controller creates",
    ),
    (
        STATEFULSETS,
        IMMUTABLE_SPEC,
        "Run kubectl delete -n test --cascade=orphan --wait=false statefulset/cache, which keeps the",
    ),
    (
        STATEFULSETS,
        IMMUTABLE_FIELD,
        "Run kubectl delete -n test --cascade=orphan --wait=false statefulset/cache, which keeps the",
    ),
    (SERVICES, NEW_TRAFFIC, OLD_CLUSTER),
    (SERVICES, ApiError(422, "Invalid", "spec.ports: Required value"), ""),
    (SERVICES, ApiError(403, "Forbidden", "spec.clusterIP"), ""),
    (CONFIG_MAPS, IMMUTABLE_ADDRESS, ""),
    (CONFIG_MAPS, DENIED, INHERITED),
    (STATEFULSETS, DENIED_BY_WEBHOOK, INHERITED),
    (DEPLOYMENTS, DENIED_TEMPLATE, "Label the pods"),
    (STATEFULSETS, DENIED_FIELD, "Label the pods"),
    (CONFIG_MAPS, DENIED_FIELD, INHERITED),
]


@pytest.mark.parametrize(("resource", "error", "remedy"), REMEDIES)
def test_error_that_does_not_end_by_itself_has_a_remedy(resource: Resource, error: ApiError, remedy: str) -> None:
    result = Result(template_remedy=lambda: "label the pods")
    with result.record_errors(Key(resource, "test", "cache")):
        raise error
    (problem,) = result.problems
    cause = f"{resource.kind} cache cannot be applied: {error}"
    assert problem.message.startswith(f"{cause}. {remedy}" if remedy else cause)
    assert remedy or problem.message == cause


def test_policy_for_the_pod_template_is_the_only_remedy_without_a_field() -> None:
    """An AppService has no spec.podTemplate."""
    result = Result()
    with result.record_errors(Key(DEPLOYMENTS, "test", "app")):
        raise DENIED_TEMPLATE
    assert [each.message for each in result.problems] == [
        f"Deployment app cannot be applied: {DENIED_TEMPLATE}. Change the policy"
    ]


RIVALS = {
    "": "Delete or rename it, or use another name for this Memcached",
    "A or for B": "This operator creates it for only one of the two. Use another name for A or for B",
}


@pytest.mark.parametrize(("rivals", "remedy"), RIVALS.items())
def test_object_that_this_operator_would_create_again_is_not_to_be_deleted(rivals: str, remedy: str) -> None:
    result = Result()
    result.conflict(Key(SERVICES, "test", "cache"), "Service cache is X", "Memcached", is_copy=False, rivals=rivals)
    (problem,) = result.problems
    start = "Service cache is X. The object is not modified, and clients that use its name reach what it selects. "
    assert problem.message == f"{start}{remedy}"


def test_copies_are_one_problem_with_one_command() -> None:
    result = Result()
    for resource in (STATEFULSETS, SERVICES):
        key = Key(resource, "test", "cache")
        result.conflict(key, f"{resource.kind} cache has another value of spec.x", "Memcached", is_copy=True)
    result.end("Memcached")
    (problem,) = result.problems
    assert problem.reason == "Conflict"
    copies = "StatefulSet cache has another value of spec.x; Service cache has another value of spec.x"
    assert f"because they differ: {copies}. To have them created again, run" in problem.message
    assert (
        "run kubectl delete -n test --cascade=orphan --wait=false statefulset/cache service/cache. This keeps"
        in problem.message
    )
    assert result.requeue_after == CONFLICT_PERIOD


def test_command_for_many_copies_is_bounded() -> None:
    result = Result()
    for slot in range(1000):
        result.conflict(Key(SERVICES, "test", f"cache-{slot}"), "a", "Memcached", is_copy=True)
    result.end("Memcached")
    assert result.problems[0].message.count("service/") == MAX_COPIES


def test_nothing_is_reported_without_copies() -> None:
    result = Result()
    result.end("Memcached")
    assert not result.problems
