"""Memory control groups of both versions, read from files."""

from pathlib import Path

import pytest

from cluster.errors import ClusterError
from corners import groups
from corners.groups import MemoryGroup, memory_group

FILES = {
    True: {
        "memory.current": "5700\n",
        "memory.stat": "anon 2000\nfile 1700\nsock 1000\nshmem 1000\n",
        "memory.events": "low 0\nmax 7\noom 2\noom_kill 1\n",
    },
    False: {
        "memory.usage_in_bytes": "4700\n",
        "memory.stat": "cache 1700\nrss 3000\nshmem 1000\n",
        "memory.kmem.tcp.usage_in_bytes": "1000\n",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
    },
}


@pytest.mark.parametrize("unified", [True, False], ids=["v2", "v1"])
def test_memory_with_files_in_memory_but_without_other_page_cache_sockets_and_kills(
    tmp_path: Path, *, unified: bool
) -> None:
    for name, text in FILES[unified].items():
        (tmp_path / name).write_text(text)
    group = MemoryGroup(tmp_path, unified)
    assert group.current() == (4000, 1000)
    assert group.kills() == 1


@pytest.mark.parametrize(
    ("unified", "limit", "written"),
    [
        (True, 100, {"memory.max": "100"}),
        (True, None, {"memory.max": "max"}),
        (False, 100, {"memory.limit_in_bytes": "100", "memory.kmem.tcp.limit_in_bytes": str(groups.UNLIMITED)}),
        (False, None, {"memory.kmem.tcp.limit_in_bytes": str(groups.UNLIMITED)}),
    ],
)
def test_limit(tmp_path: Path, *, unified: bool, limit: int | None, written: dict[str, str]) -> None:
    MemoryGroup(tmp_path, unified).set_limit(limit)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == written


@pytest.mark.parametrize(
    ("unified", "remedy"),
    [(True, r"memory control group in .*--cgroupns=host"), (False, r"need root.*--privileged")],
)
def test_group_that_cannot_be_created_is_an_error_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, unified: bool, remedy: str
) -> None:
    # A container with its own cgroup namespace cannot write this file: here it is a directory.
    (tmp_path / "cgroup.subtree_control").mkdir()
    monkeypatch.setattr(groups.cgroups, "ROOT", tmp_path)
    monkeypatch.setattr(groups.cgroups, "is_v2", lambda: unified)
    with pytest.raises(ClusterError, match=remedy), memory_group("any"):
        pass
