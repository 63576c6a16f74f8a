"""Each step checks its result; a failure is reported in one sentence."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from demo.errors import DemoError
from demo.kubectl import Done, Kubectl, typed

from demo import cli, scenes
from demo.cache import admission, closing, healing, opening, serving
from demo.stage import Stage
from unit.demo.fakes import FakeKubectl, failed, memcached, pod, screen

DENIAL = failed('The Memcached "x" is invalid: spec.size: Invalid value: 0: must be at least 1; delete it instead')
NODES = {"items": [{"metadata": {"name": "one"}}]}
PODS = {"items": [pod("a", "10.0.0.1"), pod("b", "10.0.0.2"), pod("c", "10.0.0.3")]}
GETENT = "10.0.0.1 STREAM\n10.0.0.2 STREAM\n10.0.0.3 STREAM\n"
HEADING = "NAME  SIZE  READY  AVAILABLE  DEGRADED  PORT  AGE  MEMORY  IMAGE  REASON  MESSAGE\n"
CONDITIONS = "Available=True X: x\nProgressing=False X: x\nDegraded=False X: x\n"


def stage(outputs: Mapping[str, Any]) -> Stage:
    """A stage whose sample is already applied."""
    return Stage(FakeKubectl(outputs), screen(), Path("sample.yaml"), "cache", 3)


def deployment(component: str, available: int) -> dict[str, Any]:
    """One of the operator's Deployments."""
    labels = {"app.kubernetes.io/component": component}
    status = {"availableReplicas": available} if available else {}
    return {"metadata": {"name": component, "labels": labels}, "spec": {"replicas": 2}, "status": status}


def check_fails(step: Callable[[Stage], object], outputs: Mapping[str, Any], message: str) -> None:
    """Check that the step fails with this message."""
    with pytest.raises(DemoError, match=message):
        step(stage(outputs))


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (
            {"get nodes": failed("error: stat /x: no such file")},
            r"no cluster responds \(stat /x: no such file\); start",
        ),
        (
            {"-o json": {"items": [{"metadata": {"annotations": {opening.SIMULATED_NODE: "fake"}}}]}},
            "are simulated and run no containers; run `make demo` as root",
        ),
        ({"-o json": NODES, "get crd": failed("NotFound")}, "is not installed; run `make deploy` first"),
        ({"deployments": {"items": []}, "-o json": NODES}, "controller-manager and webhook is missing; run `make dep"),
        ({"deployments": {"items": [deployment("webhook", 2)]}, "-o json": NODES}, "controller-manager is missing"),
    ],
    ids=["no cluster", "simulated nodes", "no CRD", "no operator", "no controller"],
)
def test_operator_must_be_running(outputs: Mapping[str, Any], message: str) -> None:
    check_fails(opening.operator_works, outputs, message)


def test_one_available_replica_is_enough() -> None:
    found = [deployment("controller-manager", 1), deployment("webhook", 2)]
    assert opening.available(found) == (True, "controller-manager 1/2, webhook 2/2", "")
    assert not opening.available([deployment("controller-manager", 0), deployment("webhook", 2)]).done


def test_user_does_not_need_access_to_nodes() -> None:
    found = {"items": [deployment("controller-manager", 1), deployment("webhook", 2)]}
    on = stage({"get nodes": failed("nodes is forbidden"), "deployments": found})
    opening.operator_works(on)


@pytest.mark.parametrize(
    ("phases", "command"),
    [
        ([""], "create namespace demo"),
        (["Active"], "delete -n demo memcacheds --all --cascade=foreground"),
        (["Terminating", ""], "create namespace demo"),
    ],
)
def test_namespace_is_created_or_cleaned(phases: list[str], command: str) -> None:
    on = stage({"get namespace": phases})
    opening.clean_namespace(on)
    assert isinstance(on.kubectl, FakeKubectl)
    assert on.kubectl.commands[-1] == command


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({"apply": Done(0, "created", "")}, "accepted, but must be denied"),
        ({"apply": failed("failed calling webhook")}, "but not with the message 'must be at least 1'"),
        ({"apply": DENIAL, "get": memcached()}, "was denied, but the object exists"),
    ],
)
def test_invalid_object_must_be_denied(outputs: Mapping[str, Any], message: str) -> None:
    check_fails(admission.denies, outputs, message)


def test_invalid_object_is_denied() -> None:
    admission.denies(stage({"apply": DENIAL}))


DEFAULTED = {"size": 1, "containerPort": 11211, "image": "memcached:1"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"image": ""}, "admission set no image"),
        ({"containerPort": 80}, "admission set containerPort to 80 instead"),
        ({"size": 2}, "admission set size to 2 instead"),
    ],
)
def test_defaults_must_be_set(spec: dict[str, Any], message: str) -> None:
    check_fails(admission.sets_defaults, {"create": {"spec": DEFAULTED | spec}}, message)


def test_webhook_without_endpoints_is_retried() -> None:
    outputs = [failed("failed calling webhook: no endpoints"), {"spec": DEFAULTED}]
    admission.sets_defaults(stage({"create": outputs}))


READY = {"get -n demo memcached cache": memcached(), "get -n demo pods": PODS}


def test_status_must_list_the_live_pods() -> None:
    check_fails(
        lambda on: on.wait_ready("it"),
        {**READY, "get -n demo pods": {"items": [pod("a"), pod("b"), pod("d")]}},
        "lists a, b, c, but the live pods are a, b, d",
    )


def test_terminating_pod_is_ignored() -> None:
    terminating = {"metadata": {"name": "old", "deletionTimestamp": "now"}}
    stage({**READY, "get -n demo pods": {"items": [*PODS["items"], terminating]}}).wait_ready("it")


