"""Runs tasks in forked processes, each in a folder of its own and with a limit."""

import gc
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from hypothesis import Phase, settings

IMPORTED = ("aiohttp", "click", "cryptography.x509", "kopf", "kubernetes", "msgspec", "prometheus_client", "yaml")
"""Packages that the tests import; imported once, before the processes are forked."""
EXAMPLES = 20
"""Examples of Hypothesis for each test that sets no number."""
BROKEN = 100
"""Exit code of a task that failed."""
SHARE = 4
"""A task may use the processor for one such part of its limit."""


class Task(NamedTuple):
    """A limit in seconds, and a function of a folder for its files that returns the exit code."""

    limit: int
    run: Callable[[Path], int]


class Done(NamedTuple):
    """A task that ended. A negative exit code is that of a signal. The folder is deleted after use."""

    name: str
    folder: Path
    code: int
    seconds: float


def run_all(folder: Path, tasks: Mapping[str, Task], jobs: int) -> Iterator[Done]:
    """Run tasks, `jobs` at a time, each in a folder and a process group of its own."""
    gc.freeze()  # the children copy the pages that a collection changes
    running: dict[int, tuple[str, float]] = {}
    waiting = list(tasks)[::-1]
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name = waiting.pop()
                (folder / name).mkdir()
                pid = os.fork() or _child(folder / name, tasks[name])
                running[pid] = name, time.monotonic()
            pid, status = os.wait()
            _kill(pid)
            name, start = running.pop(pid)
            yield Done(name, folder / name, os.waitstatus_to_exitcode(status), time.monotonic() - start)
            shutil.rmtree(folder / name, ignore_errors=True)
    finally:
        for pid in running:
            _kill(pid)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _child(folder: Path, task: Task) -> int:
    code = BROKEN
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.alarm(task.limit)
        resource.setrlimit(resource.RLIMIT_CPU, (task.limit // SHARE, task.limit))
        _redirect(folder / "output")
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
        code = task.run(folder)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(code)


def apart(tree: Path, output: Path, work: Callable[[], object]) -> None:
    """Run work with the modules of a checkout in another process. Raises SystemExit if it fails."""
    for package in IMPORTED:
        import_module(package)
    pid = os.fork()
    if not pid:
        code = 1
        try:
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            _redirect(output)
            prepare(tree)
            work()
            code = 0
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    try:
        status = os.waitpid(pid, 0)[1]
    except BaseException:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        raise
    if status:
        raise SystemExit(f"error: a process of the tests failed:\n{output.read_text()[-5000:]}")


def prepare(tree: Path) -> None:
    """Let this process import the modules of a checkout only, and pytest run as in the suites."""
    os.chdir(tree)
    os.environ.pop("PYTHONPATH", None)
    # pytest adds the folders of the checkout; those of this program must not hide them.
    sys.path[:] = [each for each in sys.path if each.startswith(sys.base_prefix) or "site-packages" in each]
    # The profile of conftest.py inherits from this one: the same examples each time, and fewer, to save time.
    phases = (Phase.explicit, Phase.generate)  # a failure need not be simplified
    settings.register_profile("mutation", database=None, derandomize=True, max_examples=EXAMPLES, phases=phases)
    settings.load_profile("mutation")


def _redirect(output: Path) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    os.dup2(1, 2)
