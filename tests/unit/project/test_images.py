"""How the images are built and reach the cluster: recorded command lines of fake programs."""

import os
import subprocess
from pathlib import Path

import pytest

from cluster.errors import ClusterError
from project import images
from unit.cluster.programs import FakePrograms

DIGEST = "sha256:" + "0" * 64

IMAGE = "localhost/example/op:1"
IMAGES = images.Images(IMAGE, "localhost/example/op-agent:1")


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
    assert images.way("registry.example.com/op:1") == "pushes them"


def test_image_without_a_registry_is_not_pushed() -> None:
    with pytest.raises(ClusterError) as caught:
        images.push("BUNDLE_IMG", "localhost/a/b:v1", into_cluster=False)
    assert str(caught.value) == (
        "BUNDLE_IMG=localhost/a/b:v1 has no registry to push to: set one, for example "
        "BUNDLE_IMG=registry.example.com/b:v1"
    )


def test_images_for_another_cluster_are_built_from_the_base_images_of_the_dockerfile(programs: FakePrograms) -> None:
    programs.add("docker")
    images.build(IMAGES, ["BASE_IMAGE=", "BUILD_IMAGE="])
    command = f"docker build --file {images.ROOT}/Dockerfile --tag"
    assert [call for call in programs.calls() if call.startswith("docker build ")] == [
        f"{command} {IMAGES.operator} {images.ROOT}",
        f"{command} {IMAGES.agent} --target agent {images.ROOT}",
    ]


def test_both_images_reach_the_cluster(programs: FakePrograms) -> None:
    programs.add("kubectl", "echo kind-dev")
    programs.add("docker")
    programs.add("kind")
    images.provide(IMAGES)
    saved = [call for call in programs.calls() if call.startswith("docker save ")]
    assert [call.split()[-1] for call in saved] == [IMAGES.operator, IMAGES.agent]


@pytest.mark.parametrize(
    ("words", "agent"),
    [
        ([], "localhost/memcached-operator/memcached-operator-agent:0.1.0"),
        (["IMG=registry.example.com:5000/a/op:1"], "registry.example.com:5000/a/op-agent:1"),
        (["IMG=registry.example.com:5000/op"], "registry.example.com:5000/op-agent"),
        (["IMG=op:dev"], "localhost/op-agent:dev"),
        (["IMG=registry.example.com/op:1", "AGENT_IMG=other:2"], "localhost/other:2"),
        (
            [f"IMG=registry.example.com/op@{DIGEST}", f"AGENT_IMG=registry.example.com/other@{DIGEST}"],
            f"registry.example.com/other@{DIGEST}",
        ),
    ],
)
def test_image_of_the_agent_is_named_after_that_of_the_operator(words: list[str], agent: str) -> None:
    assert f'push AGENT_IMG "{agent}" ' in dry_run(*words).stdout


def test_digest_of_the_operator_does_not_name_the_agent() -> None:
    assert "IMG is a digest: set AGENT_IMG too" in dry_run(f"IMG=registry.example.com/op@{DIGEST}").stderr


def dry_run(*words: str) -> "subprocess.CompletedProcess[str]":
    """The commands of `make docker-push VERSION=0.1.0`, which are only printed."""
    command = ["make", "--dry-run", "docker-push", "VERSION=0.1.0", *words]
    environ = {"PATH": os.environ["PATH"]}
    return subprocess.run(command, cwd=images.ROOT, capture_output=True, text=True, check=False, env=environ)
