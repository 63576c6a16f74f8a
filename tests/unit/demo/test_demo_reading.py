"""What objects and answers say."""

import subprocess

import pytest

from demo import reading
from demo.serving import TALK, VALUE
from unit.demo.fakes import memcached, pod

NEW: reading.Object = {**memcached(), "status": {}}


def test_settled_is_done() -> None:
    look = reading.progress(memcached())
    assert look == (True, "3 of 3 pods ready, Available=True, Progressing=False, Degraded=False", "")


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
    ids=["not ready", "not scaled", "nodes", "unavailable", "progressing", "degraded", "outdated", "new"],
)
def test_anything_else_is_not(found: reading.Object) -> None:
    assert not reading.progress(found).done


def test_a_pod_that_should_be_gone_holds_it_up_and_is_named() -> None:
    look = reading.progress(memcached(), gone=["b", "z"])
    assert not look.done
    assert look.text.endswith("still in the status: b")


def test_degraded_is_a_fault_with_its_message() -> None:
    assert reading.progress(memcached(Degraded="True", message="no such image")).fault == "no such image"
    assert reading.progress(memcached(message="no such image")).fault == ""


def test_getent_names_each_address_once() -> None:
    text = "10.0.0.2    STREAM cache.ns.svc\n10.0.0.2    DGRAM\n10.0.0.2    RAW\n10.0.0.1    STREAM\n\nfd00::1 RAW\n"
    assert reading.looked_up(text) == ["10.0.0.1", "10.0.0.2", "fd00::1"]


@pytest.mark.parametrize(
    ("addresses", "told"),
    [
        (["10.0.0.1", "10.0.0.2"], ""),
        (["10.0.0.1", "10.0.0.2", "fd00::2"], ""),
        (["10.0.0.1"], "no address for b"),
        (["10.0.0.1", "10.0.0.2", "10.0.0.9"], "10.0.0.9 is no pod of it"),
        ([], "no address for a, b"),
    ],
)
def test_addresses_are_those_of_the_pods(addresses: list[str], told: str) -> None:
    pods = reading.pod_addresses([pod("a", "10.0.0.1"), pod("b", "10.0.0.2", "fd00::2"), pod("old", "10.0.0.9")], "ab")
    assert reading.unmatched(addresses, pods) == told


def test_answers_must_come_from_every_address() -> None:
    good = "STORED\r\nVALUE greeting 0 5\r\nhello\r\nEND\r\n"
    text = f"== 10.0.0.1\n{good}== 10.0.0.2\nERROR\r\n"
    assert reading.wrong_answers(text, ["10.0.0.1"], VALUE) == ""
    assert reading.wrong_answers(text, ["10.0.0.1", "10.0.0.2", "10.0.0.3"], VALUE) == (
        "no 'hello' came back from 10.0.0.2, 10.0.0.3"
    )


def test_the_talk_is_shell_that_bash_reads() -> None:
    subprocess.run(["bash", "-n", "-c", TALK.replace("PORT", "11211")], check=True)
