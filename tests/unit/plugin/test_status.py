"""`kubectl memcached status`: its output for each kind of cache, and its messages if something is missing."""

import base64
import json
import re
from typing import Any

import pytest

from unit.plugin.conftest import Run, World
from unit.plugin.samples import AUTH, TLS, lines, memcached, pod, stats

TABLE = """\
POD        NODE   VERSION    UP   MEMORY HITS EVICT  CONNS
sessions-0 node-1 1.6.45  3h12m 41%/64Mi  87%     0 12/995
sessions-1 node-2 1.6.45  3h12m 41%/64Mi  87%     0 12/995
"""


RESUME = "Run `kubectl memcached resume sessions -n shop --context=prod`."


def secret(content: str = "web:secret\n", **changed: Any) -> dict[str, Any]:
    """The Secret with memcached's users."""
    data = {"users": base64.b64encode(content.encode()).decode()}
    meta = {"name": "sessions-users", "namespace": "shop", "creationTimestamp": "2026-11-20T10:00:00Z"}
    return {"metadata": meta, "data": data, **changed}


def test_healthy_cache_without_agent(run: Run) -> None:
    result = run("status", "sessions")
    assert result.code == 0
    assert "Memcached shop/sessions is ready\n2 of 2 pods ready, Stable, 64Mi per pod\n" in result.output
    assert f"{TABLE}WARM and CERT are not shown, because the pods have no agent" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


CACHES: dict[str, dict[str, Any]] = {
    "plain": {},
    "agent": {"monitoring": {}},
    "tls": {"tls": TLS},
    "password": {"auth": AUTH},
}


@pytest.mark.parametrize("kind", CACHES)
def test_every_kind_of_cache_is_read(kind: str, world: World, run: Run) -> None:
    world.use(memcached(CACHES[kind]))
    world.kubectl.objects["secret"] = [secret()]
    for stub in world.stubs:
        stub.login = "web secret" if kind == "password" else ""
    result = run("status", "sessions", "-o", "json")
    rows = json.loads(result.output)["pods"]
    assert [(row["version"], row["problem"], row["hitRatio"]) for row in rows] == [("1.6.45", "", 0.87)] * 2
    assert {row["agentProblem"] != "" for row in rows} == {kind == "plain"}
    assert {row["warm"] for row in rows} == {None if kind == "plain" else 0.5375}
    calls = [call for call in world.kubectl.calls() if "secret" in call]
    assert ["-o=json" in call for call in calls] == {"tls": [False], "password": [False, True]}.get(kind, [])


@pytest.mark.parametrize(
    ("content", "problem"), [("web:hunter2\n", "rejects the login"), ("hunter2\n", "has no key `users` with lines")]
)
def test_secret_is_in_no_output(content: str, problem: str, world: World, run: Run) -> None:
    world.use(memcached({"auth": AUTH}))
    world.kubectl.objects["secret"] = [secret(content)]
    for stub in world.stubs:
        stub.login = "web other"
    result = run("status", "sessions")
    assert problem in " ".join(result.output.split())
    assert "hunter2" not in result.output + result.error
    assert "hunter2" not in json.dumps(world.kubectl.calls())


MOUNTED = "2026-11-20T09:00:00Z"
REMEDY = "Create a Secret with another name, and set {} to it: this replaces the pods, and their items are lost."


@pytest.mark.parametrize("immutable", [True, False])
def test_rejected_login_has_the_remedy_for_an_immutable_secret(immutable: bool, world: World, run: Run) -> None:
    """The kubelet gives even a new pod the content of the deleted Secret."""
    world.use(memcached({"auth": AUTH}))
    world.kubectl.objects["secret"] = [secret("web:new\n", immutable=immutable)]
    for stub in world.stubs:
        stub.login = "web old"
    for words in (("status", "sessions"), ("find", "sessions", "key")):
        text = " ".join(run(*words).output.split())
        assert "rejects the login with the users in the Secret sessions-users" in text
        assert (REMEDY.format("spec.auth.secretName") in text) == immutable
        assert ("may not have reloaded them yet" in text) == (not immutable)
        assert "Changing spec.auth.secretName" not in text


