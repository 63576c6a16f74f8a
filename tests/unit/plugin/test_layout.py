"""Tables on narrow and wide terminals, and without a terminal."""

import pytest

from kubectl_memcached.model.printable import plain
from kubectl_memcached.output import PIPED_WIDTH, console, show, tables
from unit.plugin.conftest import Run, World
from unit.plugin.samples import memcached

POOLED = ["recommendations-frontend-df47dd564-ftsfc", "recommendations-frontend-df47dd564-nbgdk"]
NODES = ["ip-10-0-132-57.eu-central-1.compute.internal", "ip-10-0-7-7.eu-central-1.compute.internal"]
COLUMNS = ["POD", "NODE", "VERSION", "UP", "PROBLEM"]
SENTENCE = "memcached has not started: ErrImagePull, the image cannot be pulled because the registry says no"
ROWS = [[pod, node, "1.6.45", "3m2s", SENTENCE] for pod, node in zip(POOLED, NODES, strict=True)]


def printed(width: int, rows: list[list[str]], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of a table at a width."""
    stdout = console()
    stdout.width = width
    show(stdout, *tables(COLUMNS, rows, width, right=["UP"], folded=["PROBLEM"], gap=1))
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("width", [45, 60, 80, 120, 200])
def test_table_fits_and_no_name_is_broken(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(width, [[pod, f"node-{number}", *rest] for number, (pod, _, *rest) in enumerate(ROWS)], capsys)
    assert max(map(len, lines)) <= width
    headers = [line.split() for line in lines if line.startswith("POD")]
    assert [name for header in headers for name in header[1:]] == COLUMNS[1:]
    for name in (*POOLED, "node-0", "node-1", "1.6.45", "3m2s"):
        assert any(name in line.split() for line in lines)
    words = [word for line in lines for word in line.split()]
    assert [words.count(word) for word in ("ErrImagePull,", "registry")] == [2, 2]


@pytest.mark.parametrize("width", [20, 30, 60])
def test_names_that_do_not_fit_into_a_line_are_folded_and_not_cut(
    width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(width, ROWS, capsys)
    assert max(map(len, lines)) <= width
    assert all(letter in "".join(lines) for letter in "".join(NODES))
    versions = [line for line in lines if "1.6.45" in line]
    assert len(versions) == 2


def test_row_is_one_line_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = printed(console().width, ROWS, capsys)
    assert [line.split() for line in lines] == [COLUMNS, *(" ".join(row).split() for row in ROWS)]
    assert [line for line in lines if line != line.rstrip()] == []


COMMANDS = {
    "status": ("status",),
    "top": ("top", "--once", "--interval=0.5"),
    "stats": ("stats", "--items"),
    "find": ("find", "user:7"),
    "ring": ("ring", "--seconds=1"),
    "hotkeys": ("hotkeys", "--seconds=1"),
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("width", [60, PIPED_WIDTH])
def test_every_command_uses_the_width(width: int, words: tuple[str, ...], world: World, run: Run) -> None:
    world.use(memcached({"identity": "Pooled"}), items="STAT items:1:number 5\r\nSTAT items:1:age 7\r\nEND\r\n")
    for pod, name, node in zip(world.pods, POOLED, NODES, strict=True):
        pod["metadata"]["name"], pod["spec"]["nodeName"] = name, node[:15]
    for stub in world.stubs:
        flags = {f"watch {flag}": "OK\r\n" for flag in ("mutations", "fetchers")}
        found = {"me user:7": "ME user:7 exp=3496 la=101 cas=9 fetch=yes cls=12 size=965\r\n"}
        stub.replies = {**stub.replies, **flags, **found}
    command, *rest = words
    lines = run(command, "sessions", *rest, COLUMNS=str(width)).output.splitlines()
    assert max(map(len, lines)) <= width
    assert [line for line in lines if line != line.rstrip()] == []
    headers = [line for line in lines if line.startswith("POD")]
    assert len(headers) <= 1 or width == 60
    for name in POOLED:
        assert len([line for line in lines if line.startswith(name)]) == max(1, len(headers))


def test_output_of_containers_cannot_control_a_terminal() -> None:
    shown = plain("a\x1b[2J\x9b31m\x07b\n\u202eü")
    assert shown.replace("\N{REPLACEMENT CHARACTER}", "?") == "a?[2J?31m?b\n?ü"
