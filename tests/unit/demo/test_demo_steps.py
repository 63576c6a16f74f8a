"""Each step really checks: what is not as told ends the story with one sentence."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from demo import admission, cli, closing, healing, opening, serving
from demo.errors import StoryError
from demo.kubectl import Done, Kubectl, typed
from demo.stage import Stage
from unit.demo.fakes import FakeKubectl, failed, memcached, pod, screen

REFUSAL = failed('The Memcached "x" is invalid: spec.size: Invalid value: 0: must be at least 1; delete it instead')
NODES = {"items": [{"metadata": {"name": "one"}}]}
PODS = {"items": [pod("a", "10.0.0.1"), pod("b", "10.0.0.2"), pod("c", "10.0.0.3")]}
GETENT = "10.0.0.1 STREAM\n10.0.0.2 STREAM\n10.0.0.3 STREAM\n"
HEADING = "NAME  SIZE  READY  AVAILABLE  DEGRADED  PORT  AGE  MEMORY  IMAGE  REASON  MESSAGE\n"
CONDITIONS = "Available=True X: x\nProgressing=False X: x\nDegraded=False X: x\n"


def stage(answers: Mapping[str, Any]) -> Stage:
    """A stage after the sample was applied."""
    return Stage(FakeKubectl(answers), screen(), Path("sample.yaml"), "cache", 3)


def deployment(component: str, available: int) -> dict[str, Any]:
    """One of the operator's own."""
    labels = {"app.kubernetes.io/component": component}
    status = {"availableReplicas": available} if available else {}
    return {"metadata": {"name": component, "labels": labels}, "spec": {"replicas": 2}, "status": status}


def fails(step: Callable[[Stage], object], answers: Mapping[str, Any], sentence: str) -> None:
    """The step must end with this sentence."""
    with pytest.raises(StoryError, match=sentence):
        step(stage(answers))


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ({"get nodes": failed("error: stat /x: no such file")}, r"no cluster answers \(stat /x: no such file\); start"),
        (
            {"-o json": {"items": [{"metadata": {"annotations": {opening.FAKE_NODE: "fake"}}}]}},
            "only pretend to run containers; run `make demo` as root",
        ),
        ({"-o json": NODES, "get crd": failed("NotFound")}, "is not installed; run `make deploy` first"),
        ({"deployments": {"items": []}, "-o json": NODES}, "controller-manager and webhook is missing; run `make dep"),
        ({"deployments": {"items": [deployment("webhook", 2)]}, "-o json": NODES}, "controller-manager is missing"),
    ],
    ids=["no cluster", "no containers", "no definition", "no operator", "half an operator"],
)
def test_nothing_to_tell_of(answers: Mapping[str, Any], sentence: str) -> None:
    fails(opening.operator_works, answers, sentence)


def test_an_operator_in_two_parts_is_enough() -> None:
    found = [deployment("controller-manager", 1), deployment("webhook", 2)]
    assert opening.available(found) == (True, "controller-manager 1/2, webhook 2/2", "")
    assert not opening.available([deployment("controller-manager", 0), deployment("webhook", 2)]).done


def test_nodes_may_be_a_secret_of_the_cluster() -> None:
    found = {"items": [deployment("controller-manager", 1), deployment("webhook", 2)]}
    told = stage({"get nodes": failed("nodes is forbidden"), "deployments": found})
    opening.operator_works(told)


@pytest.mark.parametrize(
    ("phases", "command"),
    [
        ([""], "create namespace story"),
        (["Active"], "delete -n story memcacheds --all --cascade=foreground"),
        (["Terminating", ""], "create namespace story"),
    ],
)
def test_the_namespace_is_clean_however_it_was(phases: list[str], command: str) -> None:
    told = stage({"get namespace": phases})
    opening.clean_namespace(told)
    assert isinstance(told.kubectl, FakeKubectl)
    assert told.kubectl.asked[-1] == command


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ({"apply": Done(0, "created", "")}, "accepted, but must be refused"),
        ({"apply": failed("failed calling webhook")}, "for another reason than 'must be at least 1'"),
        ({"apply": REFUSAL, "get": memcached()}, "was refused, but the object is there"),
    ],
)
def test_a_bad_object_must_be_refused(answers: Mapping[str, Any], sentence: str) -> None:
    fails(admission.refuses, answers, sentence)


def test_a_bad_object_is_refused() -> None:
    admission.refuses(stage({"apply": REFUSAL}))


FILLED = {"size": 1, "containerPort": 11211, "image": "memcached:1"}


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"image": ""}, "admission left the image out"),
        ({"containerPort": 80}, "containerPort as 80"),
        ({"size": 2}, "size as 2"),
    ],
)
def test_what_is_missing_must_be_filled_in(spec: dict[str, Any], sentence: str) -> None:
    fails(admission.fills_in, {"create": {"spec": FILLED | spec}}, sentence)


def test_the_webhook_may_need_a_moment() -> None:
    answers = [failed("failed calling webhook: no endpoints"), {"spec": FILLED}]
    admission.fills_in(stage({"create": answers}))


SETTLED = {"get -n story memcached cache": memcached(), "get -n story pods": PODS}


def test_the_status_must_name_the_pods_that_live() -> None:
    fails(
        lambda told: told.settle("it"),
        {**SETTLED, "get -n story pods": {"items": [pod("a"), pod("b"), pod("d")]}},
        "names a, b, c, but the live pods are a, b, d",
    )


