"""The demo reads objects and command output."""

import subprocess

import pytest
from demo.cache.serving import SCRIPT, VALUE

from demo import reading
from unit.demo.fakes import memcached, pod

NEW: reading.Object = {**memcached(), "status": {}}


def test_ready_memcached_is_done() -> None:
    assert reading.progress(memcached()) == (
        True,
        "3 of 3 pods ready, Available=True, Progressing=False, Degraded=False",
        "",
    )


@pytest.mark.parametrize(
    "found",
    [
        memcached(ready=2),
        memcached(size=4),
        memcached(nodes=("a", "b")),
        memcached(Available="False"),
        memcached(Progressing="True"),
        memcached(Degraded="True"),
        memcached() | {"metadata": {"name": "cache", "generation": 3}},
        NEW,
    ],
    ids=["not ready", "not scaled", "nodes", "unavailable", "progressing", "degraded", "outdated", "no status"],
)
def test_any_other_memcached_is_not_done(found: reading.Object) -> None:
    assert not reading.progress(found).done


def test_deleted_pod_in_the_status_is_reported_by_name() -> None:
    found = reading.progress(memcached(), deleted=["b", "z"])
    assert not found.done
    assert found.text.endswith("still in the status: b")


def test_message_of_degraded_is_the_problem() -> None:
    assert reading.progress(memcached(Degraded="True", message="no such image")).problem == "no such image"
    assert reading.progress(memcached(message="no such image")).problem == ""


def test_each_address_of_getent_counts_once() -> None:
    text = "10.0.0.2    STREAM cache.ns.svc\n10.0.0.2    DGRAM\n10.0.0.2    RAW\n10.0.0.1    STREAM\n\nfd00::1 RAW\n"
    assert reading.resolved(text) == ["10.0.0.1", "10.0.0.2", "fd00::1"]


@pytest.mark.parametrize(
    ("addresses", "difference"),
    [
        (["10.0.0.1", "10.0.0.2"], ""),
        (["10.0.0.1", "10.0.0.2", "fd00::2"], ""),
        (["10.0.0.1"], "no address for b"),
        (["10.0.0.1", "10.0.0.2", "10.0.0.9"], "no pod has 10.0.0.9"),
        ([], "no address for a, b"),
    ],
)
def test_addresses_must_match_the_pods(addresses: list[str], difference: str) -> None:
    pods = reading.pod_addresses([pod("a", "10.0.0.1"), pod("b", "10.0.0.2", "fd00::2"), pod("old", "10.0.0.9")], "ab")
    assert reading.mismatch(addresses, pods) == difference


def test_every_address_must_return_the_value() -> None:
    good = "STORED\r\nVALUE greeting 0 5\r\nhello\r\nEND\r\n"
    text = f"== 10.0.0.1\n{good}== 10.0.0.2\nERROR\r\n"
    assert reading.wrong_answers(text, ["10.0.0.1"], VALUE) == ""
    assert reading.wrong_answers(text, ["10.0.0.1", "10.0.0.2", "10.0.0.3"], VALUE) == (
        "10.0.0.2, 10.0.0.3 did not return 'hello'"
    )


def test_bash_accepts_the_script() -> None:
    subprocess.run(["bash", "-n", "-c", SCRIPT.replace("PORT", "11211")], check=True)
