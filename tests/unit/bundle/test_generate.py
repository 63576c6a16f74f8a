"""Branches of the bundle generator that the committed bundle does not need: other releases, images and errors."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bundle import images
from bundle.__main__ import main
from bundle.catalog import Packed
from bundle.csv.permissions import permissions
from bundle.csv.webhooks import definitions
from bundle.errors import BundleError
from bundle.files import read_tree, write
from bundle.generate import bundle_files
from bundle.installer import installer
from bundle.objects import Object, Rendered, name_of
from bundle.release import ANNOTATIONS, CSV_FILE, DOCKERFILE, ROOT, Release, project_version, released
from memcached_api.images import DEFAULT_IMAGE, Images
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


def test_outdated_and_unexpected_files_are_reported_with_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle/left.yaml").write_text("a: 1\n")
    with pytest.raises(SystemExit, match=r"not as generated: bundle/a.yaml, bundle/left.yaml; run `make bundle`"):
        write(tmp_path, {"bundle/a.yaml": "b: 2\n"}, "bundle", check=True, command="make bundle")
    write(tmp_path, {"bundle/a.yaml": "b: 2\n"}, "bundle", check=False, command="make bundle")
    assert read_tree(tmp_path, "bundle") == {"bundle/a.yaml": "b: 2\n"}
    assert capsys.readouterr().out == "wrote bundle/a.yaml\nremoved bundle/left.yaml\n"


def test_object_of_an_unsupported_kind_is_an_error(rendered: Rendered) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate"}}
    with pytest.raises(BundleError, match=r"Job migrate is not supported in a bundle"):
        bundle_files(Rendered([*rendered.objects, job]), Release("1.0.0", "2030-01-02"), "", ())


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
    assert 0 < sum(len(text.encode()) for text in manifests) < 640_000


def test_images_of_the_release_are_in_the_bundle() -> None:
    related = {each["name"]: each["image"] for each in Packed(GOOD).csv()["spec"]["relatedImages"]}
    operator, agent = released(project_version()).images
    assert related == {
        "agent": agent,
        "memcached": DEFAULT_IMAGE,
        operator.rpartition("/")[2].partition(":")[0]: operator,
    }
    assert Images().agent == related["agent"], "of processes without RELATED_IMAGE_AGENT"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"channels": ()}, "CHANNELS=stable"),
        ({"default_channel": "fast"}, "'fast' is not one of stable"),
        ({"agent_image": "agents:1"}, "names only one image: set `image` and `agent-image`, or IMG and AGENT_IMG"),
    ],
)
def test_invalid_release_is_an_error(words: dict[str, Any], message: str) -> None:
    with pytest.raises(BundleError, match=message):
        Release("1.0.0", "2030-01-02", **words)


def test_binding_to_a_missing_role_is_an_error(rendered: Rendered) -> None:
    rendered.of("ClusterRoleBinding")[0]["roleRef"]["name"] = "other"
    with pytest.raises(BundleError, match=rf"a binding of {MANAGER} names the ClusterRole other"):
        permissions(rendered)


def webhook(source: Rendered) -> dict[str, Any]:
    return source.of("MutatingWebhookConfiguration")[0]["webhooks"][0]


def service(source: Rendered) -> Object:
    called = webhook(source)["clientConfig"]["service"]["name"]
    return next(each for each in source.of("Service") if name_of(each) == called)


BROKEN: list[tuple[Callable[[Rendered], object], str]] = [
    (lambda source: webhook(source)["clientConfig"]["service"].update(name="other"), "names the Service other"),
    (lambda source: webhook(source)["clientConfig"]["service"].update(port=444), "has no port 444"),
    (lambda source: service(source)["spec"].update(selector={"a": "b"}), "selects the pods of no Deployment"),
    (lambda source: service(source)["spec"]["ports"][0].update(targetPort="other"), "has no port named 'other'"),
    (lambda source: webhook(source).update(colour="red"), "has colour, which this generator does not support"),
]


@pytest.mark.parametrize(("change", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_webhook_that_cannot_be_converted_is_an_error(
    rendered: Rendered, change: Callable[[Rendered], object], message: str
) -> None:
    change(rendered)
    with pytest.raises(BundleError, match=message):
        definitions(rendered)


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
        ("", "install skopeo or crane"),
        ("echo no such image >&2; exit 1", "did not report the digest of op:1: no such image; push the image first"),
        ("echo latest", "did not report the digest of op:1"),
        (f'for last; do :; done; [ "$last" = docker://op:1 ] && echo {DIGEST}', ""),
    ],
)
def test_digest_of_an_image_or_the_reason_why_it_is_unknown(
    script: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if script:
        (tmp_path / "skopeo").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "skopeo").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    if message:
        with pytest.raises(BundleError, match=message):
            images.by_digest("op:1")
    else:
        assert images.by_digest("op:1") == f"op@{DIGEST}"
    assert images.by_digest(f"op@{DIGEST}") == f"op@{DIGEST}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "want one ClusterServiceVersion in config/manifests, got 0"),
        ("a: [", "standard input is not YAML"),
        ("a: 1", "without apiVersion, kind or metadata"),
    ],
)
def test_invalid_input_is_reported(text: str, message: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["generate", f"--output={tmp_path}"], input=text)
    assert isinstance(done.exception, BundleError)
    assert message in str(done.exception)
    assert list(tmp_path.iterdir()) == []
