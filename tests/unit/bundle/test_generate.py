"""What the bundle generator writes for other releases and images, and limits that no validator checks."""

import json
from copy import deepcopy
from pathlib import Path

import pytest
from click.testing import CliRunner

from bundle import images
from bundle.__main__ import main
from bundle.catalog import Packed
from bundle.installer import installer
from bundle.objects import Rendered
from bundle.release import ANNOTATIONS, CSV_FILE, DOCKERFILE, ROOT, project_version, released
from cluster.errors import ClusterError
from memcached_api.images import DEFAULT_IMAGE, Images
from project.generated import read_tree
from unit.config.rendered import render_directory

DIGEST = "sha256:" + "a" * 64
MANAGER = "memcached-operator-controller-manager"
OTHER_IMAGE = "registry.example.com/op:1"
OTHER_AGENT = "registry.example.com/agents:1"
GOOD = read_tree(ROOT, "bundle", DOCKERFILE)
"""The committed bundle."""


@pytest.fixture
def rendered() -> Rendered:
    """What kustomize renders for the bundle."""
    return Rendered(deepcopy(render_directory("config/manifests").objects))


def test_release_options_and_the_image_change_only_their_fields(tmp_path: Path, rendered: Rendered) -> None:
    words = [
        "--version=0.2.0",
        "--date=2030-01-02",
        "--channels=stable, fast",
        "--default-channel=fast",
        "--replaces=memcached-operator.v0.1.0",
        "--skips=memcached-operator.v0.1.1",
        "--skip-range=>=0.1.0 <0.2.0",
        f"--image={OTHER_IMAGE}",
        f"--agent-image={OTHER_AGENT}",
    ]
    text = "\n---\n".join(map(json.dumps, rendered.objects))
    done = CliRunner().invoke(main, ["generate", f"--output={tmp_path}", *words], input=text)
    assert done.exit_code == 0, done.output
    files = read_tree(tmp_path, "bundle", DOCKERFILE)
    assert {path for path in files if files[path] != GOOD[path]} == {CSV_FILE, ANNOTATIONS, DOCKERFILE}
    csv = Packed(files).csv()
    assert csv["metadata"]["name"] == "memcached-operator.v0.2.0"
    assert csv["metadata"]["annotations"]["olm.skipRange"] == ">=0.1.0 <0.2.0"
    assert csv["metadata"]["annotations"]["containerImage"] == OTHER_IMAGE
    assert (csv["spec"]["version"], csv["spec"]["replaces"]) == ("0.2.0", "memcached-operator.v0.1.0")
    assert csv["spec"]["skips"] == ["memcached-operator.v0.1.1"]
    assert "channel.default.v1: fast" in files[ANNOTATIONS]
    assert "channels.v1=stable,fast" in files[DOCKERFILE]
    related = {each["name"]: each["image"] for each in csv["spec"]["relatedImages"]}
    assert (related["op"], related["agent"]) == (OTHER_IMAGE, OTHER_AGENT)
    assert "localhost/" not in files[CSV_FILE]


def test_given_images_are_everywhere_in_the_installer(rendered: Rendered) -> None:
    text = installer(Rendered(rendered.of("Deployment")), OTHER_IMAGE, OTHER_AGENT)
    assert (text.count(f"image: {OTHER_IMAGE}\n"), text.count(f"value: {OTHER_AGENT}\n")) == (2, 2)
    assert "localhost/" not in text


def test_bundle_fits_into_a_config_map() -> None:
    """OLM v0 unpacks a bundle into a ConfigMap of at most 1 MiB, compressed; this keeps far below it."""
    manifests = [text for path, text in GOOD.items() if path.startswith("bundle/manifests/")]
    assert 0 < sum(len(text.encode()) for text in manifests) < 680_000


def test_images_of_the_release_are_in_the_bundle() -> None:
    related = {each["name"]: each["image"] for each in Packed(GOOD).csv()["spec"]["relatedImages"]}
    operator, agent = released(project_version()).images
    assert related == {
        "agent": agent,
        "memcached": DEFAULT_IMAGE,
        operator.rpartition("/")[2].partition(":")[0]: operator,
    }
    assert Images().agent == related["agent"], "of processes without RELATED_IMAGE_AGENT"


def test_names_of_webhook_definitions_fit_into_a_label_value() -> None:
    """OLM v0 sets this name as a label of the webhook configuration; no validator checks its length."""
    assert all(len(each["generateName"]) <= 63 for each in Packed(GOOD).csv()["spec"]["webhookdefinitions"])


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("memcached", "memcached"),
        ("memcached:1", "memcached"),
        ("registry.example.com:5000/a/b:1", "registry.example.com:5000/a/b"),
        ("registry.example.com:5000/a/b", "registry.example.com:5000/a/b"),
        (f"registry.example.com/b:1@{DIGEST}", "registry.example.com/b"),
    ],
)
def test_repository_of_an_image(image: str, name: str) -> None:
    assert images.repository(image) == name


def test_every_image_is_pinned(rendered: Rendered) -> None:
    deployments = images.pinned(rendered.of("Deployment"), lambda image: f"{images.repository(image)}@{DIGEST}")
    found = images.related_images(deployments)
    assert {each["name"] for each in found} == {"agent", "memcached", "memcached-operator"}
    assert all(each["image"].endswith(DIGEST) for each in found)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo no such image >&2; exit 1", "no such image"),
        (f'[ "$*" = "digest op:1" ] && echo {DIGEST}', ""),
    ],
)
def test_digest_of_an_image_or_the_reason_why_it_is_unknown(
    script: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "crane").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "crane").chmod(0o755)

    def built(_: object) -> Path:
        return tmp_path

    monkeypatch.setattr(images, "build_programs", built)
    if message:
        with pytest.raises(ClusterError, match=message):
            images.by_digest("op:1")
    else:
        assert images.by_digest("op:1") == f"op@{DIGEST}"
    assert images.by_digest(f"op@{DIGEST}") == f"op@{DIGEST}"
