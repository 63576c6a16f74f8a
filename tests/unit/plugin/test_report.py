"""`kubectl memcached report`: complete, without Secrets, keys and values."""

import json
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kubectl_memcached.model.cleaning import cleaned, concerns
from kubectl_memcached.model.family import family
from kubectl_memcached.model.redaction import redacted
from unit.plugin import canaries
from unit.plugin.conftest import Run, World
from unit.plugin.samples import AUTH, SETTINGS, controller, memcached, stats, workloads
from unit.plugin.samples import pod as sample
from unit.plugin.test_status import secret

LOG = """\
slab class   1: chunk size        96 perslab   10922
<27 server listening (auto-negotiate)
<28 new auto-negotiating client connection
28: Client using the ascii protocol
<28 set user:7:token 0 100 5
>28 STORED
<28 get user:7:token
>28 sending key user:7:token
>28 END
<28 set auth 0 0 10
CAS:  failure: expected 1, got 5
<28 user:7:token
>28 CLIENT_ERROR flush_all not allowed
<28 quit
<28 connection closed.
accept4(): Resource temporarily unavailable
Exiting normally
"""
REDACTED = """\
slab class   1: chunk size        96 perslab   10922
<27 server listening (auto-negotiate)
<28 new auto-negotiating client connection
28: Client using the ascii protocol
<28 set [redacted]
>28 STORED
<28 get [redacted]
[redacted]
>28 END
<28 set [redacted]
[redacted]
[redacted]
>28 CLIENT_ERROR flush_all not allowed
<28 quit
<28 connection closed.
accept4(): Resource temporarily unavailable
Exiting normally
"""


def test_log_of_memcached_keeps_what_is_no_key() -> None:
    assert redacted(LOG) == REDACTED


@pytest.mark.parametrize(
    "line",
    [
        "<28 get k\rfailed to allocate",
        "<28 get k\x85Exiting normally",
        "   0x80 0x00 0x00 0x03 0x66",
        ">28 sending key STORED",
        "<28 get STORED\u2028>28 END",
        ">28 FOUND KEY k",
    ],
)
def test_line_with_a_key_is_redacted(line: str) -> None:
    assert redacted(line) in ("[redacted]", "<28 get [redacted]")


def test_objects_lose_values_that_can_be_secret() -> None:
    annotation, copy = "kubectl.kubernetes.io/last-applied-configuration", "kapp.k14s.io/original"
    container: dict[str, Any] = {
        "name": "sidecar",
        "env": [{"name": "TOKEN", "value": "hunter2"}, {"name": "A", "valueFrom": {}}],
    }
    kept = "deployment.kubernetes.io/revision"
    obj: dict[str, Any] = {
        "metadata": {"managedFields": [{}], "annotations": {annotation: "{}", kept: "7", copy: "{}"}},
        "spec": {"c": [container]},
    }
    env: list[Any] = [{"name": "TOKEN", "value": "[redacted]"}, {"name": "A", "valueFrom": {}}]
    assert cleaned(obj) == {
        "metadata": {"annotations": {kept: "7", copy: "[redacted]"}},
        "spec": {"c": [{"name": "sidecar", "env": env}]},
    }
    with pytest.raises(ValueError, match="no Secrets"):
        cleaned({"kind": "Secret"})


@pytest.mark.parametrize(
    "spec", [{}, {"monitoring": {}}, {"identity": "Pooled"}, {"identity": "Pooled", "monitoring": {}}]
)
def test_report_has_no_secret_of_another_program(spec: dict[str, Any], world: World, run: Run, tmp_path: Path) -> None:
    world.use(memcached(spec, Degraded="PodsCrashing"), number=1)
    world.cr["metadata"]["annotations"] = canaries.annotations("memcached")
    world.cr["spec"] |= {"podTemplate": {"metadata": {"annotations": canaries.annotations("template")}}}
    (pod,) = world.pods
    name = pod["metadata"]["name"] = pod["metadata"]["name"].replace("-x0", "-x2")
    own = {each["name"] for each in pod["spec"]["containers"]}
    others = {"proxy", "vault-agent", "agent"} - own
    canaries.spoil_pod(pod)
    world.kubectl.objects = {
        **canaries.children(world.cr),
        "events": canaries.events(name),
        "pods": [pod, canaries.stranger()],
    }
    world.kubectl.outputs = {f"logs {name} {each}": canaries.canary(f"log.{each}") for each in others}
    world.kubectl.outputs |= {f"logs {name} {each}": f"{each} exits\n" for each in own}
    file = tmp_path / "r.zip"
    assert run("report", "sessions", "--file", str(file)).code == 0
    files = read(file)
    assert canaries.found(files) == {"label", "condition", "event", "event.memcached"}, "what docs/plugin.md names"
    logs = {each.removesuffix("-previous.log").removesuffix(".log") for each in files if each.startswith("logs/")}
    assert logs == {f"logs/{name}-{each}" for each in own}
    (workload,) = json.loads(files["statefulsets.json" if "statefulsets.json" in files else "replicasets.json"])
    kept = {each["name"]: each for each in workload["spec"]["template"]["spec"]["containers"]}
    assert {each for each, fields in kept.items() if fields["command"] != "[redacted]"} == own
    assert kept["memcached"]["lifecycle"]["preStop"] == {"sleep": {"seconds": 5}}


