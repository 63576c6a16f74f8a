"""The annotations of a pod, in the file of the downward API."""

from collections.abc import Iterable

import pytest

from memcached_agent.pod import annotations


def lines(text: str, size: int = 4096) -> Iterable[bytes]:
    """The lines of a file, of which long ones are split."""
    return (
        line[at : at + size]
        for line in text.encode(errors="surrogateescape").splitlines(True)
        for at in range(0, len(line), size)
    )


NAME = f"{annotations.PREFIX}warm-up"
FILES = {
    "alone": (f'{NAME}="hitRatio=1"\n', "hitRatio=1"),
    "without a newline": (f'{NAME}="hitRatio=1"', "hitRatio=1"),
    "between others": (f'a="{NAME}"\n{NAME}="x"\nz="1"\n', "x"),
    "empty file": ("", None),
    "empty value": (f'{NAME}=""\n', ""),
    "escapes stay": (f'{NAME}="a\\"\\nb"\n', 'a\\"\\nb'),
    "another annotation": (f'{NAME}s="x"\nx{NAME}="x"\n', None),
    "in the value of another": (f'a="{NAME}=\\"x\\""\n', None),
    "the first of two": (f'{NAME}="1"\n{NAME}="2"\n', "1"),
    "not in UTF-8": (f'{NAME}="\udcff"\n', "\ufffd"),
    "half a line": (f"{NAME}", None),
}


@pytest.mark.parametrize(("text", "value"), FILES.values(), ids=FILES.keys())
def test_annotation_in_a_file(text: str, value: str | None) -> None:
    found = annotations.find(lines(text), ["warm-up", "memory"])
    assert found == ({} if value is None else {"warm-up": value})


def test_annotation_is_not_found_within_a_long_line() -> None:
    text = f'a="{"x" * 97}{NAME}="x"\n'
    pieces = list(lines(text, 100))
    assert pieces[1].startswith(NAME.encode())
    assert annotations.find(pieces, ["warm-up"]) == {}


def test_several_annotations() -> None:
    text = "".join(f'{annotations.PREFIX}{name}="{name} 1"\n' for name in ("args", "cold", "memory", "update"))
    assert annotations.find(lines(text), ["args", "memory", "warm-up"]) == {"args": "args 1", "memory": "memory 1"}


def test_long_value_is_cut() -> None:
    text = f'{annotations.PREFIX}args="{"x" * 10_000}"\n{annotations.PREFIX}memory="64"\n'
    found = annotations.find(lines(text), ["args", "memory"])
    assert len(found["args"]) < 4096
    assert found["memory"] == "64"
