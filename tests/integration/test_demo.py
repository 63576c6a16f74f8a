"""`make demo` without containers: the operator runs as processes, with a simulated node."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.cache import SIMULATED_STEPS
from support.waiting import COMMAND

ROOT = Path(__file__).parents[2]
OTHERS = ("KUBECONFIG", "KUBE_VERSION", "MAKEFLAGS", "MFLAGS", "ARGS", "SCENES")
"""Variables of the caller that would change the demo."""
NAME = f"demo-{os.getpid()}"

pytestmark = pytest.mark.sweep  # `make demo` is typed before `make test`


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    """The environment of a user who cannot run containers; their cluster is removed at the end."""
    kept = {name: value for name, value in os.environ.items() if name not in OTHERS}
    own = {**kept, "CLUSTER": "control-plane", "CLUSTER_NAME": NAME}
    yield own
    subprocess.run(["make", "--silent", "cluster-down"], cwd=ROOT, env=own, capture_output=True, check=True)


def test_all_steps_pass_and_ctrl_c_removes_the_webhooks(environment: dict[str, str]) -> None:
    command = ["make", "--silent", "demo"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=COMMAND
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("    ok ") == len(SIMULATED_STEPS)
    assert 'Left out, because simulated pods run no memcached: "Every pod responds".' in done.stderr
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as again:
        assert again.stdout
        assert again.stderr
        assert any("] Create a Memcached" in line for line in again.stdout)
        os.killpg(again.pid, signal.SIGINT)
        out, err = again.stdout.read(), again.stderr.read()
    assert again.returncode != 0
    assert "Interrupted. To clean up, run: kubectl delete namespace memcached-demo\n" in err, out + err
    assert configurations(environment) == ""


def configurations(environment: dict[str, str]) -> str:
    """The names of the webhook configurations that are left."""
    listed = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
    words = [".venv/bin/python", "-m", "project", "exec", "kubectl", "get", listed, "-o", "name"]
    return subprocess.run(
        words, cwd=ROOT, env={**environment, "PYTHONPATH": "tools"}, capture_output=True, text=True, check=True
    ).stdout
