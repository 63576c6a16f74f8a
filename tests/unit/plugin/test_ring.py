"""`ring`: lists of servers, the comparison of keys with placements, and the sentences about it."""

import json
import random
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from kubectl_memcached.ring.libraries import LIBRARIES
from kubectl_memcached.ring.matching import Cache, Candidate, Finding, Keys, compare
from kubectl_memcached.ring.placements import Place, Server, md5, md5_digest, ring
from kubectl_memcached.ring.sampling import MAX_KEYS, Sample, merged
from kubectl_memcached.ring.sentences import agrees, sentences
from kubectl_memcached.ring.servers import ServerList, forms, orders, ports
from unit.plugin.conftest import Run, World
from unit.plugin.samples import TLS, memcached

BY_NAME: Final = {library.name: library for library in LIBRARIES}
ADDRESSES: Final = {0: "10.1.0.9", 1: "10.1.0.10", 2: "10.1.2.1", 3: "10.1.0.4"}
FULL: Final = "full DNS names of pods"
SLOTS: Final = (0, 1, 2)
NAMES: Final = ["sessions-0", "sessions-1", "sessions-2"]


def cache(size: int = 3, known: Mapping[int, str] = ADDRESSES, **spec: Any) -> Cache:
    """A cache whose pods have addresses."""
    addresses = {slot: known[slot] for slot in range(size)}
    return Cache(size, forms(memcached({"size": size, **spec}), addresses, {0: "10.96.0.7"}, size), addresses)


def keys(number: int, seed: int = 1) -> list[bytes]:
    """Keys without an order."""
    generator = random.Random(seed)  # noqa: S311 - not for cryptography
    return [b"page:%d" % generator.randrange(10**9) for _ in range(number)]


def stored(
    library: str,
    number: int,
    slots: Sequence[int] = SLOTS,
    label: str = FULL,
    prefix: bytes = b"",
    seed: int = 1,
    known: Mapping[int, str] = ADDRESSES,
) -> Keys:
    """Keys of a client with this list in the slots where it stores them."""
    form = next((form for form in cache(4, known).forms if form.label == label), None)
    servers = form and form.listed(slots)
    listed = servers or ServerList(label, (Server("", 0),) * len(slots), tuple(slots))
    client = Candidate(BY_NAME[library], listed)
    return [
        (prefix + key, slot) for key, slot in zip(keys(number, seed), client.slots(keys(number, seed)), strict=True)
    ]


def compared(*parts: Keys, size: int = 3) -> Finding:
    """The finding for keys of several clients, mixed."""
    mixed = [pair for part in parts for pair in part]
    random.Random(1).shuffle(mixed)  # noqa: S311 - not for cryptography
    return compare(mixed, cache(size))


def summary(finding: Finding) -> list[tuple[str, str, tuple[int, ...]]]:
    """Library, form and slots of each match."""
    found = [match.candidate for match in finding.matches]
    return [(each.library.name, each.servers.label, each.servers.slots) for each in found]


@pytest.mark.parametrize(
    ("library", "slots", "label"),
    [
        ("pymemcache", SLOTS, FULL),
        ("pymemcache", SLOTS, "addresses of pods"),
        ("dalli", SLOTS, "DNS names with the namespace of the slots' Services"),
        ("php-memcached (ketama)", SLOTS, "full DNS names with a dot at the end of pods"),
        ("gomemcache", SLOTS, "in the order of the slots"),
        ("Loki, Mimir, Tempo or Thanos", (0, 1, 2), "in the order of the slots"),
        ("memcached's proxy", (2, 0, 1), "in another order"),
        ("memjs", (1, 0, 2), "with addresses sorted as text"),
        ("spymemcached (ketama)", SLOTS, FULL),
        ("pymemcache", (0, 1), FULL),
        ("xmemcached (ketama)", (0, 2), FULL),
        ("gomemcache", (0, 1, 2, 3), "in the order of the slots"),
    ],
)
def test_client_is_recognized_by_its_keys(library: str, slots: tuple[int, ...], label: str) -> None:
    held = [pair for pair in stored(library, 300, slots, label) if pair[1] in SLOTS]
    finding = compared(held)
    assert (summary(finding), finding.rest) == ([(library, label, slots)], [])


def test_prefix_that_is_not_hashed() -> None:
    finding = compared(stored("php-memcached (ketama)", 300, prefix=b"memc.sess."))
    assert [match.candidate.prefix for match in finding.matches] == [b"memc.sess."]
    assert "adds a prefix to its keys" in " ".join(sentences(finding, NAMES, 10))


