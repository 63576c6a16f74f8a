"""What admission accepts in spec.cache starts, has the settings of the spec, and shows them in the status."""

import pytest

from support import kube
from support.kube import Object
from support.memcached import memcached, pods_of, send_commands, wait_until_ready

pytestmark = pytest.mark.usefixtures("cluster")

MI = 2**20

DEFAULTS: dict[str, object] = {
    "maxbytes": 64 * MI,
    "maxconns": 1024,
    "num_threads": 4,
    "item_size_max": MI,
    "evictions": "on",
    "verbosity": 1,
}
CASES: dict[str, tuple[Object, dict[str, object], Object]] = {
    "nothing": ({}, {}, {"memory": "64Mi", "maxItemSize": "1Mi", "maxConnections": 1024, "threads": 4}),
    # Two more connections than the lowest number, for the probes of the kubelet.
    "lowest": (
        {"cache": {"memory": "2Mi", "maxItemSize": "512Ki", "maxConnections": 17, "threads": 1, "verbosity": 0}},
        {"maxbytes": 2 * MI, "item_size_max": MI // 2, "maxconns": 17, "num_threads": 1, "verbosity": 0},
        {"memory": "2Mi", "maxItemSize": "512Ki", "maxConnections": 17, "threads": 1},
    ),
    "high": (
        {"cache": {"memory": "256Mi", "maxItemSize": "128Mi", "maxConnections": 5000, "threads": 64, "verbosity": 2}},
        {"maxbytes": 256 * MI, "item_size_max": 128 * MI, "maxconns": 5000, "num_threads": 64, "verbosity": 2},
        {"memory": "256Mi", "maxItemSize": "128Mi", "maxConnections": 5000, "threads": 64},
    ),
    "derived from the limit, with further options": (
        {
            "cache": {"evictions": False, "extraArgs": ["--disable-cas", "-o hashpower=17", "--slab-min-size=64"]},
            "resources": {"limits": {"memory": "256Mi"}},
        },
        {"maxbytes": 164 * MI, "evictions": "off", "cas_enabled": "no", "hashpower_init": 17, "chunk_size": 64},
        {"memory": "164Mi", "maxItemSize": "1Mi", "maxConnections": 1024, "threads": 4},
    ),
}


def test_memcached_runs_with_the_settings(namespace: str) -> None:
    for number, (spec, _, _) in enumerate(CASES.values()):
        kube.apply(memcached(namespace, f"cache-{number}", **spec))
    for number, (case, (_, changed, status)) in enumerate(CASES.items()):
        assert wait_until_ready(namespace, f"cache-{number}")["status"]["cache"] == status, case
        (pod,) = pods_of(namespace, f"cache-{number}")
        found = settings(pod["status"]["podIP"])
        expected = {name: str(value) for name, value in {**DEFAULTS, **changed}.items()}
        assert {name: found[name] for name in expected} == expected, case


def settings(address: str) -> dict[str, str]:
    """The settings that a memcached reports."""
    lines = send_commands(address, 11211, b"stats settings").decode().splitlines()
    return dict(line.split(" ", 2)[1:] for line in lines if line.startswith("STAT "))