def test_a_pod_on_its_way_out_does_not_count() -> None:
    leaving = {"metadata": {"name": "old", "deletionTimestamp": "now"}}
    stage({**SETTLED, "get -n story pods": {"items": [*PODS["items"], leaving]}}).settle("it")


def test_a_memcached_that_vanishes_is_not_waited_for() -> None:
    fails(lambda told: told.settle("it"), {}, "the Memcached cache is gone")


def test_a_sample_of_another_kind_is_named() -> None:
    fails(serving.becomes_pods, {"apply": {"kind": "List", "items": []}}, r"sample\.yaml must hold one Memcached")


def answers_of(*addresses: str) -> str:
    """What the pods say when all is well."""
    return "".join(f"== {each}\nSTORED\r\nVALUE greeting 0 5\r\nhello\r\nEND\r\n" for each in addresses)


def test_every_pod_must_answer() -> None:
    talk = {"getent": GETENT, "bash": answers_of("10.0.0.1", "10.0.0.3")}
    fails(serving.every_pod_answers, {**SETTLED, **talk}, r"no 'hello' came back from 10\.0\.0\.2")


def test_every_pod_answers() -> None:
    talk = {"getent": ["", GETENT], "bash": answers_of("10.0.0.1", "10.0.0.2", "10.0.0.3")}
    serving.every_pod_answers(stage({**SETTLED, **talk}))


def test_scaling_to_nothing_must_be_refused() -> None:
    five = memcached(5, 5, ("a", "b", "c", "d", "e"))
    answers = {
        "--replicas=0": Done(0, "scaled", ""),
        "get -n story memcached cache": [five, five, memcached()],
        "get -n story pods": [{"items": [pod(name) for name in "abcde"]}, PODS],
    }
    fails(serving.scales, answers, "accepted, but must be refused")


def test_the_deployment_must_be_there_before_it_is_deleted() -> None:
    fails(healing.deployment_comes_back, SETTLED, "Deployment cache is not there")


def test_the_deployment_that_comes_back_is_another() -> None:
    uids = [{"metadata": {"uid": uid}} for uid in ("1", "1", "2")]
    after = memcached(nodes=("d", "e", "f"))
    pods = {"items": [pod(name) for name in "def"]}
    told = stage({"get -n story deployment": uids, "get -n story memcached": [memcached(), after], "pods": pods})
    healing.deployment_comes_back(told)


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ({"wide": "NAME SIZE\n"}, "kubectl shows no column READY, AVAILABLE"),
        ({"wide": HEADING, "jsonpath": "Available=True X: x\n"}, "the conditions are Available instead of all three"),
        ({"wide": HEADING, "jsonpath": ""}, "the conditions are none instead"),
    ],
)
def test_columns_and_conditions_must_be_there(answers: Mapping[str, Any], sentence: str) -> None:
    fails(closing.status_tells, answers, sentence)


def test_columns_and_conditions() -> None:
    closing.status_tells(stage({"wide": HEADING, "jsonpath": CONDITIONS}))


def test_how_to_go_on_with_a_cluster_of_ours(tmp_path: Path) -> None:
    program = tmp_path / "cache/memcached-operator/bin/kubectl"
    program.parent.mkdir(parents=True)
    program.write_text("")
    program.chmod(0o755)
    config = f"{tmp_path}/state/memcached-operator/one/kubeconfig"
    text = closing.farewell(
        "story",
        "cache",
        {
            "KUBECONFIG": config,
            "PATH": str(program.parent),
            "XDG_CACHE_HOME": f"{tmp_path}/cache",
            "XDG_STATE_HOME": f"{tmp_path}/state",
        },
    )
    assert f"export KUBECONFIG={config}\n" in text
    assert f'export PATH="$PATH:{program.parent}"\n' in text
    assert "kubectl delete namespace story\n" in text
    assert "make cluster-down" in text


def test_how_to_go_on_with_another_cluster() -> None:
    text = closing.farewell("story", "cache", {"KUBECONFIG": "/mine", "PATH": "/nowhere"})
    assert "export KUBECONFIG=/mine\n" in text
    assert "PATH=" not in text
    assert "cluster-down" not in text


def test_no_kubectl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cli.main([]) == 1
    assert "Not as told: kubectl is not on the PATH" in capfd.readouterr().err


def test_an_interrupted_story_says_how_to_clean_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: Stage) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "STEPS", (("First", "", interrupted),))
    assert cli.main(["--namespace", "story"]) == 130
    assert "Interrupted. Clean up: kubectl delete namespace story" in capsys.readouterr().err


def test_a_command_that_fails_is_told_in_its_own_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "kubectl"
    program.write_text("#!/bin/sh\necho warning >&2\necho 'error: no such thing' >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(StoryError, match=r"^`kubectl get pods` failed: no such thing$"):
        Kubectl("story").must(["get", "pods"])


def test_a_command_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "kubectl"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(StoryError, match="`kubectl get pods` gave no answer within"):
        Kubectl("story").run(["get", "pods"], seconds=0.1)


def test_commands_can_be_pasted_into_a_shell() -> None:
    assert typed(["get", "-o", "jsonpath={.a b}"]) == "kubectl get -o 'jsonpath={.a b}'"
    assert typed(["apply", "-f", "-"], "kind: X\n") == "kubectl apply -f - <<'END'\nkind: X\nEND"