IPV6: Final = {slot: f"fd00::{slot + 1}" for slot in range(4)}
JAVA: Final = "spymemcached (ketama)"
ADDRESS: Final = "addresses of pods"


@pytest.mark.parametrize("known", [ADDRESSES, IPV6])
@pytest.mark.parametrize(
    ("library", "label"),
    [
        (JAVA, FULL),
        (f"{JAVA[:-1]}, JDK 13 or earlier)", FULL),
        ("ElastiCache's client", ADDRESS),
        ("ElastiCache's client (JDK 13 or earlier)", ADDRESS),
        ("pymemcache", ADDRESS),
        ("pymemcache (bytes keys)", FULL),
        ("NGINX or Cache::Memcached::Fast (ketama)", ADDRESS),
    ],
)
def test_variants_are_recognized_only_where_they_differ(library: str, label: str, known: Mapping[int, str]) -> None:
    finding = compare(stored(library, 300, label=label, known=known), cache(3, known))
    expected = library if known is IPV6 or "JDK 13" not in library else BY_NAME[library].of
    assert (summary(finding), finding.rest) == ([(expected, label, SLOTS)], [])


@pytest.mark.parametrize(("size", "library"), [(6, "php-memcached (ketama)"), (7, "npm's memcached (ketama)")])
def test_package_of_npm_is_one_client_with_each_number_of_servers(size: int, library: str) -> None:
    known = {slot: f"10.1.0.{slot + 1}" for slot in range(size)}
    used = cache(size, known)
    (form,) = [each for each in used.forms if each.label == FULL]
    servers = form.listed(range(size))
    assert servers
    place = BY_NAME["npm's memcached (ketama)"].build(servers.servers)
    finding = compare([(key, place(key)) for key in keys(600)], used)
    assert (summary(finding), finding.rest) == ([(library, FULL, tuple(range(size)))], [])
    assert agrees(finding, size)


def similar(servers: Sequence[Server]) -> Place:
    """A ring of ketama with three points for each digest, as the option `hash_ring` of npm's memcached makes it."""
    points = [
        (point, index)
        for index, each in enumerate(servers)
        for number in range(40)
        for point in struct.unpack_from("<3I", md5_digest(f"{each}-{number}".encode()))
    ]
    return ring(points, md5)


def test_one_client_with_a_similar_ring_is_not_two_clients() -> None:
    (form,) = [each for each in cache().forms if each.label == FULL]
    servers = form.listed(SLOTS)
    assert servers
    place = similar(servers.servers)
    finding = compared([(key, place(key)) for key in keys(1500)])
    assert len(finding.matches) == 1
    assert finding.rest
    text = " ".join(sentences(finding, NAMES, 10))
    assert "one library with a ring that is similar, but not known, stored all keys." in text
    assert "different rings" not in text


@pytest.mark.parametrize(
    "others",
    [
        [("php-memcached (ketama)", SLOTS, FULL)],
        [("gomemcache", SLOTS, "in the order of the slots"), ("dalli", SLOTS, FULL)],
        [("pymemcache", (0, 1), FULL)],
        [("pymemcache", SLOTS, "short DNS names of pods")],
    ],
)
def test_clients_that_disagree(others: list[tuple[str, tuple[int, ...], str]]) -> None:
    clients = [("pymemcache", SLOTS, FULL), *others]
    held = [stored(library, 300, slots, label, seed=seed) for seed, (library, slots, label) in enumerate(clients)]
    finding = compared(*held)
    assert (set(summary(finding)), finding.rest) == ({(library, label, slots) for library, slots, label in clients}, [])
    assert not agrees(finding, 3)


def test_current_list_is_preferred_to_one_that_explains_hardly_more() -> None:
    pairs = list(zip(stored("pymemcache", 600), stored("pymemcache", 600, (0, 2)), strict=True))
    differing = [(current, other) for current, other in pairs if current != other]
    held = [current for current, other in pairs if current == other][:96]
    held += [current for current, _ in differing[:2]] + [other for _, other in differing[2:5]]
    assert summary(compared(held)) == [("pymemcache", FULL, SLOTS)]


def test_clients_that_all_have_an_old_list_do_not_agree_with_the_cache() -> None:
    assert not agrees(compared(stored("pymemcache", 300, (0, 1))), 3)


