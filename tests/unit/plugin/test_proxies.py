"""MemcachedProxies in `status`, `find` and `ring`."""

import json
from typing import Any

import pytest

from kubectl_memcached.model import proxies as model
from kubectl_memcached.model.proxies import Ring, rings
from kubectl_memcached.ring.proxies import LONGEST, moved, other_sizes, slot_of
from memcached_api.annotations import RING_ANNOTATION
from memcached_api.memcached.rules.spec import MAX_SLOTS
from memcached_api.validation.common_rules import MAX_NAME_LENGTH
from memcached_operator.memcachedproxy.desired.deployment import APP_NAME
from memcached_operator.parts.ring import Ring as PublishedRing
from unit.plugin.conftest import Run, World
from unit.plugin.samples import PROXIES, RESOURCE, memcached, proxy

Object = dict[str, Any]

STUCK = {"Available": "True", "Progressing": "True", "Degraded": "True", "Ready": "False"}
NOT_SERVED = 'error: the server doesn\'t have a resource type "memcachedproxies"'
ITEM = "ME user:7 exp=3599 la=42 cas=9 fetch=yes cls=3 size=1234\r\n"
ADDRESS = "front.shop.svc.cluster.local:11211"


def proxy_pod(name: str, slots: int, cache: str = "sessions") -> Object:
    """A running pod of a proxy, with its ring."""
    annotations = {RING_ANNOTATION: str(PublishedRing(cache, "u", slots))}
    return {"metadata": {"name": name, "namespace": "shop", "annotations": annotations}, "status": {"phase": "Running"}}


def servers(world: World, number: int) -> None:
    """Publish the addresses of slots."""
    world.cr["status"]["servers"] = [f"sessions-{slot}.sessions.shop.svc.cluster.local:1" for slot in range(number)]


def test_status_of_a_cache_shows_its_proxies(world: World, run: Run) -> None:
    servers(world, 3)
    elsewhere = {**proxy("other"), "spec": {"memcachedRef": {"name": "pages"}}, "status": {}}
    world.kubectl.objects[PROXIES] = [proxy(), elsewhere]
    result = run("status", "sessions")
    assert result.code == 0
    rows = [line.split() for line in result.output.splitlines() if line.startswith(("PROXY", "front", "other"))]
    assert rows == [
        ["PROXY", "CACHE", "READY", "PODS", "SLOTS", "ADDRESS"],
        ["front", "sessions", "yes", "2/2", "2/3", ADDRESS],
    ]
    assert max(map(len, result.output.splitlines())) <= 80
    (found,) = json.loads(run("status", "sessions", "-o", "json").output)["proxies"]
    assert (found["name"], found["ready"], found["address"], found["problem"]) == ("front", True, ADDRESS, "")
    assert found["caches"] == [{"name": "sessions", "servers": 2}]


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("ReferenceNotFound", ""),  # the message has one
        ("ReferenceInvalid", ""),
        ("InvalidSpec", " Remedy: Correct the spec as the message says."),
    ],
)
@pytest.mark.parametrize(
    ("words", "paused", "resume"),
    [
        (("sessions",), True, "Set spec.rollout.paused to false."),
        (("front",), True, "Set spec.rollout.paused to false."),
        (("front",), False, "See the Degraded condition."),
    ],
)
def test_condition_of_a_proxy_has_its_remedy(
    words: tuple[str, ...], paused: bool, resume: str, reason: str, remedy: str, world: World, run: Run
) -> None:
    found = proxy(states=STUCK, Degraded=reason, Ready=reason, Progressing="Paused")
    found["spec"]["rollout"] = {"paused": paused}
    world.kubectl.objects[PROXIES] = [found]
    result = run("status", *words)
    text = " ".join(result.output.split())
    assert text.count(f"Degraded: message of {reason}{remedy}") == 1
    assert text.count("Remedy: ") == (2 if remedy else 1)
    assert f"Progressing: message of Paused Remedy: {resume}" in text
    assert result.code == (0 if words == ("sessions",) else 1)


