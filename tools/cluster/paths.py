"""Directories: the cache, for everything that is built, and the state of each cluster."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PRODUCT = "memcached-operator"
HERE = Path(__file__).resolve().parent
TOOLS = HERE.parent
GO_MODULES = TOOLS / "go"


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Everything that can be built again: Go toolchain, binaries, images."""
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / PRODUCT


def state_root(environ: Mapping[str, str] = os.environ) -> Path:
    """The directory with one directory for each cluster."""
    return Path(environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / PRODUCT


@dataclass(frozen=True)
class State:
    """The files of one cluster."""

    dir: Path

    @property
    def cluster_file(self) -> Path:
        """The cluster's name, mode and addresses as JSON: what `info` prints."""
        return self.dir / "cluster.json"

    @property
    def components_file(self) -> Path:
        """The supervisor's components, as JSON."""
        return self.dir / "components.json"

    @property
    def socket(self) -> Path:
        """The supervisor's control socket."""
        return self.dir / "supervisor.sock"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.dir / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        """One JSON line per finished request (stage ResponseComplete)."""
        return self.dir / "audit.log"

    @property
    def config(self) -> Path:
        """Rendered configuration files of the components."""
        return self.dir / "config"

    @property
    def registries(self) -> Path:
        """containerd's configuration of registries: DIRECTORY/HOST:PORT/hosts.toml, read at each pull."""
        return self.dir / "registries"

    @property
    def certificates(self) -> Path:
        """The API server's self-signed serving pair."""
        return self.dir / "certificates"

    @property
    def containerd_socket(self) -> Path:
        """containerd's socket (node mode only)."""
        return self.dir / "containerd.sock"

    def log(self, component: str) -> Path:
        """Standard output and error of one component."""
        return self.dir / "logs" / f"{component}.log"