@pytest.mark.parametrize("number", [30, 1000])
def test_keys_without_a_placement_match_nothing(number: int) -> None:
    slots = random.Random(1)  # noqa: S311 - not for cryptography
    assert compare([(key, slots.randrange(3)) for key in keys(number)], cache()).matches == []


def elsewhere(number: int) -> Keys:
    """Keys in slots that follow no rule."""
    return [(key, key[-1] % 3) for key in keys(number, seed=9)]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([], "No new keys were stored in 10 s. 20 are needed: use --seconds with a longer time."),
        ([stored("dalli", 7)], "Only 7 new keys were stored in 10 s. 20 are needed: use --seconds with a longer time."),
        (
            [stored("gomemcache", 300, label="in the order of the slots")],
            "All 300 new keys lie where gomemcache with 3 servers looks for them. "
            "gomemcache lists the servers in the order of the slots.",
        ),
        (
            [stored("pymemcache", 300, (0, 1))],
            "All 300 new keys lie where pymemcache with an old list of 2 servers looks for them. "
            "pymemcache lists the full DNS names of pods, port 11211. "
            "The cache has 3 servers: let the clients read the current list again.",
        ),
        ([stored("dalli", 300, (0, 2))], "where dalli with a list without sessions-1 looks for them."),
        (
            [stored("pymemcache", 300, seed=2), stored("dalli", 300, seed=3)],
            "The clients use different rings: use one library with the same settings in all of them.",
        ),
        (
            [stored("pymemcache", 300, seed=2), stored("pymemcache", 300, (0, 1), seed=3)],
            "Some clients have another list of servers: let all of them read the current list again.",
        ),
        (
            [stored("dalli", 300, seed=2), stored("dalli", 300, label="addresses of pods", seed=3)],
            "The clients write the servers in different ways or orders: give all of them the same list.",
        ),
        (
            [stored("pymemcache", 300, seed=2), stored("pymemcache (bytes keys)", 300, seed=3)],
            "pymemcache looks for a key of the type bytes on another server than for the same text as str: use one "
            "type in all clients.",
        ),
        (
            [stored("python-memcached", 300, label="in the order of the slots")],
            "python-memcached has the same ring as Cache::Memcached and Cache::Memcached::Fast.",
        ),
        ([elsewhere(300)], "The 300 new keys do not lie where a known library looks for them:"),
    ],
)
def test_sentences(parts: list[Keys], expected: str) -> None:
    assert expected in " ".join(sentences(compared(*parts), NAMES, 10))


def test_share_that_is_almost_everything_is_not_everything() -> None:
    wrong = [(key, (slot + 1) % 3) for key, slot in stored("pymemcache", 5, seed=4)]
    finding = compared(stored("pymemcache", 4995), wrong)
    (result, *_) = sentences(finding, NAMES, 10)
    assert result == (
        "99.9 % of the 5,000 new keys lie where pymemcache with 3 servers looks for them; "
        "0.1 % lie elsewhere: other clients may use another ring or an old list, or one library with a ring that is "
        "similar, but not known, stored all keys."
    )
    assert agrees(finding, 3)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [({}, [11211]), ({"containerPort": 12000}, [12000]), ({"tls": {**TLS, "port": 11212}}, [11211, 11212])],
)
def test_ports_that_clients_use(spec: dict[str, Any], expected: list[int]) -> None:
    assert ports(memcached(spec)) == expected


def test_forms_of_the_servers() -> None:
    cr = memcached({"size": 2, "service": {"perPod": True}})
    cr["status"]["servers"] = ["sessions-0.sessions.shop.svc.example.org:11211"]
    found = {form.label: str(form.servers[0]) for form in forms(cr, ADDRESSES, {0: "10.96.0.7"}, 2)}
    assert found == {
        "full DNS names of pods": "sessions-0.sessions.shop.svc.example.org:11211",
        "full DNS names of the slots' Services": "sessions-0.shop.svc.example.org:11211",
        "full DNS names with a dot at the end of pods": "sessions-0.sessions.shop.svc.example.org.:11211",
        "full DNS names with a dot at the end of the slots' Services": "sessions-0.shop.svc.example.org.:11211",
        "DNS names with .svc of pods": "sessions-0.sessions.shop.svc:11211",
        "DNS names with .svc of the slots' Services": "sessions-0.shop.svc:11211",
        "DNS names with the namespace of pods": "sessions-0.sessions.shop:11211",
        "DNS names with the namespace of the slots' Services": "sessions-0.shop:11211",
        "short DNS names of pods": "sessions-0.sessions:11211",
        "short DNS names of the slots' Services": "sessions-0:11211",
        "addresses of pods": "10.1.0.9:11211",
        "addresses of the slots' Services": "10.96.0.7:11211",
    }
    (pooled,) = forms(memcached({"identity": "Pooled"}), ADDRESSES, {}, 2)
    assert pooled.label == "addresses of pods"


