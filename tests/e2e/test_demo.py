"""The demo of `make demo` on the deployed operator, in a namespace of the test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from demo.cache import STEPS
from support import kube
from support.memcached import memcached

ROOT = Path(__file__).parents[2]


def run_demo(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Run the demo as `make demo` does."""
    return subprocess.run(
        [sys.executable, "-m", "demo", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tools"), **environ},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=ROOT,
    )


@pytest.mark.nightly
def test_all_steps_pass_and_objects_of_an_earlier_run_are_deleted(namespace: str) -> None:
    kube.apply(memcached(namespace, "left-over", size=1))
    done = run_demo("--namespace", namespace)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("    ok ") == len(STEPS)
    # The Memcached remains for the user to inspect.
    assert kube.names(kube.items("memcacheds", namespace)) == ["memcached-sample"]
    kube.kubectl("delete", "memcacheds", "--all", "-n", namespace, "--wait=false")


def test_sample_that_cannot_work_ends_the_demo_with_the_cause(namespace: str, tmp_path: Path) -> None:
    sample = tmp_path / "sample.yaml"
    sample.write_text(
        "apiVersion: cache.example.com/v1\nkind: Memcached\nmetadata: {name: broken}\n"
        "spec: {size: 1, image: localhost/memcached-operator/no-such-image:1}\n"
    )
    done = run_demo("--namespace", namespace, "--sample", str(sample))
    assert done.returncode == 1
    assert "Step 5 failed: waiting for memcached/broken to be available failed: Pod broken-" in done.stderr
    assert "cannot be pulled" in done.stderr
    kube.kubectl("delete", "memcacheds", "--all", "-n", namespace, "--wait=false")
