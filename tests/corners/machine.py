"""What the tests with real memcacheds need of the machine, and the network namespace in which they run."""

import ctypes
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cluster.errors import ClusterError
from cluster.public.programs import find, install
from cluster.shell import run
from corners.groups import memory_group

CLONE_NEWNET: Final = 0x40000000
TCP_BUFFERS: Final = {"tcp_rmem": "4096 131072 6291456", "tcp_wmem": "4096 16384 4194304"}
"""The kernel's defaults: minimum, initial and maximum bytes per socket. The host may have others."""


def check() -> None:
    """Raise ClusterError, which says what is missing, if servers with memory limits cannot be started here."""
    if sys.platform != "linux" or os.geteuid() != 0:
        raise ClusterError(
            "the corner tests need root on Linux, for memory control groups and a network namespace: run "
            "`sudo make test-corners`"
        )
    with memory_group(f"corners-{os.getpid()}-probe"):
        pass


def obstacle(environ: Mapping[str, str] = os.environ) -> str:
    """Why the sample in `make test` cannot start memcached here; an empty string if it can."""
    if environ.get("CLUSTER") == "control-plane":
        return "CLUSTER=control-plane means no containers: unset it to start memcached in memory control groups"
    try:
        check()
    except ClusterError as error:
        return str(error)
    return ""


def require() -> None:
    """Install the missing programs. Raises ClusterError, which says what is missing, if the machine cannot run servers.

    memcached itself comes from `releases.ensure`, which installs debootstrap if it needs it.
    """
    check()
    install([] if find("ip") else ["iproute2"])


@contextmanager
def private_network() -> Generator[None]:
    """A new network namespace with only loopback, for the calling thread and the processes that it starts.

    There, every port is free, and a server that listens on all addresses can be reached only from here.
    Raises ClusterError without the permission to do so.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open() as before:
        if libc.unshare(CLONE_NEWNET):
            reason = os.strerror(ctypes.get_errno())
            raise ClusterError(f"a network namespace cannot be created ({reason}): run as root")
        try:
            run(["ip", "link", "set", "lo", "up"])
            for name, value in TCP_BUFFERS.items():
                Path(f"/proc/sys/net/ipv4/{name}").write_text(value)
            yield
        finally:
            libc.setns(before.fileno(), CLONE_NEWNET)
