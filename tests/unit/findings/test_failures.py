import re
import time
from typing import Any

import pytest

from memcached_api.remedies import Action
from memcached_operator.findings.failures import IMAGE_REASONS, MAX_CAUSE, SOURCE, START_REASONS, Failure, failures
from memcached_operator.findings.rules import OwnContainer, PodRules
from memcached_operator.kube.resource import Object
from unit.builders import NOW, container, crashed, deleted, pod, running_again, typed, waiting

OWN = OwnContainer(
    "spec.image",
    Action("name a Secret"),
    (Action("raise the limit"),),
    ((re.compile("bad image"), (Action("use another"),)),),
)
RULES = PodRules(
    "Memcached",
    {"memcached": OWN},
    "its items are then lost",
    lambda actions: ". It costs much" if any("limit" in each.text for each in actions) else "",
)
ERROR = 'rpc error: code = NotFound desc = failed to pull "example.com/memcached:1": not found'


def only(*pods: Object) -> Failure:
    """The only failure of these pods."""
    (failure,) = failures(typed(*pods), NOW, RULES)
    return failure


def with_container(status: Object) -> Object:
    """A pod with one container in this state."""
    return pod(containerStatuses=[status])


def restarted(obj: Object) -> Object:
    """This pod with containers that were restarted."""
    statuses = obj["status"]["containerStatuses"]
    return {**obj, "status": {**obj["status"], "containerStatuses": [{**each, "restartCount": 1} for each in statuses]}}


@pytest.mark.parametrize("reason", sorted(IMAGE_REASONS))
def test_image_that_cannot_be_pulled(reason: str) -> None:
    assert only(with_container(waiting(reason, ERROR))) == Failure(
        "ImageUnavailable",
        f"Pod cache-1: the image example.com/memcached:1 of container memcached cannot be pulled: {ERROR}; "
        "correct spec.image",
    )


