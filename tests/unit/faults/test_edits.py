"""Edits of sources: they find a definition by name and compare syntax, and fail if they no longer apply."""

from pathlib import Path
from textwrap import dedent

import pytest

from faults.edits import Edit, EditError, apply_edit

SOURCE = '''
LIMIT: int = 3  # a constant


class Queue:
    """A queue."""

    async def take(self) -> int:
        if (self.count
            > LIMIT):  # wrapped
            return 0
        self.count += 1
        log.info("taken")
        return self.count


def take() -> None:
    one()
    two()
    one()
'''


@pytest.fixture(name="sources")
def _sources(tmp_path: Path) -> list[Path]:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "queue.py").write_text(SOURCE)
    (tmp_path / "package" / "other.py").write_text("def take() -> None:\n    three()\n")
    return [tmp_path]


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (Edit("LIMIT", "3", "4"), "LIMIT: int = 4"),
        (Edit("Queue.take", "self.count > LIMIT", "True"), "if True:"),
        (Edit("Queue.take", "self.count > LIMIT", "self.count > LIMIT + 1"), "if self.count > LIMIT + 1:"),
        (Edit("Queue.take", "return 0", "raise"), "raise\n"),
        (Edit("Queue.take", "self.count += 1\nlog.info('taken')"), "pass\n        return self.count"),
        (Edit("Queue.take", "log.info('taken')", "a()\nif b:\n    c()"), "a()\n        if b:\n            c()"),
        (Edit("package.queue:take", "two()"), "one()\n    pass\n    one()"),
        (Edit("other:take", "three()", "four()"), "four()"),
    ],
)
def test_edit_applies(sources: list[Path], edit: Edit, expected: str) -> None:
    _, text = apply_edit(edit, sources)
    assert expected in text
    compile(text, "text", "exec")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (Edit("Queue.put", "a", "b"), "want one definition, found 0"),
        (Edit("take", "one()", "two()"), r"want one definition, found 2 \(other.py, queue.py\)"),
        (Edit("queue:take", "one()", "two()"), "want one occurrence, found 2"),
        (Edit("queue:take", "four()", "two()"), "want one occurrence, found 0"),
        (Edit("Queue.take", "return 1", "return 2"), "want one occurrence, found 0"),
        (Edit("LIMIT", "3 +", "4"), "not Python"),
    ],
)
def test_edit_that_does_not_apply_fails(sources: list[Path], edit: Edit, message: str) -> None:
    with pytest.raises(EditError, match=message):
        apply_edit(edit, sources)


def test_edit_survives_formatting_and_a_new_file(tmp_path: Path) -> None:
    (tmp_path / "moved.py").write_text(
        dedent("""
        class Queue:
            async def take(self):
                # another comment
                if self.count > LIMIT: return 0
        """)
    )
    path, text = apply_edit(Edit("Queue.take", "self.count>LIMIT", "False"), [tmp_path])
    assert path.name == "moved.py"
    assert "if False:" in text
