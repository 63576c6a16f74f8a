"""A cluster in memory for `upgrade` and `status -A`, with what the operator writes about broken caches."""

import builtins
import copy
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from kubectl_memcached.cluster.kubectl import failure
from kubectl_memcached.commands import options, upgrade
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.model import owners, upgrading
from memcached_operator.findings.failures import failures
from memcached_operator.findings.rules import PodRules
from memcached_operator.memcached.containers import CONTAINERS
from unit.builders import typed
from unit.plugin.conftest import Result, Run, invoked
from unit.plugin.samples import NAMESPACE, RESOURCE, memcached, pod

Object = dict[str, Any]

OLD, NEW = "docker.io/library/memcached:1.6.38", "docker.io/library/memcached:1.6.45"
LOST = "spec.image: this change replaces 2 pods, one at a time; their cached items are lost"
KEPT = "spec.image: this change restarts memcached in 2 pods, one at a time; cached items are kept"
UNFIXED = "spec.image memcached has no fixed version; new pods may run a different one"
READS = 2
"""Reads until a cache is ready."""
ENDLESS = 1000
"""Reads after which a test fails, because the command waits without an end."""
TIMEOUT = "Unable to connect to the server: net/http: TLS handshake timeout"
PULL, CRASH, LATE = "ImageUnavailable", "PodsCrashing", "ProgressDeadlineExceeded"
LATE_ROLLOUT = "The rollout exceeded its progress deadline: 0 of 2 pods are updated; pod sessions-0 "


def failing(reason: str, container: str = "memcached") -> Object:
    """A pod with a container that has a problem."""
    found = pod(0, memcached({"monitoring": {}}))
    (status,) = (each for each in found["status"]["containerStatuses"] if each["name"] == container)
    status |= {"ready": False}
    found["status"]["conditions"] = [{"type": "PodReadyToStartContainers", "status": "True"}]
    if reason == LATE:
        status["state"] = {"running": {}} if container == "memcached" else {"waiting": {"reason": "ContainerCreating"}}
    elif reason == PULL:
        status["state"] = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    else:
        status["state"] = {"terminated": {"exitCode": 1, "containerID": "id"}}
    return found


def message(reason: str, container: str = "memcached") -> str:
    """What the operator writes in Degraded about such a pod."""
    if reason == LATE:
        own = "is not ready; see kubectl describe pod -n shop sessions-0"
        return LATE_ROLLOUT + (own if container == "memcached" else f"waits for the image of container {container}")
    (problem,) = failures(typed(failing(reason, container)), datetime.now(UTC), PodRules("Memcached", CONTAINERS))
    assert problem.reason == reason
    return problem.message


def degraded(reason: str, container: str = "memcached", since: str = "") -> Object:
    """The status of a cache with a stalled rollout. `since`: when it became stalled. `pod`: for Fleet."""
    states = {"Progressing": "False", "Degraded": "True", "Ready": "False"}
    status = memcached(None, states, Progressing="Stalled", Degraded=reason)["status"]
    status["conditions"][0] |= {"lastTransitionTime": since}
    status["conditions"][1] |= {"message": message(reason, container)}
    return status | {"updatedReplicas": 1, "pod": failing(reason, container)}


def cr(name: str, managers: Sequence[str] = (), labels: Object | None = None, **spec: Any) -> Object:
    """A healthy Memcached with the old image. `managers`: of its image."""
    found = memcached({"image": OLD, **spec})
    fields: Object = {"f:spec": {"f:image": {}}}
    applied = ("kustomize-controller", "kubectl")
    found["status"]["updatedReplicas"] = 2
    found["metadata"] |= {
        "name": name,
        "labels": labels or {},
        "managedFields": [
            {"manager": each, "operation": "Apply" if each in applied else "Update", "fieldsV1": fields}
            for each in managers
        ],
    }
    return found