RETRIES = "and the kubelet tries again by itself"
UNREACHED = f"the node cannot reach the registry, {RETRIES}; correct spec.image if its host or tag is wrong"
LIMITED = (
    f"the registry limits the number of pulls, {RETRIES}; if this lasts, name a Secret, or use a copy of the image in "
    "another registry in spec.image"
)
FAILS = (
    f"the registry fails or does not answer in time, {RETRIES}; if this lasts, use a copy of the image in another "
    "registry in spec.image"
)
UNTRUSTED = (
    "the node does not trust the certificate of the registry, or the registry has none; renew the certificate or add "
    "its authority to the nodes, or correct spec.image if its host or tag is wrong"
)
DENIED = "the registry does not allow the pull with the credentials of the pod; name a Secret, or correct spec.image"
NO_PLATFORM = (
    "the image does not exist for the operating system and the architecture of the node; use an image in spec.image "
    "that exists for them"
)
CORRECT = "correct spec.image"
HUB = "https://registry-1.docker.io/v2/library/memcached/manifests"
UNPACK = 'failed to pull and unpack image "docker.io/library/memcached:1"'
RESOLVE = f'{UNPACK}: failed to resolve reference "docker.io/library/memcached:1"'
TOO_MANY = "toomanyrequests: You have reached your unauthenticated pull rate limit."
ERRORS: dict[str, tuple[str, ...]] = {
    UNREACHED: (
        "dial tcp: lookup registry.example.com: i/o timeout",
        "dial tcp 127.0.0.1:1: connect: connection refused",
        "dial tcp 10.0.0.1:443: connect: no route to host",
        "dial tcp 10.0.0.1:443: connect: network is unreachable",
        "dial tcp: lookup exmple.com on 10.96.0.10:53: no such host",
        "net/http: TLS handshake timeout",
    ),
    LIMITED: (
        f"{UNPACK}: failed to copy: httpReadSeeker: failed open: unexpected status code {HUB}/sha256:4290: 429 Too "
        f"Many Requests - Server message: {TOO_MANY}",
        f"{RESOLVE}: unexpected status from HEAD request to {HUB}/1: 429 Too Many Requests",
        f"reading manifest 1 in docker.io/library/memcached: {TOO_MANY}",
        f"Error response from daemon: {TOO_MANY}",
        "toomanyrequests: Rate exceeded",
        "received unexpected HTTP status: 429",
    ),
    FAILS: (
        f"{RESOLVE}: unexpected status from HEAD request to {HUB}/1: 503 Service Unavailable",
        "received unexpected HTTP status: 502 Bad Gateway",
        "unexpected status code 500 Internal Server Error",
        "unexpected status from GET request to https://r.example.com/v2/a: 504 Gateway Timeout",
        f'{RESOLVE}: failed to do request: Head "{HUB}/1": context deadline exceeded',
        f'Get "{HUB}/1": net/http: request canceled (Client.Timeout exceeded while awaiting headers)',
        f'Get "{HUB}/1": net/http: timeout awaiting response headers',
        f'Get "{HUB}/1": read tcp 10.0.0.1:4->10.0.0.2:443: read: connection reset by peer',
        f'{RESOLVE}: failed to do request: Head "{HUB}/1": EOF',
        f"{UNPACK}: failed to copy: read: unexpected EOF",
    ),
    DENIED: (
        f"{RESOLVE}: failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized",
        f"{RESOLVE}: unexpected status from HEAD request to https://ghcr.io/v2/a/b/manifests/1: 403 Forbidden",
        f"{RESOLVE}: pull access denied, repository does not exist or may require authorization: server message: "
        "insufficient_scope: authorization failed",
        "pull access denied for a/b, repository does not exist or may require 'docker login': denied: requested access "
        "to the resource is denied",
        "reading manifest 1 in r.example.com/a: unauthorized: access to the requested resource is not authorized",
        f"{RESOLVE}: no basic auth credentials",
    ),
    UNTRUSTED: (
        f'{RESOLVE}: failed to do request: Head "{HUB}/1": tls: failed to verify certificate: x509: certificate signed '
        "by unknown authority",
        'pinging container registry r.example.com: Get "https://r.example.com/v2/": x509: certificate has expired or '
        "is not yet valid",
        f'{RESOLVE}: failed to do request: Head "{HUB}/1": http: server gave HTTP response to HTTPS client',
    ),
    NO_PLATFORM: (
        f"{UNPACK}: no match for platform in manifest: not found",
        "no matching manifest for linux/arm64/v8 in the manifest list entries",
        "choosing an image from manifest list docker://a: no image found in manifest list for architecture "
        '"arm64", variant "v8", OS "linux"',
    ),
    CORRECT: (
        f"{RESOLVE}: docker.io/library/memcached:1: not found",
        "reading manifest 1 in docker.io/library/memcached: manifest unknown",
        "unexpected status from HEAD request to https://r.example.com/v2/a: 404 Not Found",
        'couldn\'t parse image name "A": invalid reference format: repository name must be lowercase',
        # the words are parts of the name of the image
        'failed to pull and unpack image "r.example.com/x509/429/toomanyrequests:denied": sha256:0: not found',
    ),
    "repair the node": ("connection error: desc = transport: dial unix /run/c.sock: connect: connection refused",),
    "free space on it": (f"{UNPACK}: write /var/lib/containerd/a: no space left on device",),
    "the kubelet limits the number of its pulls, and tries again by itself": ("pull QPS exceeded",),
    "correct spec.image, or name a Secret": ("signature is odd",),
}
"""By what the message says, the errors of containerd, CRI-O, Docker and the kubelet."""


@pytest.mark.parametrize(
    ("expected", "text"), [(expected, text) for expected, texts in ERRORS.items() for text in texts]
)
def test_error_of_an_image_has_its_cause_and_its_remedy(expected: str, text: str) -> None:
    found = only(with_container(waiting("ErrImagePull", text))).message
    assert found.endswith(expected)
    assert expected.startswith("correct") or not found.endswith("or name a Secret")
    shown = found.partition(" cannot be pulled: ")[2]
    assert shown.startswith(('"', SOURCE.sub("", text)))
    foreign = only(injected("container", waiting("ErrImagePull", text))).message
    assert foreign.endswith(f"; {FOREIGN}")
    assert not expected.count(RETRIES) or f"{RETRIES}; {FOREIGN}" in foreign


KUBELET_TEXTS = {
    "not found": ("ErrImagePull", ERROR),
    "registry unavailable": ("RegistryUnavailable", "image pull failed because the registry is unavailable: dial tcp"),
    "message that repeats the reason": ("ErrImagePull", "cannot pull: ErrImagePull: unauthorized"),
}


@pytest.mark.parametrize(("reason", "text"), KUBELET_TEXTS.values(), ids=KUBELET_TEXTS.keys())
def test_alternating_messages_of_the_kubelet_result_in_one_message(reason: str, text: str) -> None:
    backing_off = f'Back-off pulling image "example.com/memcached:1": {reason}: {text}'
    while_pulling, while_waiting = waiting(reason, text), waiting("ImagePullBackOff", backing_off)
    assert only(with_container(while_pulling)) == only(with_container(while_waiting))


