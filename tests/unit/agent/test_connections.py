"""The metric of the connections that memcached leaves for clients."""

import pytest

from kubectl_memcached.model.statistics import rows
from memcached_agent.metrics.connections import RESERVED, families
from memcached_agent.metrics.exposition import render

from .samples import reference


@pytest.mark.parametrize(
    ("limit", "reserved", "expected"),
    [("1024", "20", ["995"]), ("60", "20", ["31"]), ("15", "5", ["1"]), ("20", "20", ["0"]), ("1024", None, [])],
)
def test_usable_connections(limit: str, reserved: str | None, expected: list[str]) -> None:
    found = reference()
    general = {key: value for key, value in found.general.items() if key != "reserved_fds"}
    changed = found._replace(
        settings=found.settings | {"maxconns": limit},
        general=general if reserved is None else general | {"reserved_fds": reserved},
    )
    lines = render(families(changed)).decode().splitlines()
    assert [line.split()[1] for line in lines if not line.startswith("#")] == expected


def test_plugin_counts_as_the_agent_does() -> None:
    """The plugin needs no agent, and imports none of its modules."""
    assert rows.RESERVED == RESERVED
