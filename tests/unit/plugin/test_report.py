"""`kubectl memcached report`: complete, without Secrets, keys and values."""

import json
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kubectl_memcached.model.cleaning import cleaned, concerns
from kubectl_memcached.model.redaction import redacted
from unit.plugin.conftest import Run, World
from unit.plugin.samples import AUTH, SETTINGS, memcached, stats
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
    obj: dict[str, Any] = {
        "metadata": {"managedFields": [{}], "annotations": {annotation: "{}", "kubernetes.io/a": "b", copy: "{}"}},
        "spec": {"c": [container]},
    }
    env: list[Any] = [{"name": "TOKEN", "value": "[redacted]"}, {"name": "A", "valueFrom": {}}]
    assert cleaned(obj) == {
        "metadata": {"annotations": {"kubernetes.io/a": "b", copy: "[redacted]"}},
        "spec": {"c": [{"name": "sidecar", "env": env}]},
    }
    with pytest.raises(ValueError, match="no Secrets"):
        cleaned({"kind": "Secret"})


def test_containers_of_other_programs_lose_their_commands_and_messages() -> None:
    probe = {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": "hunter2"}]}}
    ended = {"terminated": {"exitCode": 1, "message": "hunter2"}}
    names = ("memcached", "proxy", "agent", "envoy")
    containers = [{"name": name, "args": ["--token=hunter2"], "livenessProbe": probe} for name in names]
    statuses = [{"name": name, "lastState": ended, "state": {}} for name in names]
    found = cleaned({"spec": {"containers": containers}, "status": {"containerStatuses": statuses}})
    assert json.dumps(found["spec"]["containers"][3]).count("hunter2") == 0
    assert found["status"]["containerStatuses"][3]["lastState"]["terminated"]["message"] == "[redacted]"
    own = [each["args"] for each in found["spec"]["containers"][:3]]
    assert own == [["--token=hunter2"]] * 3, "the options of memcached are no secrets"
    assert found["status"]["containerStatuses"][:3] == statuses[:3]
    assert found["spec"]["containers"][0]["livenessProbe"]["httpGet"]["httpHeaders"][0]["value"] == "[redacted]"


@pytest.mark.parametrize(("owner", "value"), [("Memcached", "a:11211"), ("Job", "[redacted]")])
def test_config_maps_of_others_lose_their_data(owner: str, value: str) -> None:
    obj: dict[str, Any] = {"kind": "ConfigMap", "metadata": {"ownerReferences": [{"kind": owner}]}}
    assert cleaned({**obj, "data": {"servers": "a:11211"}})["data"] == {"servers": value}


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
    world.use(
        memcached({"auth": AUTH, "monitoring": {}}), stats=stats(), settings=SETTINGS, items="END\r\n", slabs=slabs
    )
    world.kubectl.objects["secret"] = [secret("web:hunter2\n")]
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