def test_status_of_a_proxy(world: World, run: Run) -> None:
    servers(world, 2)
    world.kubectl.objects[PROXIES] = [proxy()]
    result = run("status", "front")
    assert result.code == 0
    assert result.output.startswith("MemcachedProxy shop/front is ready\n")
    assert ["front", "sessions", "yes", "2/2", "2/2", ADDRESS] in [line.split() for line in result.output.splitlines()]
    document = json.loads(run("status", "front", "-o", "json").output)
    assert [each["status"] for each in document["conditions"]] == ["True", "False", "False", "True"]


def test_fleet_lists_proxies_and_their_problems(world: World, run: Run) -> None:
    servers(world, 2)
    broken = proxy("back", states=STUCK, Degraded="ReferenceNotFound")
    world.kubectl.objects[PROXIES] = [proxy(), broken]
    result = run("status", "-A", COLUMNS="200")
    assert result.code == 1
    rows = [line for line in result.output.splitlines() if line.startswith("shop/")]
    assert [row.split()[0] for row in rows] == ["shop/sessions", "shop/back", "shop/front"]
    assert rows[1].endswith("message of ReferenceNotFound")
    assert "1 of 1 caches are ready" in result.output
    assert "1 of 2 MemcachedProxies are ready." in result.output
    document = json.loads(run("status", "-A", "-o", "json").output)
    assert [each["name"] for each in document["proxies"]] == ["back", "front"]


@pytest.mark.parametrize("words", [("status", "sessions"), ("status", "-A")])
@pytest.mark.parametrize("output", ["table", "json"])
def test_output_without_proxies_is_as_before(words: tuple[str, ...], output: str, world: World, run: Run) -> None:
    served = run(*words, "-o", output)
    world.kubectl.errors[f"get {PROXIES}"] = NOT_SERVED
    assert run(*words, "-o", output) == served
    assert (served.code, "prox" in served.output.lower()) == (0, False)


@pytest.mark.parametrize("words", [("status", "sessions"), ("status", "-A")])
def test_missing_right_is_named_beside_the_caches(words: tuple[str, ...], world: World, run: Run) -> None:
    world.kubectl.forbid("get", PROXIES)
    result = run(*words)
    text = " ".join(result.output.split())
    assert (result.code, "Proxies are not shown. You may not list MemcachedProxies" in text) == (0, True)
    document = json.loads(run(*words, "-o", "json").output)
    (reason,) = [document["proxiesProblem"]] if words[1] == "-A" else document["advice"]
    assert reason.startswith("Proxies are not shown. You may not list MemcachedProxies: you lack the permission `get`")


@pytest.mark.parametrize(
    ("words", "code"),
    [(("status", "front"), 5), (("find", "front", "k"), 5), (("ring", "front"), 5), (("top", "front"), 4)],
)
def test_missing_right_is_named_if_a_name_may_be_that_of_a_proxy(
    words: tuple[str, ...], code: int, world: World, run: Run
) -> None:
    world.kubectl.forbid("get", PROXIES)
    result = run(*words)
    assert (result.code, result.output) == (code, "")
    assert f'{RESOURCE} "front" not found' in result.error
    right = f"You may not read MemcachedProxy front: you lack the permission `get` of `{PROXIES}` in namespace shop."
    assert (right in result.error) == (code == 5)


def use_slots(world: World, *pods: Object) -> None:
    """A proxy with these pods, in front of the cache with three slots."""
    world.use(memcached({"size": 3}), 3)
    world.kubectl.objects |= {PROXIES: [proxy(slots=3)], "pods": [*world.pods, *pods]}


KEYS = {f"user:{number}": slot for number, slot in ((7, slot_of(b"user:7", 3)), (8, slot_of(b"user:8", 3)))}


NAMED = {"sessions": False, "memcached/sessions": False, "memcachedproxy/sessions": True, "mcproxy/sessions": True}


