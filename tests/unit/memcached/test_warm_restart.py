"""The start script and the stop command of a memcached that keeps its items, in each `sh` of this machine."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from memcached_operator.memcached.desired.warm_restart import CACHE_PATH, SCRIPT, STOP, command
from memcached_operator.parts.agent import MOUNT_PATH
from support import programs

SHELLS: Mapping[str, list[str]] = {"dash": ["dash"], "bash": ["bash"], "busybox": ["busybox", "sh"]}
INSTALLED = {name: words for name, words in SHELLS.items() if shutil.which(words[0])}
FIXED = ("-p", "11211", "-l", "*", "-Z")
TIME = 60.0
"""Seconds for a script, on a busy machine too."""


class Container:
    """Where the script finds its files, and a memcached that prints its arguments."""

    def __init__(self, directory: Path, shell: list[str]) -> None:
        self.cache, self.info, self.programs = (directory / each for each in ("cache", "podinfo", "bin"))
        for each in (self.cache, self.info, self.programs):
            each.mkdir()
        self.args, self.items, self.meta = self.info / "args", self.cache / "items", self.cache / "items.meta"
        self.pid = self.cache / "memcached.pid"
        self._shell = shell
        self.program("memcached", 'echo $$ "$@"')
        self.args.write_text("-m 64 -o modern,a=b")

    def program(self, name: str, text: str) -> None:
        """A program in the path."""
        (self.programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.programs / name).chmod(0o755)

    def start(self, script: str = SCRIPT) -> subprocess.Popen[str]:
        """Start the container's command, as the kubelet does."""
        text = script.replace("$$$$", "$$")
        for path, directory in ((CACHE_PATH, self.cache), (MOUNT_PATH, self.info)):
            text = text.replace(f"{path}/", f"{directory}/")
        words = [*self._shell, "-c", text, *command(FIXED)[3:]]
        environment = {"PATH": f"{self.programs}:{os.environ['PATH']}"}
        return subprocess.Popen(words, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, script: str = SCRIPT) -> tuple[int, str, str]:
        """Run it until it ends; its exit code, output and errors."""
        process = self.start(script)
        output, errors = process.communicate(timeout=TIME)
        return process.returncode, output, errors


@pytest.fixture(params=INSTALLED.values(), ids=list(INSTALLED))
def container(tmp_path: Path, request: pytest.FixtureRequest) -> Container:
    return Container(tmp_path, request.param)


@pytest.mark.parametrize("text", ["-m 64 -o modern,a=b", "  -m  64 -o modern,a=b\n", "-m 64 -o modern,a=b\n-Y none"])
def test_memcached_starts_with_the_fixed_arguments_first(container: Container, text: str) -> None:
    """As the process of the script, whose ID is in the file."""
    container.args.write_text(text)
    code, output, errors = container.run()
    assert (code, errors) == (0, "")
    number, _, arguments = output.partition(" ")
    assert arguments == "-p 11211 -l * -Z -e /cache/items -m 64 -o modern,a=b\n"
    assert container.pid.read_text() == f"{number}\n"


@pytest.mark.parametrize("text", [None, "", "\n-m 64", " \n"])
def test_memcached_is_not_started_without_arguments(container: Container, text: str | None) -> None:
    """It would run with the defaults of memcached."""
    if text is None:
        container.args.unlink()
    else:
        container.args.write_text(text)
    code, output, errors = container.run()
    assert (code, output) == (1, "")
    assert "/args is missing or empty, so that memcached is not started: restore the annotation" in errors


META = "Tslabs\nKpage_size 1048576\nTmain\nKoldest 1\n"
CUT = ["", "\n", "T", META[:-1], META[:20], "\0" * 8, "Kpage_size 1048576\n"]


@pytest.mark.parametrize("meta", [META, "Tslabs\n", *CUT], ids=range(2 + len(CUT)))
def test_description_of_items_that_is_cut_is_deleted(container: Container, meta: str) -> None:
    container.meta.write_text(meta)
    code, output, errors = container.run()
    assert (code, " -m 64 " in output) == (0, True)
    assert container.meta.exists() is (meta not in CUT)
    assert ("is incomplete: memcached starts without its items" in errors) is (meta in CUT)


def test_memcached_waits_for_its_clock_only_if_it_has_items(container: Container) -> None:
    container.program("sleep", "exit 9")  # unless `sleep` is a part of the shell
    began = time.monotonic()
    assert container.run()[0] == 0
    assert time.monotonic() - began < 2
    (container.programs / "sleep").unlink()
    container.items.touch()
    began = time.monotonic()
    assert container.run()[0] == 0
    assert time.monotonic() - began >= 2


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGUSR1])
def test_stop_before_memcached_starts_ends_the_script(container: Container, signum: int) -> None:
    container.items.touch()
    ended = container.cache / "ended"
    program = shutil.which("sleep")
    # The shell handles the signal when `sleep` ends. It must not end before, which a part of the shell may do.
    container.program("sleep", f"until [ -e {ended} ]; do {program} 0.01; done")
    process = container.start()
    deadline = time.monotonic() + TIME
    while not (container.pid.exists() and container.pid.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signum)
    ended.touch()
    assert process.communicate(timeout=TIME) == ("", ""), "memcached was not started"
    # `read`, which a signal can interrupt before `sleep` starts, has the status 1 or, in bash, more than 128.
    assert process.returncode in (0, 1, 128 + signum)


@pytest.mark.parametrize(("name", "ends"), [("memcached", True), ("another", False)])
def test_stop_signals_only_memcached(container: Container, name: str, ends: bool) -> None:
    """The file can be older than the process that has this ID now."""
    program = container.programs / name
    program.unlink(missing_ok=True)
    shutil.copy(shutil.which("sleep") or "", program)
    with subprocess.Popen([program, str(TIME)]) as process:
        try:
            container.pid.write_text(f"{process.pid}\n")
            container.program("sleep", "exit 0")  # the script waits for the end of the container
            assert (container.run(STOP)[0] == 0) is ends
            assert (process.wait(TIME) == -signal.SIGUSR1) if ends else (process.poll() is None)
        finally:
            process.kill()


@pytest.mark.parametrize("script", [SCRIPT.replace("$$$$", "$$"), STOP], ids=["start", "stop"])
def test_scripts_are_portable(script: str) -> None:
    """Except that the arguments must be split."""
    words = [Path(sys.executable).with_name("shellcheck"), "--shell=sh", "--exclude=SC2086", "-"]
    found = programs.run(words, stdin=f"{script}\n", timeout=TIME)
    assert (found.returncode, found.stdout) == (0, "")