def test_orders_of_the_servers() -> None:
    assert dict(orders(ADDRESSES, range(4))) == {
        "in the order of the slots": (0, 1, 2, 3),
        "sorted by address": (3, 0, 1, 2),
        "with addresses sorted as text": (1, 3, 0, 2),
    }
    assert ("sorted as text", (0, 1, 10, 2, 3, 4, 5, 6, 7, 8, 9)) in orders({}, range(11))


def test_sample_is_bounded_and_fair() -> None:
    busy, quiet = Sample(), Sample()
    for key in keys(MAX_KEYS + 2000):
        busy.add(key)
    for key in keys(4000, seed=2):
        quiet.add(key)
    assert len(busy.keys) <= MAX_KEYS
    assert len(quiet.keys) == 4000
    pairs = merged([(0, busy), (1, quiet)], 10**6)
    share = sum(slot for _, slot in pairs) / len(pairs)
    assert abs(share - 4000 / (MAX_KEYS + 6000)) < 0.05
    assert len(merged([(0, busy), (1, quiet)], 10)) == 10


def log(pairs: Keys, slot: int) -> str:
    """The reply of memcached to `watch mutations`, and lines for the keys of a slot."""
    line = "ts=1795680122.36 gid={} type=item_store key={} status=stored cmd=set ttl=0 clsid=1 cfd=29 size=1\n"
    held = [key.decode() for key, of in pairs if of == slot]
    return "OK\r\n" + "".join(line.format(number, key) for number, key in enumerate(held))


def watch(world: World, pairs: Keys) -> None:
    """Let the memcacheds of three pods log these keys."""
    world.use(memcached({"size": 3}), 3)
    for slot, stub in enumerate(world.stubs):
        stub.replies = {**stub.replies, "watch mutations": log(pairs, slot)}


@pytest.mark.parametrize(("others", "code"), [(0, 0), (30, 1)])
def test_exit_code_tells_whether_the_clients_agree(others: int, code: int, world: World, run: Run) -> None:
    watch(world, [*stored("pymemcache", 300), *stored("dalli", others, seed=2)])
    result = run("ring", "sessions", "--seconds=1", "-o", "json")
    document = json.loads(result.output)
    assert (result.code, document["agree"], document["newKeys"]) == (code, not code, 300 + others)
    assert document["matches"][0]["servers"][2] == "sessions-2.sessions.shop.svc.cluster.local:11211"


def test_keys_are_shown_only_on_request(world: World, run: Run) -> None:
    watch(world, [*stored("pymemcache", 80), *stored("dalli", 40, seed=2)])
    assert "page:" not in run("ring", "sessions", "--seconds=1", "-o", "json").output
    rows = [line.split() for line in run("ring", "sessions", "--seconds=1", "--show-keys").output.splitlines()]
    shown = {row[2]: row[:2] for row in rows if len(row) == 3 and row[2].startswith("page:")}
    held = {key.decode(): f"sessions-{slot}" for key, slot in stored("dalli", 40, seed=2)}
    right = {key.decode(): f"sessions-{slot}" for key, slot in stored("pymemcache", 40, seed=2)}
    assert len(shown) == 20
    assert shown == {key: [held[key], right[key]] for key in shown}


def test_cache_with_one_server_is_not_watched(world: World, run: Run) -> None:
    world.use(memcached({"size": 1}), 1)
    result = run("ring", "sessions")
    assert (result.code, result.output) == (0, "Memcached sessions has one server: all keys belong to it.\n")


def test_pod_that_cannot_be_watched_has_a_reason(world: World, run: Run) -> None:
    watch(world, stored("pymemcache", 300))
    world.pods[2]["status"] = {"phase": "Pending"}
    result = run("ring", "sessions", "--seconds=1")
    assert result.code == 6
    assert result.output.startswith("All ")
    assert "the pod is Pending" in result.output