def test_commands_and_messages_of_the_operators_containers_are_kept() -> None:
    cr = memcached({"monitoring": {}})
    known, obj = family(cr, workloads(cr)["statefulsets"]), sample(0, cr)
    ended = {"terminated": {"exitCode": 128, "reason": "StartError", "message": "no such file"}}
    for status in obj["status"]["containerStatuses"]:
        status["lastState"] = ended
    found = cleaned(obj, known)
    assert [found["spec"], found["status"]] == [obj["spec"], obj["status"]]
    raised = family(cr, workloads(memcached({"monitoring": {}, "cache": {"memory": "65Mi"}}))["statefulsets"])
    assert cleaned(obj, raised)["spec"] == obj["spec"], "the memory can be raised while the pod runs"
    assert cleaned(obj)["spec"]["containers"][0]["command"] == "[redacted]", "without a workload, nothing is known"


def test_objects_that_no_report_has_yet_lose_their_secrets_as_well() -> None:
    cr = memcached({"identity": "Pooled"})
    own = family(cr, workloads(cr)["deployments"] + workloads(cr)["replicasets"])
    (replica_set,) = canaries.children(cr)["replicasets"]
    reference = {"ownerReferences": controller("ReplicaSet", "w"), "annotations": canaries.annotations("revision")}
    template = replica_set["spec"]["template"]
    revision = {"kind": "ControllerRevision", "metadata": reference, "data": {"spec": {"template": template}}}
    front = {
        "metadata": {"annotations": canaries.annotations("front")},
        "spec": {"containers": template["spec"]["containers"]},
    }
    found = [cleaned(each, own) for each in (revision, front)]
    assert canaries.found({"": json.dumps(found)}) == {"label"}
    assert found[0]["data"]["spec"]["template"]["spec"]["containers"][0]["command"][0] == "memcached"


ABOUT: dict[str, bool] = {
    **dict.fromkeys(("sessions", "sessions-0", "sessions-connection", "sessions-7d9f", "sessions-7d9f-x7p2j"), True),
    **dict.fromkeys(("sessions2", "other", "sessions-payments-7d9f-x7p2j", "sessions-payments", "sessions.a"), False),
}


@pytest.mark.parametrize(("about", "expected"), ABOUT.items())
def test_events_of_the_cache(about: str, expected: bool) -> None:
    assert concerns({"involvedObject": {"name": about}}, "sessions") == expected


def read(file: Path) -> dict[str, str]:
    """The files of a report, without their folder."""
    with zipfile.ZipFile(file) as archive:
        return {name.partition("/")[2]: archive.read(name).decode() for name in archive.namelist()}


def test_report_of_a_cache_with_passwords(world: World, run: Run, tmp_path: Path) -> None:
    slabs = "STAT 1:chunk_size 96\r\nEND\r\n"
    disk, pages = stats(extstore_limit_maxbytes=2**30), "STAT 0:bucket 4\r\nEND\r\n"
    cr = memcached({"auth": AUTH, "monitoring": {}})
    world.use(cr, stats=disk, settings=SETTINGS, items="END\r\n", slabs=slabs, extstore=pages)
    world.kubectl.objects |= {"secret": [secret("web:hunter2\n")], **workloads(world.cr)}
    world.kubectl.outputs |= {"logs sessions-0 memcached": LOG, "version ": "Client Version: v1.32.0"}
    for obj in world.pods:
        obj["spec"]["containers"].append({"name": "envoy", "args": ["--token", "hunter2"]})
        obj["status"]["containerStatuses"].append({"name": "envoy", "state": {"running": {}}, "ready": True})
    world.kubectl.outputs |= {"logs sessions-0 envoy": "Authorization: hunter2"}
    world.kubectl.forbid("get", "nodes")
    world.kubectl.forbid("get", "node")
    for stub in world.stubs:
        stub.login = "web hunter2"
    file = tmp_path / "r.zip"
    result = run("report", "sessions", "--file", str(file))
    files = read(file)
    assert result.code == 0
    assert "chunk_size 96" in files["stats/sessions-1.txt"]
    assert "stats extstore\nSTAT 0:bucket 4\n" in files["stats/sessions-1.txt"]
    assert files["logs/sessions-0-memcached.log"] == f"{REDACTED}\n"
    assert {"memcached.json", "pods.json", "events.json", "agent/sessions-0-metrics.txt"} <= files.keys()
    assert "nodes.json: You may not read node node-1" in files["README.txt"]
    assert "Not collected: nodes.json" in result.error
    assert "logs/sessions-0-envoy.log" in files["README.txt"]
    everything = json.dumps(files)
    assert ("hunter2" not in everything, "user:7" not in everything) == (True, True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_report_does_not_replace_a_file(world: World, run: Run, tmp_path: Path) -> None:
    assert run("report", "sessions", "--file", str(tmp_path / "kubectl")).code == 2
