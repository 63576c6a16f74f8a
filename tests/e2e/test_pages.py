"""The commands of the pages, run as a reader does: each must succeed, and change what the page says."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cluster.public.lifecycle import running
from pages.commands import NAMESPACE, NC
from support import kube, programs
from support.agents import readyz
from support.code_blocks import ROOT, located, page_commands
from support.kube import eventually, kubectl, must_get
from support.memcached import IMAGE, SMALL, conditions, memcached, pods_of, wait_until_ready
from support.secrets import users_secret
from support.waiting import READY, ROLLOUT

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


PASSWORD = "web:a-long-random-password"

pytestmark = [pytest.mark.usefixtures("cluster"), pytest.mark.kubectl]


@pytest.fixture
def shell(namespace: str, tmp_path: Path) -> PageShell:
    """A shell in an empty directory."""
    return PageShell(tmp_path, namespace)


def sessions(namespace: str, **spec: Any) -> kube.Object:
    """The cache of the examples, with one pod."""
    return memcached(namespace, "sessions", size=1, resources=SMALL, **spec)


def uids(namespace: str) -> set[str]:
    """The uids of the pods of the cache."""
    return {pod["metadata"]["uid"] for pod in pods_of(namespace, "sessions")}


def test_first_cache(shell: PageShell) -> None:
    shell.write("sessions.yaml", located("README.md", "## Example\n", languages=("yaml",)).text)
    printed = shell.run(page_commands("README.md", "## Example\n"))
    assert printed.splitlines()[1].split()[:2] == ["NAME", "SIZE"]
    shell.run(page_commands("gitops.md", "## Conditions\n"))
    cr = wait_until_ready(shell.namespace, "sessions", ROLLOUT)
    assert (cr["spec"]["size"], cr["status"]["readyReplicas"]) == (5, 5)
    shell.run(page_commands("migrating.md", "save it as `sessions.yaml`."))
    assert must_get("memcacheds", shell.namespace, "sessions")["spec"]["size"] == 3, "that of the file"
    shell.run(page_commands("scaling.md", "## Set the size\n"))
    assert must_get("memcacheds", shell.namespace, "sessions")["spec"]["size"] == 5


def test_cache_of_the_trial(shell: PageShell) -> None:
    (shell.folder / "examples").symlink_to(ROOT / "examples")
    shell.run(page_commands("try.md", "Create a cache with one pod"))
    assert "VALUE greeting 0 5" in shell.run(page_commands("try.md", "Store an item"))
    assert "cache" in shell.run(page_commands("try.md", "The operator restores what it owns."))
    patch = page_commands("try.md", "The operator rejects settings").rstrip()
    denied = shell.run(f"({patch}) 2>&1 || true")
    (shown,) = located("try.md", "The operator rejects settings").output
    assert shown in denied.splitlines()


def test_problems_of_a_cache(shell: PageShell) -> None:
    """Each command of the page works with a cache that has no problem. `kubectl memcached` then ends with 0."""
    install_plugin(shell)
    manifest = located("first-cache.md", "## 1. Describe the cache\n", languages=("yaml",)).text
    shell.write("sessions.yaml", manifest.replace("namespace: shop", f"namespace: {shell.namespace}"))
    shell.run(page_commands("first-cache.md", "## 2. Create it\n"))
    shell.run(page_commands("first-cache.md", "## 2. Create it\n", 1))
    assert "VALUE greeting 0 5" in shell.run(page_commands("first-cache.md", "## 4. Check it\n"))
    shell.run(page_commands("troubleshoot.md", "Start here."))
    shell.run(page_commands("troubleshoot.md", "## Pods are pending\n"))
    assert "Ready=True" in shell.run(page_commands("troubleshoot.md", "## A pod is not ready\n"))
    logs, status = page_commands("troubleshoot.md", "## A pod crashes\n").splitlines()
    assert "previous terminated container" in shell.run(f"({logs}) 2>&1 || true")
    shell.run(status)
    assert "AsExpected" in shell.run(page_commands("troubleshoot.md", "## Degraded: each reason\n"))
    shell.run(page_commands("troubleshoot.md", "## The status does not change\n"))
    assert "STAT evictions 0" in shell.run(page_commands("troubleshoot.md", "## Items are evicted\n"))
    events, top = page_commands("troubleshoot.md", "## The hit ratio is low\n").splitlines()
    shell.run(events)
    shell.run(f"{top} --once")
    assert "sessions-" in shell.run(page_commands("troubleshoot.md", "## Connections are refused\n"))
    servers, find = page_commands("troubleshoot.md", "## Stale keys after scaling\n").splitlines()
    assert "sessions-2.sessions." in shell.run(servers)
    shell.run(f"{find} || [ $? = 1 ]")
    shell.run(page_commands("troubleshoot.md", "## Webhook errors\n"))
    assert "sessions" in shell.run(page_commands("troubleshoot.md", "## A drain waits\n"))
    shell.run(page_commands("troubleshoot.md", "## A child is missing or changes back\n"))
    shell.run(page_commands("troubleshoot.md", "## A Secret is not used\n"))
    fleet = page_commands("upgrade-memcached.md", "## Which caches need it\n").rstrip()
    assert "sessions" in shell.run(f"{fleet} || test $? = 1"), "1 if a cache of another test is not ready"
    patch, wait = page_commands("upgrade-memcached.md", "Without the plugin").splitlines()
    shell.run(f"{patch} --dry-run=server")
    shell.run(wait)


def test_pause_restart_and_defaults_of_existing_objects(shell: PageShell) -> None:
    kube.apply(sessions(shell.namespace))
    wait_until_ready(shell.namespace, "sessions")
    before = uids(shell.namespace)
    pause, resume = page_commands("placing.md", "**Pause and resume.**").splitlines()
    shell.run(pause)
    shell.run(page_commands("placing.md", "**Restart:**"))
    eventually(lambda: paused(shell.namespace), description="the rollout is paused")
    assert uids(shell.namespace) == before
    shell.run(resume)
    eventually(lambda: uids(shell.namespace).isdisjoint(before), ROLLOUT, "the pod is replaced")
    wait_until_ready(shell.namespace, "sessions", ROLLOUT)
    restarted = uids(shell.namespace)
    shell.run(page_commands("placing.md", "### Existing objects\n"))
    spec = wait_until_ready(shell.namespace, "sessions")["spec"]
    assert (spec["podDisruptionBudget"]["enabled"], spec["rollout"]["maxSurge"]) == (True, 1)
    assert uids(shell.namespace) == restarted


def paused(namespace: str) -> bool:
    """Whether a condition reports a pause."""
    return any(each["reason"] == "Paused" for each in conditions(namespace, "sessions").values())


def test_autoscaler_of_the_deployment_becomes_that_of_the_memcached(shell: PageShell) -> None:
    kube.apply(sessions(shell.namespace))
    shell.write("hpa.yaml", located("scaling.md", "## Scale automatically\n", languages=("yaml",)).text)
    shell.run("kubectl apply -f hpa.yaml")
    target = """{"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"sessions"}}}"""
    shell.run(f"kubectl patch hpa sessions --type=merge -p '{target}'")
    shell.run(page_commands("scaling.md", "## Do not scale the Deployment\n"))
    shell.run(page_commands("scaling.md", "### Downscalers\n"))
    printed = shell.run(page_commands("scaling.md", "## Scale automatically\n"))
    assert printed.splitlines()[1].split()[:2] == ["sessions", "Memcached/sessions"]


def test_tls_and_password(shell: PageShell) -> None:
    shell.run(page_commands("tls.md", "### Create the Secret yourself\n"))
    shell.run("openssl verify -x509_strict -CAfile ca.crt tls.crt")
    kube.apply(users_secret(shell.namespace, "sessions-users", PASSWORD))
    secrets: dict[str, Any] = {"tls": {"secretName": "sessions-tls"}, "auth": {"secretName": "sessions-users"}}
    kube.apply(sessions(shell.namespace, identity="Stable", monitoring={}, **secrets))
    wait_until_ready(shell.namespace, "sessions")
    served = shell.run(page_commands("tls.md", "### Check the certificate\n"))
    assert "Verify return code: 0 (ok)" in served
    assert "VERSION" in shell.run(page_commands("auth.md", "## How a client logs in\n"))
    assert "ok" in shell.run(page_commands("tls.md", "Ask the agent:\n"))
    kube.apply(sessions(shell.namespace, identity="Stable", monitoring={"tls": {}}, **secrets))
    wait_until_ready(shell.namespace, "sessions", ROLLOUT)
    (pod,) = pods_of(shell.namespace, "sessions")
    metrics = shell.run(page_commands("monitoring.md", "## HTTPS\n"), POD_IP=pod["status"]["podIP"])
    assert "\nmemcached_up 1" in metrics


def test_warm_gate_says_why_a_pod_is_not_ready(shell: PageShell) -> None:
    kube.apply(sessions(shell.namespace, identity="Stable", rollout={"warmUp": {}}))
    eventually(lambda: agent_answers(shell.namespace), READY, "the agent answers")
    script = page_commands("warm.md", "`/readyz` on port 9151 of a pod says why it is not ready:")
    assert shell.run(script.replace("sessions-2", "sessions-0")).splitlines()[-1].startswith("not warm yet: ")


def agent_answers(namespace: str) -> bool:
    """Whether the agent of the only pod answers. A container that runs may not listen yet."""
    with suppress(KeyError, ValueError):  # there is no pod, or it has no address
        (pod,) = pods_of(namespace, "sessions")
        return bool(readyz(pod))
    return False


def test_old_service_selects_the_new_pods(shell: PageShell) -> None:
    """A plain Deployment with its Service, whose clients move to the pods of the cache."""
    labels = {"app": "memcached"}
    container = {"name": "memcached", "image": IMAGE}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": "memcached", "namespace": shell.namespace}
    kube.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
    ports = [{"port": 11211}]
    kube.apply({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"selector": labels, "ports": ports}})
    kube.apply(sessions(shell.namespace))
    wait_until_ready(shell.namespace, "sessions")
    shell.run(page_commands("migrating.md", "**Keep the address that your clients use.**"))
    assert kube.get("deployments", shell.namespace, "memcached") is None
    address = f"memcached.{shell.namespace}.svc.cluster.local"
    counted = page_commands("migrating.md", "The count includes the connection")
    eventually(lambda: "STAT curr_connections" in shell.run(f"({counted}) || true", OLD_ADDRESS=address), READY)