def test_time_to_read_a_message_does_not_grow_with_its_length() -> None:
    """A registry of a tenant writes it."""

    def used(length: int) -> float:
        obj = with_container(waiting("ErrImagePull", "1" * length))
        times: list[float] = []
        for _ in range(3):
            started = time.thread_time()
            only(obj)
            times.append(time.thread_time() - started)
        return min(times)

    assert used(40_000) < 8 * used(5_000)


def test_reason_is_reported_if_there_is_no_message() -> None:
    assert "cannot be pulled: ImagePullBackOff;" in only(with_container(waiting("ImagePullBackOff"))).message


@pytest.mark.parametrize("reason", sorted(START_REASONS))
def test_container_that_cannot_be_started(reason: str) -> None:
    failure = only(with_container(waiting(reason, 'secret "x" not found')))
    assert failure == Failure(
        "PodsCrashing", 'Pod cache-1: container memcached cannot be started: secret "x" not found'
    )


def test_all_states_of_a_container_that_never_starts_result_in_one_message() -> None:
    message = 'exec: "memcached": executable file not found in $PATH'
    ended = {"exitCode": 128, "reason": "StartError", "message": message}
    states = (
        waiting("RunContainerError", message),
        container({"terminated": ended}),
        waiting("CrashLoopBackOff", "back-off 10s restarting failed container", ended=ended),
    )
    assert {only(with_container(state)) for state in states} == {
        Failure("PodsCrashing", f"Pod cache-1: container memcached cannot be started: {message}")
    }


def test_kind_knows_a_remedy_for_the_error() -> None:
    for cause, advice in (("a bad image", "; use another"), ("other", "")):
        failure = only(with_container(waiting("RunContainerError", cause)))
        assert failure.message == f"Pod cache-1: container memcached cannot be started: {cause}{advice}"


def test_end_that_the_operator_has_planned_is_no_crash() -> None:
    rules = PodRules("Memcached", is_planned=lambda _, name, end: (name, end.exit_code) == ("memcached", 3))
    for code, expected in ((3, 0), (4, 1)):
        last = {"exitCode": code, "reason": "Completed", "containerID": "a"}
        found = with_container({**container({"running": {}}, ended=last), "restartCount": 1})
        assert len(failures(typed(found), NOW, rules)) == expected


CRASHES: dict[str, tuple[Object, str]] = {
    "in CrashLoopBackOff": (crashed(), "container memcached terminated with exit code 64 (Error)"),
    "just terminated": (
        with_container(container({"terminated": {"exitCode": 71, "reason": "Error"}})),
        "container memcached terminated with exit code 71 (Error)",
    ),
    "no reason": (
        with_container(container({"terminated": {"exitCode": 71}})),
        "container memcached terminated with exit code 71 (Error)",
    ),
    "repeatedly completes": (restarted(crashed(exit_code=0, reason="Completed")), "exit code 0 (Completed)"),
    "just completed again": (
        restarted(with_container(container({"terminated": {"exitCode": 0, "reason": "Completed"}}))),
        "exit code 0 (Completed)",
    ),
    "runs again, not ready": (running_again(None), "terminated with exit code 64"),
    "completed and runs again, not ready": (restarted(running_again(None, exit_code=0)), "terminated with exit code 0"),
}


@pytest.mark.parametrize(("crashing", "message"), CRASHES.values(), ids=CRASHES.keys())
def test_crash_message_names_exit_code_reason_and_logs(crashing: Object, message: str) -> None:
    failure = only(crashing)
    assert (failure.reason, failure.clears_in) == ("PodsCrashing", None)
    assert message in failure.message
    assert failure.message.endswith("; see kubectl logs --previous -n test cache-1 -c memcached")


def test_message_of_an_oom_kill_names_the_limit_to_raise_and_the_effect() -> None:
    assert only(crashed(exit_code=137, reason="OOMKilled")).message == (
        "Pod cache-1: container memcached terminated with exit code 137 (OOMKilled); raise the limit. It costs much"
    )


READY_SINCE = {
    "not yet ready": (None, None),
    "just now": ("2030-01-01T12:00:00Z", 30.0),
    "for 10 s": ("2030-01-01T11:59:50Z", 20.0),
    "for 29 s": ("2030-01-01T11:59:31Z", 1.0),
}


@pytest.mark.parametrize(("since", "clears_in"), READY_SINCE.values(), ids=READY_SINCE.keys())
def test_crash_is_reported_until_the_pod_was_ready_for_30_s(since: str | None, clears_in: float | None) -> None:
    assert only(running_again(since)).clears_in == clears_in
    assert only(restarted(running_again(since, exit_code=0))).clears_in == clears_in


