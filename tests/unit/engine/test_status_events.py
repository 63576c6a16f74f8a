"""The Events that the controller writes."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from memcached_operator.engine.reporting.posted_events import MAX_MESSAGE_LENGTH, Recorder, event_of
from memcached_operator.engine.reporting.reports import Report
from unit.builders import NOW, memcached
from unit.fakes import Api


async def until(condition: Callable[[], Any]) -> None:
    """Wait until the condition is true."""
    while not condition():  # noqa: ASYNC110 - waits for the fake API server
        await asyncio.sleep(0.005)


def reported(message: str = "no image", *, warning: bool = True, now: datetime = NOW) -> dict[str, Any]:
    """The Event about a Memcached."""
    return event_of(memcached(version=7), Report("ImageUnavailable", message, warning), now)


def test_event_names_the_object_and_has_the_texts_of_its_report() -> None:
    assert reported() == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "cache.1a470f7d7e7c8000", "namespace": "test"},
        "involvedObject": {
            "apiVersion": "cache.example.com/v1",
            "kind": "Memcached",
            "name": "cache",
            "namespace": "test",
            "uid": "cr",
            "resourceVersion": "7",
        },
        "type": "Warning",
        "reason": "ImageUnavailable",
        "message": "no image",
        "source": {"component": "memcached-operator"},
        "reportingComponent": "memcached-operator",
        "firstTimestamp": "2030-01-01T12:00:00Z",
        "lastTimestamp": "2030-01-01T12:00:00Z",
        "count": 1,
    }


@pytest.mark.parametrize(("warning", "expected"), [(False, "Normal"), (True, "Warning")])
def test_event_has_the_type_of_its_report(warning: bool, expected: str) -> None:
    assert reported(warning=warning)["type"] == expected


@pytest.mark.parametrize("length", [MAX_MESSAGE_LENGTH, MAX_MESSAGE_LENGTH + 1])
def test_message_is_not_longer_than_the_api_server_accepts(length: int) -> None:
    assert len(reported(message="a" * length)["message"]) == 1024


def test_events_of_one_object_have_different_names() -> None:
    later = reported(now=NOW + timedelta(microseconds=1))
    assert later["metadata"]["name"] != reported()["metadata"]["name"]


def test_events_of_one_object_or_namespace_do_not_fill_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.engine.reporting.posted_events.MAX_QUEUED_EVENTS", 6)
    api = Api()
    recorder = Recorder(api.client)
    reports = [Report("RolloutStarted", "a")] * 10
    noisy, neighbor, other = (memcached(name, uid=name) for name in "abc")
    other["metadata"]["namespace"] = "other"

    async def scenario() -> None:
        for cr in (noisy, neighbor, other):
            recorder.record(cr, reports)
        task = asyncio.create_task(recorder.run())
        await until(lambda: len(api.objects) == 6)
        recorder.record(noisy, reports)
        await until(lambda: len(api.objects) == 10)
        task.cancel()

    asyncio.run(scenario())
    names = [event["involvedObject"]["name"] for event in api.objects.values()]
    assert "".join(names) == "acacacaaaa"


def test_unexpected_error_of_one_event_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    api = Api()
    recorder = Recorder(api.client)

    def defective() -> None:
        raise ValueError("defect")

    api.hooks["create"] = [defective]

    async def scenario() -> None:
        recorder.record(memcached(), [Report("RolloutStarted", text) for text in "ab"])
        task = asyncio.create_task(recorder.run())
        await until(lambda: api.objects)
        task.cancel()

    asyncio.run(scenario())
    assert [event["message"] for event in api.objects.values()] == ["b"]
    assert "unexpected error, please report it: Event test/cache." in caplog.text
