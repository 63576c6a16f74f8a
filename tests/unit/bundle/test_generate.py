"""The bundle generator: complete, reproducible output from the objects that kustomize renders."""

import os
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from bundle import images
from bundle.catalog import CATALOG, Packed
from bundle.csv.permissions import permissions
from bundle.csv.webhooks import definitions
from bundle.errors import BundleError
from bundle.files import read_tree, write
from bundle.generate import bundle_files, file_name
from bundle.installer import INSTALLER, installer
from bundle.objects import Object, Rendered
from bundle.release import ANNOTATIONS, CSV_FILE, DOCKERFILE, ROOT, Release, project_version, released
from unit.bundle.tree import CONFIG, GOOD
from unit.config.rendered import render_directory

ICON = CONFIG["config/manifests/bases/icon.svg"]
DIGEST = "sha256:" + "a" * 64
MANAGER = "memcached-operator-controller-manager"


def rendered(directory: str = "config/manifests") -> Rendered:
    return Rendered(deepcopy(render_directory(directory).objects))


def release_of(version: str, **words: Any) -> Release:
    """A release with a fixed date."""
    return Release(version, "2030-01-02", **words)


def generated(release: Release, deployments: list[Object] | None = None) -> dict[str, str]:
    source = rendered()
    deployments = deployments or images.with_image(source.of("Deployment"), release.operator_image)
    return bundle_files(source, release, ICON, deployments)


def csv_of(files: dict[str, str]) -> Any:
    return Packed(files).csv()


