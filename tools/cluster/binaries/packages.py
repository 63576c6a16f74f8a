"""Debian packages and pip: installed if possible, otherwise listed in the error."""

import os
import shutil
import sys
from pathlib import Path

from cluster.errors import ClusterError
from cluster.locks import waiting_for
from cluster.shell import run, succeeds

NODE_PACKAGES = {
    "containerd": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "unshare": "util-linux",
    "debootstrap": "debootstrap",
}
CNI_PLUGINS = ("/usr/lib/cni", "/opt/cni/bin")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
APT_ENV = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find(program: str) -> str | None:
    """A program on PATH or in the system's directories."""
    return shutil.which(program) or shutil.which(program, path=SYSTEM_PATH)


def cni_directory() -> Path | None:
    """The directory of the CNI plug-ins, if they are installed."""
    return next((Path(folder) for folder in CNI_PLUGINS if (Path(folder) / "ptp").exists()), None)


def missing_node_packages() -> list[str]:
    """The Debian packages that a node needs and this machine lacks."""
    names = [package for program, package in NODE_PACKAGES.items() if not find(program)]
    if not cni_directory():
        names.append("containernetworking-plugins")
    if not KEYRING.exists():
        names.append("debian-archive-keyring")
    return names


def install(names: list[str]) -> None:
    """Install Debian packages; raises ClusterError that lists them if they cannot be installed."""
    if not names:
        return
    wanted = " ".join(names)
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise ClusterError(f"missing: {wanted}. Install them with your package manager and run this again")
    with waiting_for("packages"):
        run(["apt-get", "update", "-qq"], env=APT_ENV)
        try:
            run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *names], env=APT_ENV)
        except ClusterError as error:
            text = f"installing {wanted} failed; install them manually and run this again.\n{error}"
            raise ClusterError(text) from error


def ensure_pip() -> None:
    """Make `python3 -m pip` work; raises ClusterError if pip cannot be installed."""
    if not succeeds([sys.executable, "-m", "pip", "--version"]):
        install(["python3-pip"])
    if not succeeds([sys.executable, "-m", "pip", "--version"]):
        raise ClusterError(f"{sys.executable} has no pip: install pip for it, or Go itself")
