"""Runs the commands of pages on the cluster of the tests, as a reader does in a pod or on a machine with kubectl."""

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cluster.public.lifecycle import running
from pages.commands import NAMESPACE, NC
from support import programs
from support.kube import kubectl
from support.waiting import ROLLOUT

LOCK_FILE = Path(tempfile.gettempdir()) / "memcached-operator-pages.lock"
PROGRAMS = ("curl", "openssl")
"""What the commands need besides kubectl."""
FORWARDS = "port-forward"
"""A command that listens on a fixed port of this machine."""
LOCK = """
exec 9> "$FORWARDING"
flock 9
"""
"""One shell after the other forwards ports. kubectl inherits the file: the lock ends when it no longer listens."""
PREAMBLE = f"""
mount --bind "$RESOLVER" /etc/resolv.conf
curl() {{ command curl --retry 30 --retry-connrefused --retry-delay 1 --retry-max-time 60 "$@"; }}
{NC}
"""
"""Names are resolved by the cluster's DNS; `curl` and `nc` wait until a port is forwarded."""


@dataclass(frozen=True)
class PageShell:
    """A shell in a directory, whose namespace stands for that of the examples."""

    folder: Path
    namespace: str

    def run(self, script: str, **environ: str) -> str:
        """Run commands and return their output; an error fails the test. Needs root, as real pods do."""
        missing = [name for name in PROGRAMS if not shutil.which(name)]
        assert not missing, f"the commands of the pages need {' and '.join(missing)}: install them"
        text = re.sub(rf"\b{NAMESPACE}\b", self.namespace, script)
        # The end of its PID namespace kills everything that the commands started, even after a time-out.
        words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-euo", "pipefail", "-c"]
        words.append(f"{LOCK if FORWARDS in text else ''}{PREAMBLE}\n{text}")
        done = programs.run(words, cwd=self.folder, env={**self._environ(), **environ}, timeout=ROLLOUT)
        assert done.returncode == 0, f"{text}: {done.stdout}{done.stderr}"
        return done.stdout

    def write(self, name: str, content: str) -> None:
        """Write a file that the page tells the reader to save."""
        (self.folder / name).write_text(content)

    def _environ(self) -> Mapping[str, str]:
        resolver, kubeconfig = self.folder / "resolv.conf", self.folder / "kubeconfig"
        if not kubeconfig.exists():
            _, plan = running()
            resolver.write_text(f"nameserver {plan.node_address}\n")
            kubeconfig.write_text(kubectl("config", "view", "--raw", "--flatten").stdout)
            config = ["--kubeconfig", str(kubeconfig), "config", "set-context", "--current"]
            kubectl(*config, "--namespace", self.namespace)
        path = os.pathsep.join([str(self.folder / "bin"), os.environ["PATH"]])
        return {
            **os.environ,
            "PATH": path,
            "KUBECONFIG": str(kubeconfig),
            "HOME": str(self.folder),
            "RESOLVER": str(resolver),
            "FORWARDING": str(LOCK_FILE),
        }