@pytest.mark.parametrize(
    "command", [("status",), ("find", "user:7"), ("ring", "--seconds=1")], ids=lambda each: each[0]
)
@pytest.mark.parametrize("name", NAMED)
def test_kind_before_the_name_chooses_the_object(name: str, command: tuple[str, ...], world: World, run: Run) -> None:
    """Whether `name` is the MemcachedProxy."""
    use_slots(world, proxy_pod("front-a", 3))
    world.kubectl.objects[PROXIES] = [proxy("sessions", slots=3)]
    for stub in world.stubs:
        stub.replies = {**stub.replies, "me user:7": "EN\r\n", "watch mutations": "OK\r\n"}
    verb, *words = command
    result = run(verb, name, *words)
    starts = {"status": "MemcachedProxy shop/sessions is ready", "find": "The proxies of ", "ring": "The proxies of "}
    assert (bool(result.output), result.output.startswith(starts[verb])) == (True, NAMED[name])


def test_status_names_the_proxy_with_the_name_of_the_cache(world: World, run: Run) -> None:
    world.kubectl.objects[PROXIES] = [proxy("sessions"), proxy("front")]
    sentence = (
        "A MemcachedProxy has this name too: `kubectl memcached status memcachedproxy/sessions -n shop` shows it."
    )
    assert f"• {sentence}" in " ".join(run("status", "sessions").output.split())
    assert json.loads(run("status", "sessions", "-o", "json").output)["advice"] == [sentence]


@pytest.mark.parametrize(
    ("name", "code", "sentence"),
    [
        ("memcached/front", 4, f'kubectl cannot read Memcached front: {RESOURCE} "front" not found'),
        ("mcproxy/sessions", 4, f'kubectl cannot read MemcachedProxy sessions: {PROXIES} "sessions" not found'),
    ],
)
def test_kind_without_an_object_of_the_name(name: str, code: int, sentence: str, world: World, run: Run) -> None:
    world.kubectl.objects[PROXIES] = [proxy()]
    result = run("status", name)
    assert (result.code, result.error.startswith(sentence)) == (code, True)


def test_name_after_a_namespace_is_found_with_the_remedy(world: World, run: Run) -> None:
    world.kubectl.objects[PROXIES] = [proxy()]
    wrong = run("status", "shop/front")
    remedy = "use memcached/NAME or memcachedproxy/NAME, and --namespace for the namespace."
    assert (wrong.code, wrong.error) == (2, f"Unknown kind shop: {remedy}")
    assert [
        run("status", name, "--namespace=shop").code for name in ("memcached/sessions", "memcachedproxy/front")
    ] == [0, 0]


@pytest.mark.parametrize(
    ("key", "words", "slot"),
    [
        *((key, (), slot) for key, slot in KEYS.items()),
        # As placements.json has them, recorded with memcached's proxy.
        ("user:3:9", (), 1),
        ("user:3:9", ("--base64",), 0),
    ],
)
def test_find_asks_only_the_pod_to_which_the_proxies_send_the_key(
    key: str, words: tuple[str, ...], slot: int, world: World, run: Run
) -> None:
    use_slots(world, proxy_pod("front-a", 3), proxy_pod("front-b", 3))
    for stub in world.stubs:
        stub.replies = {**stub.replies, f"me {key}": ITEM.replace("user:7", key)}
    result = run("find", "front", key, *words)
    assert result.code == 0
    text = " ".join(result.output.split())
    assert f"The proxies of shop/front send this key to slot {slot} of 3 of Memcached sessions" in text
    asked = [number for number, stub in enumerate(world.stubs) if f"me {key}" in stub.commands]
    assert asked == [slot]
    document = json.loads(run("find", "front", key, *words, "-o", "json").output)
    assert [each["pod"] for each in document["pods"]] == [f"sessions-{slot}"]
    assert [(each["slots"], each["slot"], each["proxies"]) for each in document["routes"]] == [(3, slot, 2)]


def test_find_during_a_rollout_asks_the_pods_of_both_rings(world: World, run: Run) -> None:
    key = next(f"k{number}" for number in range(99) if slot_of(b"k%d" % number, 4) == 3)
    use_slots(world, proxy_pod("front-a", 3), proxy_pod("front-b", 4), proxy_pod("front-c", 3))
    result = run("find", "front", key)
    text = " ".join(result.output.split())
    assert f"2 proxies of shop/front send this key to slot {slot_of(key.encode(), 3)} of 3" in text
    assert "1 proxy of shop/front sends this key to slot 3 of 4 of Memcached sessions, sessions-3." in text
    assert "sessions-3" in text
    assert "the pod does not exist" in text
    assert result.code == 6


