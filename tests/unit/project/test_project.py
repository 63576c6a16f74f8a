"""The commands that the Makefile runs: pure functions and error messages."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from cluster.errors import ClusterError
from project import catalogs, cli, deployment, environment, local
from project.images import Images
from unit.cluster.programs import FakePrograms
from unit.config.rendered import ROOT, render_directory

DIGEST = "sha256:" + "0" * 64
IMAGES = Images("op:1", "op-agent:1")


def test_deploy_sets_images_and_image_id_of_every_deployment(tmp_path: Path) -> None:
    directory = ROOT / "build" / tmp_path.name
    directory.mkdir(parents=True)
    try:
        text = deployment.kustomization("config/default", Images("localhost/op:dev", "localhost/ag:dev"), DIGEST)
        (directory / "kustomization.yaml").write_text(text)
        found = render_directory(f"build/{tmp_path.name}").of("Deployment")
    finally:
        (directory / "kustomization.yaml").unlink(missing_ok=True)
        directory.rmdir()
    assert sorted(each["metadata"]["name"] for each in found) == sorted(deployment.DEPLOYMENTS)
    for template in (each["spec"]["template"] for each in found):
        (container,) = template["spec"]["containers"]
        variables = {each["name"]: each.get("value") for each in container["env"]}
        assert (container["image"], variables["RELATED_IMAGE_AGENT"]) == ("localhost/op:dev", "localhost/ag:dev")
        assert variables["RELATED_IMAGE_MEMCACHED"], "the other variables stay"
        assert template["metadata"]["annotations"][deployment.IMAGE_ID] == DIGEST


def test_overlay_is_relative_to_the_build_directory() -> None:
    text = deployment.kustomization("config/overlays/namespaced", IMAGES, "")
    assert yaml.safe_load(text)["resources"] == ["../../config/overlays/namespaced"]


def test_deploy_without_real_pods_fails_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    programs = FakePrograms(monkeypatch, tmp_path)
    programs.add("kubectl")
    monkeypatch.setenv("CLUSTER", "control-plane")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(deployment, "use_cluster", lambda: None)
    with pytest.raises(ClusterError, match=r"simulated and run no containers: deploy as root"):
        deployment.deploy(IMAGES, "config/default")
    assert programs.calls() == []


def test_install_lists_every_kind_once_it_is_served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a list, kube-apiserver may take 5 minutes to delete the CRD."""
    programs = FakePrograms(monkeypatch, tmp_path)
    # The first list fails: the CRD is not served yet.
    programs.add("kubectl", f'test "$1" != get || test -e {tmp_path}/served || {{ : > {tmp_path}/served; exit 1; }}')
    monkeypatch.setattr(deployment, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(deployment, "use_cluster", lambda: None)
    deployment.install()
    crds = [yaml.safe_load(path.read_text())["spec"] for path in (ROOT / deployment.CRDS / "bases").iterdir()]
    lists = {
        f"kubectl get --raw /apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}?limit=1"
        for spec in crds
    }
    applied, first, *others = programs.calls()
    assert applied.startswith("kubectl apply ")
    assert first == others[0]
    assert set(others) == lists


def test_memcached_image_is_read_from_the_patch_of_the_deployment() -> None:
    patch = (ROOT / local.IMAGE_PATCH).read_text()
    assert local.memcached_image(patch) == yaml.safe_load(patch)[0]["value"]["value"]
    with pytest.raises(ClusterError, match=f"^{local.IMAGE_PATCH} has no image: set the value of {local.VARIABLE}$"):
        local.memcached_image("- op: add\n")


def test_each_release_replaces_the_previous_one() -> None:
    common = ["--image=op:1", "--agent-image=op-agent:1", "--date=2030-01-02", "--channels=stable"]
    assert catalogs.release_options(IMAGES, "2030-01-02", ["1.0.0", "1.1.0", "1.2.0"]) == [
        ["--version=1.0.0", *common],
        ["--version=1.1.0", *common, "--replaces=memcached-operator.v1.0.0"],
        ["--version=1.2.0", *common, "--replaces=memcached-operator.v1.1.0"],
    ]


def test_environment_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/mine")
    before = dict(os.environ)
    with environment.changed(KUBECONFIG=None, CLUSTER_NAME="other"):
        assert ("KUBECONFIG" in os.environ, os.environ["CLUSTER_NAME"]) == (False, "other")
        os.environ["KUBECONFIG"] = "/other"
    assert dict(os.environ) == before


@pytest.mark.parametrize("words", [["uninstall"], ["undeploy"]])
def test_without_a_cluster_there_is_nothing_to_remove(
    words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert cli.main(words) == 0
    assert capsys.readouterr().err == "No cluster is running: there is nothing to remove.\n"


def test_failed_kubectl_is_reported_in_one_sentence_after_its_own_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "kubectl"
    program.write_text("#!/bin/sh\necho 'error: must build at directory' >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert cli.main(["render", "config/none"]) == 1
    assert capfd.readouterr().err == (
        "error: must build at directory\nerror: `kubectl kustomize config/none` failed (3): see above\n"
    )


@pytest.mark.parametrize(
    "words",
    [["demo", "typo", "--image=op:1", "--agent-image=op-agent:1"], ["deploy"], ["deploy", "--image=op:1"]],
)
def test_invalid_arguments_are_usage_errors(words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    assert caught.value.code == 2


CLEANS_UP = """
import pathlib, signal, sys, time
try:
    pathlib.Path(sys.argv[1]).write_text("started")
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(0.5)
    pathlib.Path(sys.argv[1]).write_text("cleaned up")
"""
CALLER = """
import signal, sys
from project.environment import call, terminate
signal.signal(signal.SIGTERM, terminate)
try:
    call([sys.executable, "-c", *sys.argv[1:]])
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("terminated", [True, False], ids=["SIGTERM", "Ctrl-C"])
def test_interrupted_command_can_clean_up(terminated: bool, tmp_path: Path) -> None:
    state = tmp_path / "state"
    words = [sys.executable, "-c", CALLER, CLEANS_UP, str(state)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tools")}
    with subprocess.Popen(words, env=environ, start_new_session=True) as process:
        deadline = time.monotonic() + 60
        while not (state.exists() and state.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        if terminated:
            process.terminate()
        else:
            os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) == 130
    assert state.read_text() == "cleaned up"
