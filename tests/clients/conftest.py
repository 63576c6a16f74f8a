"""What the tests of the client libraries share: the programs and the name server of the cluster."""

from pathlib import Path
from typing import Any

import pytest

from clients import libraries
from cluster.errors import ClusterError
from support import pods


@pytest.fixture(scope="session", autouse=True)
def operator() -> None:
    """The deployed operator."""
    pods.use_operator()


@pytest.fixture(scope="session")
def programs() -> dict[str, libraries.Command]:
    """The client programs."""
    try:
        return libraries.build()
    except ClusterError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def dns(cluster: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The resolv.conf of the clients."""
    file = tmp_path_factory.mktemp("dns") / "resolv.conf"
    file.write_text(f"nameserver {cluster['dns_address']}\n")
    return file