def test_images_that_are_in_use(shell: PageShell) -> None:
    kube.apply(sessions(shell.namespace))
    wait_until_ready(shell.namespace, "sessions")
    assert IMAGE in shell.run(page_commands("air-gap.md", "## Check it\n")).splitlines()


def test_dashboards_are_installed(shell: PageShell) -> None:
    (shell.folder / "config").symlink_to(ROOT / "config")
    try:
        shell.run(page_commands("dashboards.md", "### Apply the manifests\n"))
        found = kube.items("configmaps", "memcached-operator-system", "grafana_dashboard=1")
        assert len(found) == 3
    finally:
        kubectl("delete", "--ignore-not-found", "-k", str(ROOT / "config/grafana"))


def install_plugin(shell: PageShell) -> None:
    """Put the plugin of these sources into the PATH of the shell."""
    (shell.folder / "bin").mkdir()
    program = shell.folder / "bin/kubectl-memcached"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT / "plugin"} exec {sys.executable} -m kubectl_memcached "$@"\n')
    program.chmod(0o755)


def test_plugin(shell: PageShell) -> None:
    install_plugin(shell)
    (shell.folder / ".local/bin").mkdir(parents=True)
    shell.run(page_commands("plugin.md", "### Completion\n"), HOME=str(shell.folder))
    assert (shell.folder / ".local/bin/kubectl_complete-memcached").stat().st_mode & 0o111
    kube.apply(sessions(shell.namespace))
    wait_until_ready(shell.namespace, "sessions")
    shell.run(page_commands("plugin.md", "## report\n"))
    assert [file.suffix for file in shell.folder.glob("memcached-sessions-*")] == [".zip"]
    before = uids(shell.namespace)
    shell.run(page_commands("plugin.md", "## restart, pause, resume\n"))
    eventually(lambda: uids(shell.namespace).isdisjoint(before), ROLLOUT, "the pod is replaced")