def test_deleted_memcached_ends_the_wait() -> None:
    check_fails(lambda on: on.wait_ready("it"), {}, "the Memcached cache does not exist any more")


def test_sample_of_another_kind_is_reported_by_name() -> None:
    check_fails(
        serving.becomes_pods, {"apply": {"kind": "List", "items": []}}, r"sample\.yaml must contain one Memcached"
    )


def values_of(*addresses: str) -> str:
    """The correct output for pods with these addresses."""
    return "".join(f"== {each}\nSTORED\r\nVALUE greeting 0 5\r\nhello\r\nEND\r\n" for each in addresses)


def test_every_pod_must_return_the_value() -> None:
    output = {"getent": GETENT, "bash": values_of("10.0.0.1", "10.0.0.3")}
    check_fails(serving.every_pod_answers, {**READY, **output}, r"10\.0\.0\.2 did not return 'hello'")


def test_all_pods_return_the_value() -> None:
    output = {"getent": ["", GETENT], "bash": values_of("10.0.0.1", "10.0.0.2", "10.0.0.3")}
    serving.every_pod_answers(stage({**READY, **output}))


def test_scaling_to_zero_must_be_denied() -> None:
    five = memcached(5, 5, ("a", "b", "c", "d", "e"))
    outputs = {
        "--replicas=0": Done(0, "scaled", ""),
        "get -n demo memcached cache": [five, five, memcached()],
        "get -n demo pods": [{"items": [pod(name) for name in "abcde"]}, PODS],
    }
    check_fails(serving.scales, outputs, "accepted, but must be denied")


def test_deployment_must_exist_before_it_is_deleted() -> None:
    check_fails(healing.deployment_comes_back, READY, "Deployment cache does not exist")


def test_recreated_deployment_has_another_uid() -> None:
    uids = [{"metadata": {"uid": uid}} for uid in ("1", "1", "2")]
    after = memcached(nodes=("d", "e", "f"))
    pods = {"items": [pod(name) for name in "def"]}
    on = stage({"get -n demo deployment": uids, "get -n demo memcached": [memcached(), after], "pods": pods})
    healing.deployment_comes_back(on)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({"wide": "NAME SIZE\n"}, "kubectl does not show the columns READY, AVAILABLE"),
        (
            {"wide": HEADING, "jsonpath": "Available=True X: x\n"},
            "the conditions are Available instead of Available, Progressing, Degraded",
        ),
        ({"wide": HEADING, "jsonpath": ""}, "the conditions are none instead"),
    ],
)
def test_missing_columns_and_conditions_fail_the_step(outputs: Mapping[str, Any], message: str) -> None:
    check_fails(closing.shows_status, outputs, message)


def test_columns_and_conditions_pass() -> None:
    closing.shows_status(stage({"wide": HEADING, "jsonpath": CONDITIONS}))


def test_next_steps_on_the_projects_own_cluster(tmp_path: Path) -> None:
    program = tmp_path / "cache/memcached-operator/bin/kubectl"
    program.parent.mkdir(parents=True)
    program.write_text("")
    program.chmod(0o755)
    config = f"{tmp_path}/state/memcached-operator/one/kubeconfig"
    text = closing.next_steps(
        stage({}),
        {
            "KUBECONFIG": config,
            "PATH": str(program.parent),
            "XDG_CACHE_HOME": f"{tmp_path}/cache",
            "XDG_STATE_HOME": f"{tmp_path}/state",
        },
    )
    assert f"export KUBECONFIG={config}\n" in text
    assert f'export PATH="$PATH:{program.parent}"\n' in text
    assert "kubectl delete namespace demo\n" in text
    assert "make cluster-down" in text


def test_next_steps_on_another_cluster() -> None:
    text = closing.next_steps(stage({}), {"KUBECONFIG": "/mine", "PATH": "/nowhere"})
    assert "export KUBECONFIG=/mine\n" in text
    assert "PATH=" not in text
    assert "cluster-down" not in text


def test_missing_kubectl_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cli.main([]) == 1
    assert "Step 1 failed: kubectl is not on the PATH" in capfd.readouterr().err


def test_interrupted_demo_prints_how_to_clean_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: Stage) -> None:
        raise KeyboardInterrupt

    replaced = replace(scenes.SCENES["olm"], steps=(("First", "", interrupted),))
    monkeypatch.setitem(scenes.SCENES, "olm", replaced)
    assert cli.main(["--scenes", "olm", "--namespace", "demo"]) == 130
    assert "run: kubectl delete namespace demo memcached-operator-system\n" in capsys.readouterr().err


def test_number_of_passed_steps_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    steps: tuple[scenes.Step, ...] = (("First", "", lambda _: None), ("Second", "", lambda _: None))
    monkeypatch.setitem(scenes.SCENES, "cache", replace(scenes.SCENES["cache"], steps=steps))
    assert cli.main([]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"\nAll 2 steps passed in \d+\.\d s\.\n\nNext steps:\n", shown)


def test_failed_command_is_reported_with_its_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "kubectl"
    program.write_text("#!/bin/sh\necho warning >&2\necho 'error: no such thing' >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(DemoError, match=r"^`kubectl get pods` failed: no such thing$"):
        Kubectl("demo").must(["get", "pods"])


def test_command_times_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "kubectl"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(DemoError, match="`kubectl get pods` did not finish within"):
        Kubectl("demo").run(["get", "pods"], seconds=0.1)


def test_commands_can_be_pasted_into_a_shell() -> None:
    assert typed(["get", "-o", "jsonpath={.a b}"]) == "kubectl get -o 'jsonpath={.a b}'"
    assert typed(["apply", "-f", "-"], "kind: X\n") == "kubectl apply -f - <<'END'\nkind: X\nEND"
