"""API servers of every supported version accept what is generated for a third kind."""

import pytest

from integration.control_plane import ControlPlane
from memcached_operator.kube.resource import Object, Resource
from support import third_kind
from unit.config.rendered import render_directory

pytestmark = pytest.mark.server

ADMISSION = ("admissionregistration.k8s.io", "v1")
RESOURCES = {
    found.kind: found
    for found in (
        Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions"),
        Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles"),
        Resource(*ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        Resource(*ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        Resource(*ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    )
}


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[Object]:
    """The cluster-wide objects that mention the third kind."""
    root = tmp_path_factory.mktemp("project")
    third_kind.generate(root)
    rendered = render_directory(str(root / "config/default")).of(*RESOURCES)
    return [each for each in rendered if "widget" in str(each)]


def test_generated_objects_are_accepted(plane: ControlPlane, objects: list[Object]) -> None:
    assert {each["kind"] for each in objects} == set(RESOURCES)
    for each in objects:
        each["metadata"].pop("namespace", None)  # kustomize adds one to admission policies
        stored = plane.would_create(RESOURCES[each["kind"]], each)
        assert stored["metadata"]["name"] == each["metadata"]["name"]