class Fleet:
    """A cluster in memory. A changed cache is ready after a few reads.

    `broken`: the reasons of Degraded of those that do not work with the default image, by name. `calls`: of each change
    the name, and the caches that were not ready then. `interrupt`: Ctrl-C at this read. `unreadable`: the reads that
    fail. `unread`: their error. `lost`: the name of the cache whose change has no reply. `meanwhile`: what another
    client changes in a cache after its change, or None if it deletes it. `silent`: admission has no warnings.
    `container`: the one with the problem of the broken caches. `slow`: those that never complete a change. `reads`: of
    caches that need other reads than READS. `denied`: those whose change admission denies. `cluster_options`,
    `namespace`: of the user's kubectl.
    """

    def __init__(
        self,
        *crs: Object,
        broken: Mapping[str, str] | None = None,
        interrupt: int = 0,
        unreadable: range = range(0),
        unread: str = TIMEOUT,
        lost: str = "",
        meanwhile: Mapping[str, Object | None] | None = None,
        silent: bool = False,
        default: str = NEW,
        container: str = "memcached",
        slow: Sequence[str] = (),
        reads: Mapping[str, int] | None = None,
        denied: Sequence[str] = (),
        cluster_options: Sequence[str] = (),
        namespace: str = "",
    ) -> None:
        self.crs = {each["metadata"]["name"]: each for each in crs}
        self.broken = broken or {}
        self.interrupt = interrupt
        self.unreadable, self.unread = unreadable, unread
        self.lost, self.silent = lost, silent
        self.meanwhile = meanwhile or {}
        self.default = default
        self.gets = 0
        self.calls: list[tuple[str, list[str]]] = []
        self.disowned: list[str] = []
        self.cluster_options: list[str] = [*cluster_options]
        self.container, self.slow, self.namespace = container, slow, namespace
        self.reads, self.denied = reads or {}, denied
        running = (name for name, each in self.crs.items() if upgrading.progress_message(each))
        self._reads = dict.fromkeys(running, READS)

    def get(self, what: str, resource: str, name: str, *words: str, namespace: str = "") -> Object:
        """A cache, which makes progress."""
        self.interrupt -= 1
        if self.interrupt == 0:
            raise KeyboardInterrupt
        self.gets += 1
        assert self.gets < ENDLESS
        if self.gets in self.unreadable:
            raise failure(self.unread, what)
        if name not in self.crs:
            raise failure(f'Error from server (NotFound): {RESOURCE} "{name}" not found', what)
        left = self._reads[name] = self._reads.get(name, 0) - 1
        if left == 0 and name not in self.slow:
            self._settle(self.crs[name])
        return self.crs[name]

    def list(self, what: str, resource: str, *words: str, namespace: str = "") -> builtins.list[Object]:
        """The caches of a namespace, or of all, with the labels, or the pod of a degraded one. There are no proxies."""
        if resource == "pods":
            return self._pods(words[0])
        if resource != RESOURCE:
            return []
        where = namespace or self.namespace or NAMESPACE
        everywhere = "--all-namespaces" in words
        listed = [each for each in self.crs.values() if everywhere or each["metadata"]["namespace"] == where]
        wanted = next((word.partition("=")[2] for word in words if word.startswith("--selector=")), "")
        key, _, value = wanted.partition("=")
        return [each for each in listed if not wanted or each["metadata"]["labels"].get(key) == value]

    def _pods(self, selector: str) -> builtins.list[Object]:
        """The pod of a cache with the problem of its status: another one after each change of the spec."""
        (found,) = (each for name, each in self.crs.items() if f"/instance={name}," in selector)
        failing: Object = copy.deepcopy(found["status"]["pod"])
        failing["metadata"]["uid"] = f"{found['metadata']['name']}-{found['metadata']['generation']}"
        failing["spec"]["containers"][0]["image"] = found["spec"]["image"]
        return [failing]

    def change(self, what: str, verb: str, *words: str, stdin: str = "", **_: Any) -> tuple[str, builtins.list[str]]:
        """A dry run, a change of the image, or one of the field managers."""
        if verb == "create":
            return json.dumps({"spec": {"image": self.default}}), []
        found = self.crs[words[1]]
        warm = found["spec"].get("cache", {}).get("warmRestart")
        if "--dry-run=server" in words:
            if words[1] in self.denied:
                raise PluginError("denied", ExitCode.CLUSTER)
            return json.dumps(found), [] if self.silent else [KEPT if warm else LOST, UNFIXED]
        operations = json.loads(next(word.removeprefix("--patch=") for word in words if word.startswith("--patch=")))
        if "managedFields" in operations[0]["path"]:
            self.disowned.append(words[1])
            found["metadata"]["managedFields"] = []
            return json.dumps(found), []
        self._change(found, operations[-1]["value"])
        reply = json.dumps(found)
        if words[1] in self.meanwhile:
            self._interfere(words[1], self.meanwhile[words[1]])
        if words[1] == self.lost:
            raise PluginError("kubectl cannot change: timeout", ExitCode.CLUSTER)
        return reply, []

    def _change(self, found: Object, image: str) -> None:
        name = found["metadata"]["name"]
        unready = [each["metadata"]["name"] for each in self.crs.values() if not is_ready(each)]
        self.calls.append((name, unready))
        found["spec"]["image"] = image
        found["metadata"]["generation"] += 1
        owner: Object = {"manager": owners.MANAGER, "operation": "Update", "fieldsV1": {"f:spec": {"f:image": {}}}}
        found["metadata"]["managedFields"] = [owner]
        found["status"] = memcached(None, {"Progressing": "True", "Ready": "False"}, Progressing="Rolling\nOut\x1b[2J")[
            "status"
        ]
        self._reads[name] = self.reads.get(name, READS) + 1

    def _interfere(self, name: str, changed: Object | None) -> None:
        if changed is None:
            del self.crs[name]
        for part, fields in (changed or {}).items():
            self.crs[name][part] |= fields

    def _settle(self, found: Object) -> None:
        reason = self.broken.get(found["metadata"]["name"], "")
        healthy = {**memcached()["status"], "updatedReplicas": 2}
        is_broken = reason and found["spec"]["image"] == self.default
        found["status"] = degraded(reason, self.container, since="later") if is_broken else healthy
        found["status"] |= {"observedGeneration": found["metadata"]["generation"]}


def is_ready(found: Object) -> bool:
    """Whether a cache is ready."""
    return any(each["type"] == "Ready" and each["status"] == "True" for each in found["status"].get("conditions", ()))


def runner(monkeypatch: pytest.MonkeyPatch) -> Run:
    """What runs a command with a fleet, 200 columns wide."""

    def given(fleet: Fleet, _: Any) -> Fleet:
        return fleet

    def invoke(fleet: Fleet, *words: str, text: str = "") -> Result:
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setattr(options, "kubectl", partial(given, fleet))
        monkeypatch.setattr(upgrade, "POLL", 0.0)
        return invoked(words, text)

    return invoke