def run(*words: str, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m bundle`."""
    env = {**os.environ, "PYTHONPATH": "tools", **environ}
    command = [sys.executable, "-m", "bundle", *words]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, cwd=ROOT, env=env)


def test_bundle_in_the_tree_is_up_to_date() -> None:
    files = {path: text for path, text in GOOD.items() if path != CATALOG}
    assert generated(released(project_version())) == files


def test_installer_in_the_tree_is_up_to_date() -> None:
    image = released(project_version()).operator_image
    assert installer(rendered("config/default"), image) == (ROOT / INSTALLER).read_text()


@pytest.mark.parametrize("seed", ["1", "2"])
def test_output_does_not_depend_on_timezone_locale_or_hash_seed(seed: str, tmp_path: Path) -> None:
    source = yaml.safe_dump_all(rendered().objects, sort_keys=False)
    done = run("generate", "--output", str(tmp_path), stdin=source, PYTHONHASHSEED=seed, TZ="Asia/Tokyo", LC_ALL="C")
    assert not done.returncode, done.stderr
    assert read_tree(tmp_path, "bundle", DOCKERFILE) == {p: text for p, text in GOOD.items() if p != CATALOG}
    again = run("generate", "--check", "--output", str(tmp_path), stdin=source)
    assert (again.returncode, again.stdout) == (0, "")


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


def test_every_rendered_object_is_in_the_bundle_or_the_csv() -> None:
    names = {Path(path).name for path in GOOD}
    spec = csv_of(GOOD)["spec"]
    deployments = {each["name"] for each in spec["install"]["spec"]["deployments"]}
    left_out = {
        (each["kind"], each["metadata"]["name"])
        for each in rendered().objects
        if file_name(each) not in names and each["metadata"]["name"] not in deployments
    }
    assert {kind for kind, _ in left_out} == {
        # These are in the ClusterServiceVersion, are created by OLM, or are in a file with another name.
        "Namespace", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "Service", "AppService", "Memcached",
        "ClusterServiceVersion", "Configuration", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
    }  # fmt: skip
    assert {name for kind, name in left_out if kind in ("Role", "ClusterRole", "Service")} == {
        "memcached-operator-leader-election-role",
        "memcached-operator-manager-role",
        "memcached-operator-webhook-service",
    }


def test_object_of_an_unsupported_kind_is_an_error() -> None:
    source = rendered()
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate"}}
    with pytest.raises(BundleError, match=r"Job migrate is not supported in a bundle"):
        bundle_files(Rendered([*source.objects, job]), release_of("1.0.0"), ICON, source.of("Deployment"))


def test_release_options_change_only_their_fields() -> None:
    release = release_of(
        "0.2.0",
        channels=("stable", "fast"),
        default_channel="fast",
        replaces="memcached-operator.v0.1.0",
        skips=("memcached-operator.v0.1.1",),
        skip_range=">=0.1.0 <0.2.0",
    )
    files = generated(release)
    csv = csv_of(files)
    assert csv["metadata"]["name"] == "memcached-operator.v0.2.0"
    assert csv["metadata"]["annotations"]["olm.skipRange"] == ">=0.1.0 <0.2.0"
    assert (csv["spec"]["version"], csv["spec"]["replaces"]) == ("0.2.0", "memcached-operator.v0.1.0")
    assert csv["spec"]["skips"] == ["memcached-operator.v0.1.1"]
    for path in (ANNOTATIONS, DOCKERFILE):
        assert "channels.v1" in files[path]
        assert "stable,fast" in files[path]
    assert "channel.default.v1: fast" in files[ANNOTATIONS]
    assert {path for path in files if files[path] != GOOD[path]} == {CSV_FILE, ANNOTATIONS, DOCKERFILE}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"channels": ()}, "CHANNELS=stable"),
        ({"default_channel": "fast"}, "'fast' is not one of stable"),
    ],
)
def test_invalid_release_is_an_error(words: dict[str, Any], message: str) -> None:
    with pytest.raises(BundleError, match=message):
        release_of("1.0.0", **words)


def test_conversion_and_namespaces_are_removed() -> None:
    source = rendered()
    for crd in source.of("CustomResourceDefinition"):
        crd["spec"]["conversion"] = {"strategy": "Webhook"}
    files = bundle_files(source, release_of("1.0.0"), ICON, source.of("Deployment"))
    for path, text in files.items():
        if path.startswith("bundle/manifests/") and path != CSV_FILE:
            assert "namespace" not in yaml.safe_load(text)["metadata"], path
            assert "conversion" not in yaml.safe_load(text).get("spec", {}), path


def test_bound_rules_become_permissions_of_their_service_account() -> None:
    manager, webhook = permissions(rendered())
    assert manager["serviceAccountName"] == MANAGER
    assert webhook == {"serviceAccountName": "memcached-operator-webhook", "rules": []}
    granted = {resource for rule in manager["rules"] for resource in rule["resources"]}
    assert {"memcacheds", "appservices", "deployments", "leases"} <= granted
    assert not granted & {"secrets", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"}


def test_binding_to_a_missing_role_is_an_error() -> None:
    source = rendered()
    source.of("ClusterRoleBinding")[0]["roleRef"]["name"] = "other"
    with pytest.raises(BundleError, match=rf"a binding of {MANAGER} names the ClusterRole other"):
        permissions(source)


def first_webhook(source: Rendered) -> dict[str, Any]:
    return source.of("MutatingWebhookConfiguration")[0]["webhooks"][0]


def break_service(source: Rendered) -> None:
    first_webhook(source)["clientConfig"]["service"]["name"] = "other"


def break_port(source: Rendered) -> None:
    first_webhook(source)["clientConfig"]["service"]["port"] = 444


def break_selector(source: Rendered) -> None:
    for service in source.of("Service"):
        service["spec"]["selector"] = {"a": "b"}


def break_target(source: Rendered) -> None:
    for service in source.of("Service"):
        service["spec"]["ports"][0]["targetPort"] = "other"


def break_field(source: Rendered) -> None:
    first_webhook(source)["colour"] = "red"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (break_service, "mmemcached.cache.example.com names the Service other"),
        (break_port, "has no port 444"),
        (break_selector, "selects the pods of no Deployment"),
        (break_target, "has no port named 'other'"),
        (break_field, "has colour, which this generator does not support"),
    ],
)
def test_webhook_without_a_target_is_an_error(change: Any, message: str) -> None:
    source = rendered()
    change(source)
    with pytest.raises(BundleError, match=message):
        definitions(source)


def test_webhook_definitions_use_the_container_port() -> None:
    found = definitions(rendered())
    assert len(found) == 4
    assert {(each["deploymentName"], each["containerPort"], each["targetPort"]) for each in found} == {
        ("memcached-operator-webhook", 443, 9443)
    }


def test_names_of_webhook_definitions_fit_into_a_label_value() -> None:
    """OLM v0 sets this name as a label of the webhook configuration; no validator checks its length."""
    names = [each["generateName"] for each in definitions(rendered())]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 63 for name in names)


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


def test_given_image_replaces_the_operator_image_everywhere() -> None:
    deployments = images.with_image(rendered().of("Deployment"), "registry.example.com/op:1")
    csv = csv_of(generated(release_of("0.1.0"), deployments))
    assert csv["metadata"]["annotations"]["containerImage"] == "registry.example.com/op:1"
    assert [each["image"] for each in csv["spec"]["relatedImages"]] == [
        "docker.io/library/memcached:1.6.38",
        "registry.example.com/op:1",
    ]
    assert "localhost/" not in yaml.safe_dump(csv)
    assert installer(rendered("config/default"), "registry.example.com/op:1").count("registry.example.com/op:1") == 4


def test_use_image_digests_replaces_every_tag(tmp_path: Path) -> None:
    """A script replaces skopeo, which reads digests from a registry."""
    program = tmp_path / "skopeo"
    program.write_text(f'#!/bin/sh\nfor last; do :; done\necho "$last" >> {tmp_path}/arguments\necho {DIGEST}\n')
    program.chmod(0o755)
    source = yaml.safe_dump_all(rendered().objects)
    path = f"{tmp_path}:/usr/bin:/bin"
    done = run("generate", "--use-image-digests", "--output", str(tmp_path), stdin=source, PATH=path)
    assert not done.returncode, done.stderr
    csv = csv_of(read_tree(tmp_path, "bundle"))
    found = {each["name"]: each["image"] for each in csv["spec"]["relatedImages"]}
    ours = released(project_version()).operator_image
    assert found == {
        "memcached": f"docker.io/library/memcached@{DIGEST}",
        images.repository(ours).rpartition("/")[2]: f"{images.repository(ours)}@{DIGEST}",
    }
    assert ":1.6.38" not in yaml.safe_dump(csv["spec"]["install"])
    assert "docker://docker.io/library/memcached:1.6.38" in (tmp_path / "arguments").read_text().splitlines()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("", "install skopeo or crane"),
        ("echo no such image >&2; exit 1", "did not report the digest of op:1: no such image; push the image first"),
        ("echo latest", "did not report the digest of op:1"),
    ],
)
def test_unknown_digest_is_reported_in_one_sentence(
    script: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if script:
        (tmp_path / "skopeo").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "skopeo").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BundleError, match=message):
        images.by_digest("op:1")
    assert images.by_digest(f"op@{DIGEST}") == f"op@{DIGEST}"


@pytest.mark.parametrize(
    ("stdin", "message"),
    [
        ("", "want one ClusterServiceVersion in config/manifests, got 0"),
        ("a: [", "standard input is not YAML"),
        ("a: 1", "without apiVersion, kind or metadata"),
    ],
)
def test_invalid_input_is_reported_in_one_sentence(stdin: str, message: str, tmp_path: Path) -> None:
    done = run("generate", "--output", str(tmp_path), stdin=stdin)
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_every_command_has_help() -> None:
    for command in ("generate", "catalog", "installer", "compatible", "subscription"):
        done = run(command, "--help")
        assert done.returncode == 0
        assert len(done.stdout.splitlines()) > 4