@pytest.mark.parametrize(
    ("field", "spec", "name"),
    [
        ("spec.auth.secretName", {"auth": AUTH}, "sessions-users"),
        ("spec.tls.secretName", {"tls": TLS}, "sessions-tls"),
        (
            "spec.tls.clientCASecretName",
            {"tls": {**TLS, "clientAuth": "Require", "clientCASecretName": "clients-ca"}},
            "clients-ca",
        ),
    ],
)
@pytest.mark.parametrize("evidence", ["volumes", "container"])
def test_immutable_secret_that_is_younger_than_the_files_of_a_pod(
    field: str, spec: dict[str, Any], name: str, evidence: str, world: World, run: Run
) -> None:
    world.use(memcached(spec))
    found = secret(immutable=True)
    found["metadata"]["name"] = name
    world.kubectl.objects["secret"] = [found]
    status = world.pods[1]["status"]
    if evidence == "volumes":
        status["conditions"].append(
            {"type": "PodReadyToStartContainers", "status": "True", "lastTransitionTime": MOUNTED}
        )
    else:
        status["containerStatuses"][0]["state"] = {"running": {"startedAt": MOUNTED}}

    def advice() -> str:
        return " ".join(run("status", "sessions").output.split())

    assert f"Secret {name} is immutable, and was created after sessions-1 had mounted a Secret of this" in advice()
    assert REMEDY.format(field) in advice()
    found["immutable"] = False
    assert "had mounted" not in advice(), "the kubelet reads it again"
    found["immutable"] = True
    found["metadata"]["creationTimestamp"] = MOUNTED
    assert "had mounted" not in advice(), "as after the remedy"
    world.kubectl.forbid("get", "secret")
    assert "read Secret" not in advice()


@pytest.mark.parametrize(("paused", "remedy"), [(True, RESUME), (False, "See the Degraded condition.")])
def test_problem_has_its_message_once_and_no_other_remedy_than_in_it(
    paused: bool, remedy: str, world: World, run: Run
) -> None:
    """Every message of ImageUnavailable has a remedy. A Deployment can be paused when the spec is not any more."""
    states = {"Available": "True", "Progressing": "True", "Degraded": "True", "Ready": "False"}
    reasons = {"Degraded": "ImageUnavailable", "Ready": "ImageUnavailable", "Progressing": "Paused"}
    world.use(memcached({"rollout": {"paused": paused}}, states, **reasons))
    result = run("status", "sessions", "--context=prod")
    assert result.code == 1
    assert result.output.count("message of ImageUnavailable") == 1
    assert re.findall("Remedy: (.*)", result.output) == [remedy]


def test_message_of_degraded_is_shown_although_nothing_is_degraded(world: World, run: Run) -> None:
    world.cr["status"]["conditions"][2]["message"] = message = "All components are healthy. Budget x selects the pods"
    assert f"\nNot degraded: {message}\n" in run("status", "sessions").output


def test_pod_that_does_not_run_has_a_reason_instead_of_values(world: World, run: Run) -> None:
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}
    world.pods[1]["status"]["containerStatuses"][0]["state"] = waiting
    result = run("status", "sessions")
    assert re.search(r"^sessions-1 node-2 +- +- +-", result.output, re.MULTILINE)
    assert "• sessions-1: memcached has not started: ImagePullBackOff, not found" in result.output


def test_columns_of_the_agent(world: World, run: Run) -> None:
    world.use(memcached({"monitoring": {}}))
    world.responses["/healthz"] = (503, "certificate: ca.crt does not verify it\n")
    result = run("status", "sessions")
    header, *rows = (line for line in result.output.splitlines() if line.startswith(("POD", "sessions-")))
    assert header.split()[-2:] == ["WARM", "CERT"]
    assert [row.split()[-2] for row in rows] == ["54%", "54%"]
    text = " ".join(result.output.split())
    assert "• sessions-0, sessions-1: the agent reports: certificate: ca.crt does not verify it" in text
    assert "the certificate has expired" in result.output


def test_output_of_kubectl_that_is_not_json(world: World, run: Run) -> None:
    world.kubectl.outputs["get memcacheds.cache.example.com"] = "no JSON"
    result = run("status", "sessions")
    assert (result.code, result.error) == (3, "kubectl cannot read Memcached sessions: its output is not JSON")


@pytest.mark.parametrize(
    ("verb", "resource", "spec", "sentence"),
    [
        ("get", "pods", {}, "You may not list pods"),
        ("port-forward", "pod", {}, "sessions-0, sessions-1: You may not forward ports to pods: you lack"),
        ("get", "secret", {"auth": AUTH}, "You may not read Secret sessions-users"),
    ],
)
def test_conditions_are_shown_without_further_rights(
    verb: str, resource: str, spec: dict[str, Any], sentence: str, world: World, run: Run
) -> None:
    world.use(memcached(spec))
    for stub in world.stubs:
        stub.login = "web secret"
    world.kubectl.forbid(verb, resource)
    result = run("status", "sessions")
    assert (result.code, "MinimumReplicasAvailable" in result.output) == (0, True)
    assert sentence in " ".join(result.output.split())


