"""How the operator's image is built and reaches the cluster: recorded command lines of fake programs."""

from pathlib import Path

import pytest

from cluster.errors import ClusterError
from project import images
from unit.cluster.programs import FakePrograms

IMAGE = "localhost/example/op:1"


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakePrograms:
    """Fake programs, in the environment of a user with another cluster."""
    monkeypatch.setenv("KUBECONFIG", "/mine")
    return FakePrograms(monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("image", "local"),
    [
        ("localhost/op:1", True),
        ("localhost:5000/op:1", False),
        ("registry.example.com/localhost/op:1", False),
        ("quay.io/op@sha256:0", False),
    ],
)
def test_only_localhost_images_are_local(image: str, local: bool) -> None:
    assert images.is_local(image) is local


@pytest.mark.parametrize(
    ("given", "own", "arguments"),
    [
        (["BASE_IMAGE=", "BUILD_IMAGE=b:1"], False, ["BUILD_IMAGE=b:1"]),
        (["BASE_IMAGE="], True, [f"BASE_IMAGE={images.BASE}", f"BUILD_IMAGE={images.BUILD}"]),
        (["BASE_IMAGE=a=b"], True, ["BASE_IMAGE=a=b", f"BUILD_IMAGE={images.BUILD}"]),
    ],
)
def test_base_images_default_to_those_of_our_own_cluster(given: list[str], own: bool, arguments: list[str]) -> None:
    assert images.build_arguments(given, own=own) == arguments


@pytest.mark.parametrize(
    ("context", "command"),
    [
        ("kind-dev", "kind load image-archive ARCHIVE --name dev"),
        ("k3d-my-dev", "k3d image import ARCHIVE --cluster my-dev"),
        ("minikube", "minikube image load ARCHIVE --profile minikube"),
    ],
)
def test_image_is_loaded_by_the_tool_of_the_cluster(context: str, command: str, programs: FakePrograms) -> None:
    programs.add("kubectl", f"echo {context}")
    programs.add("docker")
    programs.add(command.split()[0])
    images.push("IMG", IMAGE, into_cluster=True)
    *_, save, load = programs.calls()
    archive = save.removeprefix("docker save --output ").removesuffix(f" {IMAGE}")
    assert Path(archive).is_absolute()
    assert load == command.replace("ARCHIVE", archive)


def test_other_clusters_need_an_image_of_a_registry(programs: FakePrograms) -> None:
    programs.add("kubectl", "echo gke_x")
    with pytest.raises(
        ClusterError, match=r"^the context gke_x is none of kind, k3d or minikube, and IMG=localhost/.+set"
    ):
        images.push("IMG", IMAGE, into_cluster=True)
    assert images.way("registry.example.com/op:1") == "pushes it"


def test_image_without_a_registry_is_not_pushed() -> None:
    with pytest.raises(ClusterError) as caught:
        images.push("BUNDLE_IMG", "localhost/a/b:v1", into_cluster=False)
    assert str(caught.value) == (
        "BUNDLE_IMG=localhost/a/b:v1 has no registry to push to: set one, for example "
        "BUNDLE_IMG=registry.example.com/b:v1"
    )


def test_image_for_another_cluster_is_built_from_the_base_images_of_the_dockerfile(programs: FakePrograms) -> None:
    programs.add("docker")
    images.build(IMAGE, ["BASE_IMAGE=", "BUILD_IMAGE="])
    assert [call for call in programs.calls() if call.startswith("docker build ")] == [
        f"docker build --file {images.ROOT}/Dockerfile --tag {IMAGE} {images.ROOT}"
    ]
