"""The warning about memory for many watched namespaces."""

from pathlib import Path

import pytest

from memcached_operator.engine.runtime.memory import MIB, limit_of_container, memory_warning

CASES = {
    "all namespaces": (0, 64 * MIB, ""),
    "shipped limit": (100, 256 * MIB, ""),
    "too many": (
        200,
        256 * MIB,
        "200 watched namespaces need about 375 MiB of memory, more than the container's limit of 256",
    ),
    "exactly enough": (2, 78 * MIB, ""),
    "a higher limit": (200, 384 * MIB, ""),
    "no limit": (1000, None, ""),
}


@pytest.mark.parametrize(("namespaces", "limit", "text"), CASES.values(), ids=CASES.keys())
def test_warning(namespaces: int, limit: int | None, text: str) -> None:
    found = memory_warning(namespaces, limit)
    assert found.startswith(text)
    assert bool(found) is bool(text)


@pytest.mark.parametrize(("text", "limit"), [("268435456\n", 256 * MIB), ("max\n", None), ("", None), (None, None)])
def test_limit_of_the_container(text: str | None, limit: int | None, tmp_path: Path) -> None:
    path = tmp_path / "memory.max"
    if text is not None:
        path.write_text(text)
    assert limit_of_container(path) == limit
