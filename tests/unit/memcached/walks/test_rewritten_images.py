"""An image that admission replaces in new pods only, so that it cannot be pulled where it is changed in place."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import pytest

from memcached_operator.engine.reporting.conditions import reported_transitions
from memcached_operator.engine.reporting.reports import Report, of_condition
from memcached_operator.kube.resource import Object
from unit.memcached.walks.cluster import Cluster
from unit.memcached.walks.test_remedies import MINUTE, REPLACE, restart, spec, started

CHANGES: Final[dict[str, Object]] = {
    "memcached": {"image": "memcached:2"},
    "agent": {"agent": {"image": "agent:2", "resources": {"limits": {"memory": "48Mi"}}}},
}
PULLED: Final = re.compile(
    r'the image (\S+) of container \w+ cannot be pulled: failed to pull and unpack image "([^"]+)": not found'
)


class Statuses(Cluster):
    """A cluster that keeps each status that the operator computes."""

    def __init__(self, *arguments: Any) -> None:
        self.statuses: list[Object] = [{}]
        super().__init__(*arguments)

    def _write_status(self, status: Object, now: Any) -> None:
        self.statuses.append(status)
        super()._write_status(status, now)

    def reports(self) -> Iterator[Report]:
        """The Events about conditions, if each status is written."""
        for before, after in pairwise(self.statuses):
            yield from map(of_condition, reported_transitions(before, after, rollout=False))


@pytest.mark.parametrize(("container", "change"), CHANGES.items())
def test_event_and_status_name_one_image_and_the_remedy_that_helps(container: str, change: Object) -> None:
    cluster, checks = started(Statuses, mirror=True)
    cluster.change_spec(spec(**change))
    cluster.run(15 * MINUTE)
    degraded = [report for report in cluster.reports() if report.reason == "ImageUnavailable"]
    assert len(degraded) == 1, degraded
    assert REPLACE in degraded[0].message
    texts = [str(status.get("conditions")) for status in cluster.statuses]
    assert [text for text in texts if "correct spec." in text or "operator knows" in text] == []
    assert {found for text in texts for found in PULLED.findall(text)} == {(f"{container}:2", f"{container}:2")}
    restart(cluster)
    cluster.run(30 * MINUTE)
    checks.end(complete=True)
    assert cluster.status()["Degraded"]["message"] == "All components are healthy"