def test_older_operator_without_ready_and_status_fields(world: World, run: Run) -> None:
    cr = memcached({"identity": "Pooled"}, {"Available": "True", "Progressing": "False", "Degraded": "False"})
    del cr["spec"]["identity"], cr["status"]["cache"]
    world.cr, world.pods = cr, [pod(number, memcached({"identity": "Pooled"})) for number in range(2)]
    result = run("status", "sessions")
    assert (result.code, "is ready" in result.output) == (0, True)
    assert max(map(len, result.output.splitlines())) <= 80


def test_object_without_a_status(world: World, run: Run) -> None:
    del world.cr["status"]
    result = run("status", "sessions")
    assert result.code == 1
    assert "no operator reconciles it" in result.output


def test_without_kubectl(run: Run) -> None:
    result = run("status", "sessions", PATH="/nonexistent")
    assert (result.code, result.error) == (3, "kubectl is not in PATH: install it, or add its directory to PATH.")


@pytest.mark.parametrize("words", [("-n", "x", "status", "sessions"), ("status", "sessions", "-n", "x")])
def test_options_of_kubectl_are_passed_on(words: tuple[str, ...], world: World, run: Run) -> None:
    run(*words, "--context=c", "--kubeconfig=f") if words[0] == "status" else run(*words)
    first = world.kubectl.calls()[0]
    assert "--namespace=x" in first
    assert ("--context=c" in first, "--kubeconfig=f" in first) == (words[0] == "status",) * 2


def test_advice_about_the_load(world: World, run: Run) -> None:
    busy = stats(curr_connections=900, evictions=30, bytes=54000000, get_hits=100, get_misses=1900)
    world.stubs[1].replies = {**world.stubs[1].replies, "stats": busy}
    text = " ".join(run("status", "sessions").output.split())
    for sentence in (
        "sessions-1: 90% of the connections are in use",
        "sessions-1: 10% of all stored items were evicted",
        "sessions-1: only 5% of the gets find an item",
    ):
        assert sentence in text
    assert "sessions-0:" not in text


def test_items_on_a_disk_use_no_memory(world: World, run: Run) -> None:
    """With extstore, `bytes` includes the items on the disk."""
    disk = {"extstore_limit_maxbytes": 2**32, "extstore_bytes_used": 2**31}
    large = {"bytes": 2**30, "limit_maxbytes": 2**26, **disk, "miss_from_extstore": 740}
    items = lines({"items:5:mem_requested": 2**24, "items:5:number": 9, "items:7:mem_requested": 2**24})
    world.stubs[0].replies = {**world.stubs[0].replies, "stats": stats(**large), "stats items": items}
    first, second = json.loads(run("status", "sessions", "-o", "json").output)["pods"][:2]
    assert (first["memoryUsedBytes"], first["hitRatio"]) == (2**25, 0.5)
    assert second["memoryUsedBytes"] == 27514634
    assert [(each["diskUsedBytes"], each["diskLimitBytes"]) for each in (first, second)] == [
        (2**31, 2**32),
        (None, None),
    ]
    assert re.search(r"MEMORY +DISK +HITS", (shown := run("status", "sessions").output))
    assert re.search(r"sessions-0 .* 50%/64Mi +50%/4Gi ", shown)
    shown = run("top", "sessions", "--interval=0.5").output
    assert re.search(r"ITEMS DISK\n", shown)
    disks = [line.split()[-1] for line in shown.splitlines() if line.startswith(("sessions-", "total"))]
    assert (disks[0], disks[-1]) == ("50%", "50%")


STOPPED = {"reason": "PodDisrupted", "message": "Kubernetes stopped pod sessions-0\n(Evicted)"}


def test_pods_that_kubernetes_stopped_are_in_the_advice(world: World, run: Run) -> None:
    times = ("2026-11-20T10:00:00Z", "2026-11-20T09:00:00Z")
    world.kubectl.objects["events"] = [{**STOPPED, "lastTimestamp": time} for time in times]
    advice = json.loads(run("status", "sessions", "-o", "json").output)["advice"]
    assert re.fullmatch(
        r"2 Events report pods that Kubernetes stopped\. The last one, \S+ ago: Kubernetes stopped pod sessions-0 "
        r"\(Evicted\)",
        next(each for each in advice if "Events report" in each),
    )
    (call,) = [call for call in world.kubectl.calls() if "events" in call]
    assert "--field-selector=involvedObject.uid=u,reason=PodDisrupted" in call


def test_without_the_permission_to_list_events_the_status_is_shown(world: World, run: Run) -> None:
    world.kubectl.forbid("get", "events")
    result = run("status", "sessions")
    assert (result.code, "Kubernetes stopped" in result.output) == (0, False)
