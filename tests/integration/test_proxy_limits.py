"""memcached's proxy, as the operator starts it, at the limits of the specs that admission accepts.

Each has its memory limit, serves all of its clients at once, reaches all slots from each thread, passes a multi-get of
as many keys as docs/proxy.md promises, and passes the largest items, on two connections of a thread at the same time.
"""

import tempfile
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from cluster.public import releases
from corners import server
from corners.server import Server
from memcached_api.images import Images
from memcached_api.memcached.types import MEMCACHED
from memcached_api.memcachedproxy.types import MEMCACHEDPROXY
from memcached_api.quantity import parse_quantity
from memcached_operator.kube.resource import Key, Object
from memcached_operator.memcachedproxy.controller import memcachedproxy as controller
from memcached_operator.memcachedproxy.references import MEMCACHEDS, reads
from memcached_operator.world.snapshot import Snapshot
from support.memcacheds import memcached_root
from support.ports import free_port
from unit.builders import NOW, announced, memcachedproxy, slots

KIND: Final = controller(Images("docker.io/library/memcached:1.6.45"))
KEY: Final = Key(MEMCACHEDS, "test", "cache")
KEYS: Final = 2000
"""Keys of a multi-get that passes with every spec."""
FULL: Final = 300
"""All clients connect if there are at most so many."""
SLOW: Final[Object] = {"timeouts": {"connect": "60s", "read": "60s"}}
"""A busy machine is no failure."""


class Corner(NamedTuple):
    """A spec of a MemcachedProxy, and the Memcached behind it. `item`: its maxItemSize."""

    spec: Object
    slots: int = 3
    item: str = "1Mi"


def limited(memory: str, **spec: Any) -> Object:
    """A spec with a memory limit."""
    return {**spec, "resources": {"limits": {"memory": memory}}}


CORNERS: Final = (
    *(Corner({"threads": threads, "maxConnections": 15}) for threads in (1, 2, 8, 64)),
    *(Corner({"threads": threads, "maxConnections": FULL}) for threads in (1, 2, 8, 64)),
    *(Corner({"threads": threads}) for threads in (1, 8, 64)),
    *(Corner({"threads": 2, "maxConnections": 20}, slots=count) for count in (1, 30, 505)),
    *(Corner({"threads": threads}, slots=count) for threads, count in ((8, 505), (64, 100))),
    *(Corner({"threads": 2, "maxConnections": 100}, item=item) for item in ("512Ki", "2Mi", "8Mi", "32Mi")),
    *(Corner({"threads": 8, "maxConnections": 100}, item=item) for item in ("8Mi", "32Mi")),
    Corner({"threads": 64, "maxConnections": 100}, item="8Mi"),
    Corner({"maxConnections": 65536}),
    Corner(limited("64Mi")),
    Corner(limited("32Mi", threads=1, maxConnections=FULL)),
    Corner(limited("205Mi", threads=64, maxConnections=FULL)),
    Corner(limited("197Mi", maxConnections=100), item="32Mi"),
    Corner(limited("1Gi", threads=4, maxConnections=FULL), slots=100, item="32Mi"),
)


@pytest.fixture(scope="module")
def root() -> Path:
    """The root directory of the newest release."""
    return memcached_root(releases.VERSIONS[-1])


@pytest.fixture(scope="module")
def backend(root: Path) -> Generator[Server]:
    """The server of all slots."""
    with started(root, ["-t", "2", "-c", "15000", "-m", "512", "-I", "32m"]) as process:
        yield process


@contextmanager
def started(root: Path, options: list[str], limit: int | None = None) -> Generator[Server]:
    """A memcached on a free port of loopback, during the block."""
    port = free_port()
    words = [releases.PROGRAM, *options, "-l", "127.0.0.1", "-p", str(port), "-U", "0"]
    with server.started(root, words, port, limit) as process:
        process.wait_until_started()
        assert process.outcome() == ("runs", "")
        yield process


def container(corner: Corner) -> tuple[Object, str]:
    """The container of the pods, and its routes. The specs of both objects are valid."""
    cache = slots(corner.slots, spec={"cache": {"memory": "1Gi", "maxItemSize": corner.item}})
    cr = announced(memcachedproxy(**corner.spec, **SLOW), corner.slots)
    assert (MEMCACHED.validate(cache), MEMCACHEDPROXY.validate(cr)) == ([], [])
    found = KIND.plan(Snapshot(cr, referenced={KEY: reads(cache)}), NOW)
    assert found.notices == ()
    (child,) = [child for child in found.children or () if child["kind"] == "Deployment"]
    template = child["spec"]["template"]
    (text,) = [each for each in template["metadata"]["annotations"].values() if "pools{" in each]
    return template["spec"]["containers"][0], text


@contextmanager
def proxy(root: Path, corner: Corner, backend: Server) -> Generator[Server]:
    """The proxy of a corner, whose slots are all this server, during the block."""
    built, text = container(corner)
    text = text.replace('"cache-" .. i .. ".cache.test.svc.cluster.local."', '"127.0.0.1"')
    with tempfile.NamedTemporaryFile("w", dir=root, prefix="routes-") as file:
        file.write(text.replace('"11211"', f'"{backend.port}"'))
        file.flush()
        Path(file.name).chmod(0o644)
        options = [word.replace("/etc/podinfo/routes", f"/{Path(file.name).name}") for word in built["command"][1:]]
        if int(options[options.index("-c") + 1]) > server.open_files_limits()[1]:
            pytest.skip("a process may not open so many files here")
        with started(root, options, int(parse_quantity(built["resources"]["limits"]["memory"]))) as process:
            yield process


def keys(number: int) -> bytes:
    """A multi-get of missing keys."""
    return b"get " + b" ".join(b"%d" % key for key in range(number)) + b"\r\n"


@pytest.mark.parametrize("corner", CORNERS, ids=str)
def test_each_accepted_spec_serves_all_clients_and_the_largest_items(
    root: Path, backend: Server, corner: Corner
) -> None:
    threads: int = corner.spec.get("threads", 2)
    connections: int = corner.spec.get("maxConnections", FULL)
    with proxy(root, corner, backend) as front, ExitStack() as stack:
        number = connections if connections <= FULL else threads + 1
        clients = [stack.enter_context(closing(front.connect())) for _ in range(number)]
        assert {client.request(b"mn\r\n") for client in clients} == {b"MN\r\n"}
        # memcached gives connections to threads in turn.
        for client in clients[:threads]:
            assert client.request(keys(min(KEYS, 10 * corner.slots)), b"\r\n") == b"END\r\n"
        assert clients[0].request(keys(KEYS)) == b"END\r\n"
        value = b"v" * (int(parse_quantity(corner.item)) - 500)
        pair = clients[: threads + 1 : threads]
        for client in pair:
            client.send(b"set large 0 0 %d\r\n%b\r\n" % (len(value), value))
        assert {client.request(b"") for client in pair} == {b"STORED\r\n"}
        assert front.group.kills() == 0
