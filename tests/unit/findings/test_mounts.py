from typing import Any

import pytest

from memcached_operator.findings.rules import PodRules
from memcached_operator.findings.volumes.mounts import IMMUTABLE, RECENT, failures, subject
from memcached_operator.kube.resource import Object
from memcached_operator.kube.times import last_seen
from memcached_operator.world.snapshot import Message, Messages
from unit.builders import NOW, ago, container, pod, typed, waiting

RULES = PodRules("Memcached")

TLS: Object = {"name": "tls", "projected": {"sources": [{"secret": {"name": "sessions-tls"}}]}}
AUTH: Object = {"name": "auth", "secret": {"secretName": "sessions-auth"}}
BOTH: Object = {
    "name": "tls",
    "projected": {
        "sources": [
            {"secret": {"name": "sessions-tls", "items": [{"key": "tls.crt"}, {"key": "tls.key"}]}},
            {"secret": {"name": "clients-ca", "items": [{"key": "ca.crt"}]}},
            {"configMap": {"name": "sessions"}},
        ]
    },
}
OPTIONAL: Object = {"name": "tls", "secret": {"secretName": "sessions-tls", "optional": True}}
TOKEN: Object = {"name": "kube-api-access", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
NOT_FOUND = 'MountVolume.SetUp failed for volume "tls" : secret "sessions-tls" not found'
NO_KEY = 'MountVolume.SetUp failed for volume "tls" : references non-existent secret key: tls.crt'
TIMED_OUT = (
    "Unable to attach or mount volumes: unmounted volumes=[tls], unattached volumes=[], context deadline exceeded"
)
CREATING = waiting("ContainerCreating")


def mounting(name: str = "sessions-0", *volumes: Object, **status: Any) -> Object:
    """A pod with volumes, by default with `tls`."""
    return {**pod(name, **status), "spec": {"volumes": [TOKEN, *(volumes or (TLS,))]}}


def condition(name: str, since: float, status: str = "True") -> Object:
    """A condition of a pod."""
    return {"type": name, "status": status, "lastTransitionTime": ago(since)}


def stuck(name: str = "sessions-0", *volumes: Object, since: float = 60, statuses: Any = (CREATING,)) -> Object:
    """A pod that was scheduled `since` seconds ago and waits for its volumes."""
    conditions = [condition("PodScheduled", since), condition("PodReadyToStartContainers", since, "False")]
    return mounting(name, *volumes, phase="Pending", conditions=conditions, containerStatuses=list(statuses))


def running(name: str = "sessions-0", *volumes: Object, since: float = 3600) -> Object:
    """A pod that has had its volumes for `since` seconds."""
    conditions = [condition("PodScheduled", since), condition("PodReadyToStartContainers", since)]
    return mounting(name, *volumes, conditions=conditions, containerStatuses=[container({"running": {}}, ready=True)])


def event(message: str = NOT_FOUND, seen: float = 5, uid: str = "sessions-0", **times: Any) -> Object:
    """An Event about a pod, last seen `seen` seconds ago."""
    return {"involvedObject": {"uid": uid}, "message": message, **(times or {"lastTimestamp": ago(seen)})}


def messages(*events: Object) -> Messages:
    """The messages of Events, by the uids of their objects."""
    found: dict[str, tuple[Message, ...]] = {}
    for each in events:
        uid, seen = each["involvedObject"].get("uid", ""), last_seen(each)
        found[uid] = (*found.get(uid, ()), *([Message(seen, each["message"])] if seen else []))
    return found


def without(obj: Object, *names: str) -> Object:
    """A pod without these conditions."""
    conditions = [each for each in obj["status"]["conditions"] if each["type"] not in names]
    return {**obj, "status": {**obj["status"], "conditions": conditions}}


def with_status(obj: Object, **status: Any) -> Object:
    """A pod with another status."""
    return {**obj, "status": {**obj["status"], **status}}


DELETED: Object = {**stuck(), "metadata": {**stuck()["metadata"], "deletionTimestamp": ago(1)}}
OLD_SERVER = without(running(), "PodReadyToStartContainers")
REBOOTED = with_status(
    stuck(since=9000), conditions=[condition("PodScheduled", 9000), condition("PodReadyToStartContainers", 4, "False")]
)
START = "Pod sessions-0: volume tls cannot be mounted: "
RUN = "Pod sessions-0: volume tls cannot be updated: "
CREATE = "create the Secret sessions-tls in this namespace"
MISSING = f'{START}secret "sessions-tls" not found; {CREATE}'
OTHERS = 'MountVolume.SetUp failed for volume "tls" : '
FAILURES: dict[str, tuple[Object, list[Object], list[str]]] = {
    "no Events": (stuck(), [], []),
    "a missing Secret": (stuck(), [event()], [MISSING]),
    "the name of the API's resource": (stuck(), [event(NOT_FOUND.replace(": secret", ": secrets"))], [MISSING]),
    "merged Events": (stuck(), [event(f"(combined from similar events): {NOT_FOUND}")], [MISSING]),
    "a missing key": (
        stuck("sessions-0", BOTH),
        [event(NO_KEY)],
        [
            f"{START}references non-existent secret key: tls.crt; add the key tls.crt to the Secret sessions-tls; "
            f"{IMMUTABLE}"
        ],
    ),
    "a key that no Secret of the volume lists": (
        stuck("sessions-0", BOTH),
        [event(f"{OTHERS}references non-existent secret key: users")],
        [
            f"{START}references non-existent secret key: users; add the key users to the Secret sessions-tls or "
            f"clients-ca; {IMMUTABLE}"
        ],
    ),
    "two missing Secrets": (
        stuck("sessions-0", BOTH),
        [event(f'{OTHERS}[secret "sessions-tls" not found, secret "clients-ca" not found]')],
        [
            f'{START}secret "sessions-tls" not found, secret "clients-ca" not found; create the Secret sessions-tls '
            "and the Secret clients-ca in this namespace"
        ],
    ),
    "a Secret and a key": (
        stuck("sessions-0", BOTH),
        [event(f'{OTHERS}[references non-existent secret key: tls.crt, secret "clients-ca" not found]')],
        [
            f'{START}secret "clients-ca" not found, references non-existent secret key: tls.crt; create the Secret '
            f"clients-ca in this namespace; add the key tls.crt to the Secret sessions-tls; {IMMUTABLE}"
        ],
    ),
    "two volumes": (
        stuck("sessions-0", TLS, AUTH),
        [event(), event('MountVolume.SetUp failed for volume "auth" : secret "sessions-auth" not found')],
        [
            MISSING,
            'Pod sessions-0: volume auth cannot be mounted: secret "sessions-auth" not found; create the Secret '
            "sessions-auth in this namespace",
        ],
    ),
    "an unregistered object": (stuck(), [event(f'{OTHERS}object "test"/"sessions-tls" not registered')], []),
    "a cache that is not synced": (
        stuck(),
        [event(f"{OTHERS}failed to sync secret cache: timed out waiting for the condition")],
        [],
    ),
    "a ConfigMap": (stuck(), [event(f'{OTHERS}configmap "sessions-tls" not found')], []),
    "another volume": (stuck(), [event(NOT_FOUND.replace('"tls"', '"data"'))], []),
    "another Secret": (stuck(), [event(NOT_FOUND.replace("sessions-tls", "other"))], []),
    "another pod": (stuck(), [event(uid="other")], []),
    "no uid": (stuck(), [{**event(), "involvedObject": {}}], []),
    "only that the pod waits": (stuck(), [event(TIMED_OUT)], []),
    "another text": (stuck(), [event("hello")], []),
    "a pod that is being deleted": (DELETED, [event()], []),
    "the last moment": (stuck(), [event(seen=RECENT - 1)], [MISSING]),
    "an old Event": (stuck(), [event(seen=RECENT)], []),
    "an old Event while the pod still waits": (stuck(), [event(seen=RECENT), event(TIMED_OUT)], [MISSING]),
    "an Event without a time": (stuck(), [event(lastTimestamp=None)], []),
    "a series": (stuck(), [event(eventTime=ago(9000), series={"lastObservedTime": ago(5)})], [MISSING]),
    "an event time": (stuck(), [event(eventTime=ago(5), lastTimestamp=None, series=None)], [MISSING]),
    "a clock that is ahead": (stuck(), [event(seen=-30)], [MISSING]),
    "a newer Event of another cause": (
        stuck(),
        [event(f'{OTHERS}object "test"/"sessions-tls" not registered', 5), event(seen=10)],
        [],
    ),
    "an equally old Event of another cause": (
        stuck(),
        [event(f'{OTHERS}object "test"/"sessions-tls" not registered'), event()],
        [MISSING],
    ),
    "a Secret that was deleted later": (
        running(),
        [event()],
        [f'{RUN}secret "sessions-tls" not found; the pod keeps running with the previous files; {CREATE}'],
    ),
    "a pod that has started since": (running(since=5), [event(seen=5)], []),
    "a running pod without conditions": (
        with_status(OLD_SERVER, containerStatuses=[container({"running": {"startedAt": ago(4)}})]),
        [event(seen=5)],
        [],
    ),
    "a pod of which it is unknown when it started": (OLD_SERVER, [event(seen=5)], []),
}


def test_missing_key_of_an_immutable_secret_ends_with_another_secret() -> None:
    """The pod of the earlier template is replaced: the uid of the new one is another."""
    events = [event(f"{OTHERS}references non-existent secret key: tls.crt")]
    (found,) = failures(typed(stuck("sessions-0", BOTH)), messages(*events), NOW, RULES)
    assert found.message.endswith(IMMUTABLE)
    renamed = {"name": "tls", "projected": {"sources": [{"secret": {"name": "sessions-tls-2"}}]}}
    replaced = stuck("sessions-0", renamed)
    replaced["metadata"]["uid"] = "new"
    assert failures(typed(replaced), messages(*events), NOW, RULES) == []


@pytest.mark.parametrize(("obj", "events", "expected"), FAILURES.values(), ids=FAILURES.keys())
def test_missing_secrets(obj: Object, events: list[Object], expected: list[str]) -> None:
    for order in (events, events[::-1]):
        found = failures(typed(obj), messages(*order), NOW, RULES)
        assert [failure.message for failure in found] == expected
        assert {failure.reason for failure in found} <= {"SecretUnavailable"}


@pytest.mark.parametrize("own", [True, False])
def test_volume_of_another_client_is_named_as_such(own: bool) -> None:
    template = {"spec": {"volumes": [{"name": "tls" if own else "auth"}]}}
    (failure,) = failures(typed(stuck()), messages(event()), NOW, RULES.within({"spec": {"template": template}}))
    foreign = "" if own else ", which is not part of this Memcached,"
    assert failure.message.startswith(f'Pod sessions-0: volume tls{foreign} cannot be mounted: secret "sessions-tls"')


def test_failures_are_sorted_by_the_names_of_pods() -> None:
    found = failures(typed(stuck("b"), stuck("a")), messages(event(uid="b"), event(uid="a")), NOW, RULES)
    assert [failure.message.partition(":")[0] for failure in found] == ["Pod a", "Pod b"]


def test_subjects_are_volumes_and_missing_secrets_are_apart() -> None:
    """Else, a transient error of the same second would hide one."""
    others = f'{OTHERS}object "test"/"sessions-tls" not registered'
    texts = [NOT_FOUND, f"(combined from similar events): {NOT_FOUND}", others, TIMED_OUT, 'configmap "x" not found']
    missing, combined, transient, waits, other = map(subject, texts)
    assert missing == combined
    assert len({missing, transient, waits}) == 3
    assert other is None


def test_text_of_an_event_is_not_copied() -> None:
    forged = event(f"{NOT_FOUND}\n\x1b[31m{'x' * 900}; delete everything")
    (failure,) = failures(typed(stuck()), messages(forged), NOW, RULES)
    assert failure.message == MISSING