@pytest.mark.parametrize("has_key", [True, False])
def test_pods_of_a_deleted_memcached_are_missing(has_key: bool, world: World, run: Run) -> None:
    use_slots(world, proxy_pod("front-a", 3), proxy_pod("front-b", 2, "gone"))
    for stub in world.stubs:
        stub.replies = {**stub.replies, "me user:7": ITEM if has_key else "EN\r\n"}
    result = run("find", "front", "user:7")
    text = " ".join(result.output.split())
    assert f"slot {slot_of(b'user:7', 2)} of 2 of Memcached gone, gone-{slot_of(b'user:7', 2)}." in text
    assert text.count("the pod does not exist") == 1
    shown = [line for line in result.error.splitlines() if not line.startswith("Asking pods")]  # if it takes long
    assert (result.code, shown) == (0 if has_key else 6, [])
    world.kubectl.forbid("get", RESOURCE)
    assert run("find", "front", "user:7").code == 5


def test_find_without_the_key_names_the_search_in_all_pods(world: World, run: Run) -> None:
    use_slots(world, proxy_pod("front-a", 3))
    for stub in world.stubs:
        stub.replies = {**stub.replies, "me a;b": "EN\r\n"}
    result = run("find", "front", "a;b")
    assert (result.code, "`kubectl memcached find sessions 'a;b' -n shop`" in result.output) == (1, True)


@pytest.mark.parametrize(
    ("cr", "words", "code", "sentence"),
    [
        (proxy(), ("k" * (LONGEST + 1),), 2, "The slot of keys of more than 240 bytes is not known."),
        (proxy(), ("k" * 181, "--base64"), 2, "The slot of keys of more than 240 bytes in base64 is not known."),
        (
            {**proxy(), "status": proxy(states=STUCK, Degraded="ReferenceNotFound")["status"] | {"caches": []}},
            ("k",),
            6,
            "MemcachedProxy front uses no slots: message of ReferenceNotFound",
        ),
    ],
    ids=["long key", "long text", "no slots"],
)
def test_key_without_a_slot(
    cr: Object, words: tuple[str, ...], code: int, sentence: str, world: World, run: Run
) -> None:
    world.kubectl.objects |= {PROXIES: [cr], "pods": []}
    result = run("find", "front", *words)
    assert (result.code, result.error.startswith(sentence)) == (code, True)


def test_ring_shows_the_shares_and_the_effect_of_another_size(world: World, run: Run) -> None:
    use_slots(world, proxy_pod("front-a", 3))
    result = run("ring", "front")
    assert result.code == 0
    rows = [line.split() for line in result.output.splitlines()]
    assert ["sessions-2", "33.3", "%"] in rows
    assert [row[:5] for row in rows if row[:1] in (["2"], ["4"], ["6"])] == [
        ["2", "50.0", "%", "33.3", "%"],
        ["4", "25.0", "%", "25.0", "%"],
        ["6", "16.7", "%", "50.0", "%"],
    ]
    (found,) = json.loads(run("ring", "front", "-o", "json").output)["rings"]
    assert [each["moved"] for each in found["otherSizes"]] == [0.3333, 0.25, 0.5]


def test_rings_of_a_rollout_are_both_shown(world: World, run: Run) -> None:
    use_slots(world, proxy_pod("front-a", 3), proxy_pod("front-b", 4))
    text = run("ring", "front").output
    assert "1 proxy of shop/front distributes keys over 3 slots" in text
    assert "The proxies use different slots: a rollout is not complete." in text


