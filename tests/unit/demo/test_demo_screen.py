"""The output of the demo, on a terminal and in a file."""

import io

import pytest
from demo.errors import DemoError
from demo.waiting import PROBLEM_SECONDS, Progress, wait

from unit.demo.fakes import Clock, Terminal, screen


def test_step_prints_plain_lines_and_its_duration() -> None:
    out, clock = io.StringIO(), Clock()
    shown = screen(out, clock)
    with shown.step("First", "What it is about."):
        shown.command("kubectl apply -f - <<'END'\nkind: X\nEND")
        shown.result("done\n")
        clock.sleep(1.25)
    assert out.getvalue() == (
        "\n[1/3] First\n    What it is about.\n    $ kubectl apply -f - <<'END'\nkind: X\nEND\n    done\n    ok 1.2 s\n"
    )


def test_failed_step_is_marked() -> None:
    out = io.StringIO()
    with pytest.raises(DemoError), screen(out).step("First", ""):
        raise DemoError("no")
    assert out.getvalue().endswith("stopped after 0.0 s\n")


def test_progress_is_printed_only_when_it_changes() -> None:
    out = io.StringIO()
    shown = screen(out)
    for text in ("1 of 2", "1 of 2", "2 of 2"):
        shown.move(text)
    assert out.getvalue() == "    ... 1 of 2\n    ... 2 of 2\n"


def test_progress_on_a_terminal_is_one_line_and_is_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    shown = screen(out)
    shown.move("1 of 2")
    shown.move("2 of 2")
    shown.say("there")
    assert out.getvalue() == "\r\033[K    ... 1 of 2\r\033[K    ... 2 of 2\r\033[K    there\n"


def test_progress_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    screen(out).move("x" * 100)
    assert len(out.getvalue().removeprefix("\r\033[K")) == 39


def test_only_terminals_get_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = Terminal()
    screen(out).command("kubectl get pods")
    assert "\033[1m$ kubectl get pods\033[0m" in out.getvalue()


def test_wait_returns_its_duration() -> None:
    clock = Clock()
    checks = iter([Progress(False, "a"), Progress(False, "b"), Progress(True, "c")])
    assert wait(screen(clock=clock), lambda: next(checks), "it", sleep=clock.sleep) == pytest.approx(0.6)


def test_timeout_reports_the_last_state() -> None:
    clock = Clock()
    with pytest.raises(DemoError, match=r"^waiting for it timed out after 5 s; last state: 1 of 2$"):
        wait(screen(clock=clock), lambda: Progress(False, "1 of 2"), "it", 5, clock.sleep)


def test_persistent_problem_ends_the_wait_early() -> None:
    clock = Clock()
    with pytest.raises(DemoError, match=r"^waiting for it failed: no image$"):
        wait(screen(clock=clock), lambda: Progress(False, "0 of 2", "no image"), "it", sleep=clock.sleep)
    assert clock.now == pytest.approx(PROBLEM_SECONDS, abs=1)


def test_temporary_problem_does_not_end_the_wait() -> None:
    clock = Clock()

    def check() -> Progress:
        return Progress(
            clock.now > 3 * PROBLEM_SECONDS, "", "no image" if clock.now % PROBLEM_SECONDS < PROBLEM_SECONDS / 2 else ""
        )

    assert wait(screen(clock=clock), check, "it", sleep=clock.sleep) > 3 * PROBLEM_SECONDS
