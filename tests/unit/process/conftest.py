"""Both kinds of ports, and checks of timeouts that are deadline early."""

from pathlib import Path

import pytest

from memcached_process import connections


@pytest.fixture(params=["plain", "TLS"])
def tls(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """Both kinds of ports."""
    return tmp_path if request.param == "TLS" else None


@pytest.fixture(autouse=True)
def sweeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are checked often."""
    monkeypatch.setattr(connections, "SWEEP_PERIOD", 0.02)