@pytest.mark.parametrize(("before", "after"), [(3, 4), (4, 3), (3, 6), (1, 2)])
def test_share_of_keys_that_move_is_that_of_the_hash(before: int, after: int) -> None:
    keys = [b"key:%d" % number for number in range(4000)]
    pairs = [(slot_of(key, before), slot_of(key, after)) for key in keys]
    changed = [pair for pair in pairs if pair[0] != pair[1]]
    assert len(changed) / len(keys) == pytest.approx(moved(before, after), abs=0.03)
    assert all(new >= before or old >= after for old, new in changed)
    assert (after in other_sizes(before)) or before == 4


def test_rings_are_those_of_the_pods_and_otherwise_of_the_status() -> None:
    pods = [proxy_pod("a", 3), proxy_pod("b", 4), proxy_pod("c", 4), annotated("x")]
    assert rings(proxy(), pods) == [Ring("sessions", 4, 2), Ring("sessions", 3, 1)]
    assert rings(proxy(slots=5), []) == [Ring("sessions", 5, 0)]


def annotated(ring: str) -> Object:
    """A running pod of a proxy, with any text as its ring."""
    pod = proxy_pod("front-a", 1)
    pod["metadata"]["annotations"][RING_ANNOTATION] = ring
    return pod


ANNOTATIONS: dict[str, tuple[str, int] | None] = {
    f"{'a' * MAX_NAME_LENGTH}/u/1": ("a" * MAX_NAME_LENGTH, 1),
    f"a-1/u/{MAX_SLOTS}": ("a-1", MAX_SLOTS),
    f"a/u/{MAX_SLOTS + 1}": None,
    f"{'a' * (MAX_NAME_LENGTH + 1)}/u/1": None,
    "--token=stolen/u/3": None,
    "-a/u/3": None,
    "a-/u/3": None,
    "A/u/3": None,
    "a.b/u/3": None,
    "a\n/u/3": None,
    "/u/3": None,
    "a/u/0": None,
    "a/u/-1": None,
    "a/u/٣": None,
    "a/u/3\n": None,
    "a/u/3000000": None,
    f"a/u/{'1' * 5000}": None,
    "a/3": None,
}


@pytest.mark.parametrize(("text", "expected"), ANNOTATIONS.items(), ids=[text[:20] for text in ANNOTATIONS])
def test_only_rings_as_the_operator_writes_them_are_used(text: str, expected: tuple[str, int] | None) -> None:
    assert rings(proxy(slots=2), [annotated(text)]) == [Ring(*expected, 1) if expected else Ring("sessions", 2, 0)]
    assert model.MAX_SLOTS == MAX_SLOTS


def test_invalid_rings_in_the_status_are_not_used() -> None:
    caches = [{"name": "--token=x", "servers": 3}, {"name": "a", "servers": MAX_SLOTS + 1}, {"name": "b", "servers": 1}]
    assert rings({**proxy(), "status": {"caches": caches}}, []) == [Ring("b", 1, 0)]


@pytest.mark.parametrize("command", ["top", "stats", "hotkeys", "flush"])
def test_other_commands_name_the_cache_of_a_proxy(command: str, world: World, run: Run) -> None:
    world.kubectl.objects[PROXIES] = [proxy()]
    result = run(command, "front")
    assert result.code == 4
    assert result.error == (
        "front is a MemcachedProxy. This command is for caches: the one of these proxies is sessions."
    )


def test_pods_of_a_proxy_are_selected_by_its_labels(world: World, run: Run) -> None:
    cr = proxy()
    world.kubectl.objects |= {PROXIES: [cr], RESOURCE: [world.cr]}
    run("find", "front", "k")
    (selector,) = {
        word for call in world.kubectl.calls() for word in call if word.startswith("--selector=") and "front" in word
    }
    assert f"app.kubernetes.io/name={APP_NAME}" in selector


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        ("memcached:1.6.44", "known problems of its image: set spec.image to release 1.6.45"),
        ("memcached:1.6.45", ""),
        ("example.com/memcached:1.6.38", ""),
        ("", ""),
    ],
)
def test_healthy_proxies_with_an_old_release_have_a_problem(image: str, problem: str) -> None:
    healthy = memcached({"image": image}, {"Available": "True", "Progressing": "False", "Degraded": "False"})
    assert model.problem(healthy) == problem