@pytest.mark.parametrize("since", ["2030-01-01T11:59:30Z", "2029-12-31T00:00:00Z"], ids=["for 30 s", "for a day"])
def test_crash_is_not_reported_after_the_pod_was_ready_for_30_s(since: str) -> None:
    assert failures(typed(running_again(since), restarted(running_again(since, exit_code=0))), NOW, RULES) == []


HEALTHY: dict[str, Object] = {
    "no status yet": pod(phase="Pending"),
    "being created": with_container(waiting("ContainerCreating")),
    "runs": with_container(container({"running": {}}, ready=True)),
    "completed for the first time": with_container(container({"terminated": {"exitCode": 0, "reason": "Completed"}})),
    "crashed and being deleted": deleted(crashed()),
    "crashed and failed": {**crashed(), "status": {**crashed()["status"], "phase": "Failed"}},
}


@pytest.mark.parametrize("healthy", HEALTHY.values(), ids=HEALTHY.keys())
def test_no_failure(healthy: Object) -> None:
    assert failures(typed(healthy), NOW, RULES) == []


@pytest.mark.parametrize(("since", "clears_in"), [("2030-01-01T11:59:40Z", 10), ("2029-12-29T00:00:00Z", 0)])
def test_crash_of_a_ready_container_is_over_although_its_pod_is_not_ready(since: str, clears_in: float) -> None:
    """Its node is lost, for example, and the crash would hide that."""
    again = container({"running": {"startedAt": since}}, ready=True, ended={"exitCode": 137, "reason": "OOMKilled"})
    unready = {"type": "Ready", "status": "False", "lastTransitionTime": "2030-01-01T11:58:00Z"}
    found = failures(typed(pod(containerStatuses=[again], conditions=[unready])), NOW, RULES)
    assert [each.clears_in for each in found] == [clears_in] * bool(clears_in)


def test_old_crash_is_not_reported_again_when_its_pod_becomes_ready() -> None:
    """Its node has come back."""
    state = {"running": {"startedAt": "2029-12-29T00:00:00Z"}}
    again = container(state, ready=True, ended={"exitCode": 137, "reason": "OOMKilled"})
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T11:59:59Z"}
    assert failures(typed(pod(containerStatuses=[again], conditions=[ready])), NOW, RULES) == []


def test_failures_are_sorted_by_pod_name() -> None:
    found = failures(typed(crashed("cache-2"), pod("cache-3"), crashed("cache-1")), NOW, RULES)
    assert [failure.message.split(":")[0] for failure in found] == ["Pod cache-1", "Pod cache-2"]


@pytest.mark.parametrize("since", [None, "2031-01-01T00:00:00Z"])
def test_crash_with_an_odd_ready_time_is_reported_for_the_whole_period(since: Any) -> None:
    found = running_again("2030-01-01T11:59:50Z")
    found["status"]["conditions"][0]["lastTransitionTime"] = since
    assert only(found).clears_in == 30


FOREIGN = (
    "the container is not part of this Memcached: correct what adds it to the pod, such as a mutating webhook. "
    "To replace the pod, delete it"
)
CRASH = {"terminated": {"exitCode": 1, "reason": "Error"}}
LOOP: Object = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": CRASH}
RUNNING: Object = {"state": {"running": {}}}
DONE: Object = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}, "ready": True}


def injected(part: str, status: Object, own: Object | None = None, name: str = "proxy") -> Object:
    """A pod with a container of another client. `part`: `init`, `sidecar` or `container`. `own`: memcached's status."""
    spec: Object = {"name": name, "image": "example.com/proxy:1"}
    memcached: Object = {"name": "memcached", "image": "example.com/memcached:1"}
    before = {"init": [spec], "sidecar": [{**spec, "restartPolicy": "Always"}]}.get(part, [])
    found: Object = {"ready": False, **status, "name": name, "image": "example.com/proxy:1"}
    waits = container({"waiting": {"reason": "PodInitializing"}})
    statuses = [waits if own is None else {**waits, **own}]
    return {
        **pod(
            initContainerStatuses=[found] if before else [],
            containerStatuses=statuses if before else [*statuses, found],
        ),
        "spec": {"initContainers": before, "containers": [memcached, *([] if before else [spec])]},
    }


LOGS = "kubectl logs --previous -n test cache-1 -c proxy"
AGAIN: Object = {**RUNNING, "lastState": CRASH}
OOM: Object = {**LOOP, "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
INJECTED: dict[str, tuple[Object, str, str]] = {
    "image of an init container": (
        injected("init", waiting("ImagePullBackOff", ERROR)),
        "ImageUnavailable",
        f"the image example.com/proxy:1 of init container proxy cannot be pulled: {ERROR}; {FOREIGN}",
    ),
    "init container in a crash loop": (
        injected("init", LOOP),
        "PodsCrashing",
        f"init container proxy terminated with exit code 1 (Error); see {LOGS}; {FOREIGN}",
    ),
    "init container that runs again": (
        injected("init", AGAIN),
        "PodsCrashing",
        f"init container proxy terminated with exit code 1 (Error); see {LOGS}; {FOREIGN}",
    ),
    "sidecar container that crashed after the start": (
        injected("sidecar", LOOP, RUNNING),
        "PodsCrashing",
        f"sidecar container proxy terminated with exit code 1 (Error); see {LOGS}; {FOREIGN}; its items are then lost",
    ),
    "container that cannot be started": (
        injected("container", waiting("CreateContainerConfigError", 'configmap "ca" not found'), RUNNING),
        "PodsCrashing",
        f'container proxy cannot be started: configmap "ca" not found; {FOREIGN}; its items are then lost',
    ),
    "container out of memory": (
        injected("container", OOM),
        "PodsCrashing",
        f"container proxy terminated with exit code 137 (OOMKilled); {FOREIGN}",
    ),
}


@pytest.mark.parametrize(("obj", "reason", "message"), INJECTED.values(), ids=INJECTED.keys())
def test_container_of_another_client_is_named_as_such(obj: Object, reason: str, message: str) -> None:
    (failure,) = failures(typed(obj), NOW, RULES)
    assert (failure.reason, failure.message) == (reason, f"Pod cache-1: {message}")


HARMLESS: dict[str, Object] = {
    "init container that runs": injected("init", RUNNING),
    "init container that has ended": injected("init", DONE, RUNNING),
    "init container that has ended after a crash": injected("init", {**DONE, "lastState": CRASH}, RUNNING),
    "init container that has ended twice": injected("init", {**DONE, "restartCount": 1}, RUNNING),
    "ephemeral container": pod(ephemeralContainerStatuses=[{**waiting("ErrImagePull", ERROR), "name": "debugger"}]),
}


@pytest.mark.parametrize("obj", HARMLESS.values(), ids=HARMLESS.keys())
def test_container_that_does_no_harm_is_no_failure(obj: Object) -> None:
    assert failures(typed(obj), NOW, RULES) == []


AGENT = OwnContainer("spec.agent.image", OWN.credentials, OWN.memory, ports=frozenset({"metrics", "probes"}))


@pytest.mark.parametrize(
    ("in_template", "ports", "own"),
    [
        (True, [], True),
        (False, ["metrics", "probes"], True),  # a pod of an earlier template
        (False, ["metrics"], False),
        (False, [], False),
    ],
)
def test_container_is_ours_if_the_live_template_or_an_earlier_one_has_it(
    in_template: bool, ports: list[str], own: bool
) -> None:
    containers = [{"name": name} for name in ("memcached", *(["agent"] if in_template else []))]
    live = {"spec": {"template": {"spec": {"containers": containers}}}}
    rules = PodRules("Memcached", {"memcached": OWN, "agent": AGENT}).within(live)
    obj = injected("container", LOOP, name="agent")
    obj["spec"]["containers"][1]["ports"] = [{"name": name} for name in ports]
    (failure,) = failures(typed(obj), NOW, rules)
    assert ("not part of this Memcached" in failure.message) is not own


ATTEMPTS = {
    "ports of the client": ("ErrImagePull", "dial tcp: lookup r: read udp {}.0.0.5:4{}21->10.96.0.10:53: i/o timeout"),
    "ports of the client with IPv6": ("ErrImagePull", "read tcp [fd00::{}]:5{}21->[fd00::9]:443: i/o timeout"),
    "IDs of containers": (
        "CreateContainerError",
        f"failed to reserve container name: is reserved for {{}}{'0a' * 31}{{}}",
    ),
}


@pytest.mark.parametrize(("reason", "text"), ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_attempts_that_fail_alike_result_in_one_message(reason: str, text: str) -> None:
    found = [only(with_container(waiting(reason, text.format(n, n)))).message for n in (1, 2)]
    assert found[0] == found[1]
    assert text.split("{")[0] in found[0]


def test_texts_of_others_are_short_and_on_one_line() -> None:
    text = f"first\nsecond{'x' * 90_000}"
    for state in (waiting("ErrImagePull", text), waiting("CreateContainerError", text)):
        message = only(with_container(state)).message
        assert "first\\nsecond" in message
        assert len(message) < MAX_CAUSE + 200
        assert message.isprintable()
