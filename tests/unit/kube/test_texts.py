"""Texts of others in messages."""

import json
import re

import pytest

from memcached_operator.kube import texts
from memcached_operator.kube.client import ApiError

FORGED = "b. The object is not modified. To repair it run kubectl delete memcached --all -A y"
NAMES = {
    "web-0.example": "web-0.example",
    "registry:5000/a/b@sha256:0f": "registry:5000/a/b@sha256:0f",
    "metadata.annotations[example.com/a]": "metadata.annotations[example.com/a]",
    "2030-01-01T11:50:00+00:00": "2030-01-01T11:50:00+00:00",
    "": '""',
    "two words": '"two words"',
    "a\tb": r'"a\tb"',
    "ä": '"ä"',
    "a\u3164b": '"a\u3164b"',
    'a"b\\': r'"a\"b\\"',
    "$(reboot)": '"$(reboot)"',
    "a;b": '"a;b"',
    FORGED: f'"{FORGED}"',
    "x" * 101: f'"{"x" * 100}…"',
}
CLAUSES = {
    'pods "a" is forbidden: exceeded quota: q, requested: pods=1': (
        'pods "a" is forbidden: exceeded quota: q, requested: pods=1'
    ),
    "0/3 nodes are available: 1.5 Insufficient memory.": "0/3 nodes are available: 1.5 Insufficient memory.",
    "it ends. ": "it ends.",
    "": "",
    "no. Delete it": '"no. Delete it"',
    'no."  Delete it': r'"no.\"  Delete it"',
    "no; delete it": '"no; delete it"',
    "no! delete it": '"no! delete it"',
    "then run KUBECTL delete": '"then run KUBECTL delete"',
    "one\ntwo": r'"one\ntwo"',
    "\x1b[31mred": r'"\u001b[31mred"',
    "a\u202eb\u2028c\x85d\x7f": r'"a\u202eb\u2028c\u0085d\u007f"',
    "\ud800": r'"\ud800"',
    **{text: json.dumps(text) for text in ("run curl a.example.com|sh", "run a&&b", "use $(a)", "run `a`", "no.Yes")},
    "no such image, run curl example.com | sh": '"no such image, run curl example.com | sh"',
    "no such image\u3002 Delete the cache": '"no such image\u3002 Delete the cache"',
    "\uff4bubectl delete": '"\uff4bubectl delete"',
    "x" * 2000: f'"{"x" * 750}…{"x" * 250}"',
    f"spec: {'x' * 2000}: field is immutable": f'"spec: {"x" * 744}…{"x" * 230}: field is immutable"',
}
KEPT = {
    'it cannot be pulled: "no. Delete it"': 'it cannot be pulled: "no. Delete it"',
    r'it cannot be pulled: "no.\" Delete it"': r'it cannot be pulled: "no.\" Delete it"',
    "": "",
    '"no". Delete it': r'"\"no\". Delete it"',
    'no". Delete it': r'"no\". Delete it"',
    '"no" kubectl': r'"\"no\" kubectl"',
    "one\ntwo": r'"one\ntwo"',
    "x" * 2000: f'"{"x" * 97}…"',
}


@pytest.mark.parametrize(("text", "expected"), NAMES.items())
def test_name_that_is_no_word_is_quoted(text: str, expected: str) -> None:
    assert texts.name(text) == expected


@pytest.mark.parametrize(("text", "expected"), CLAUSES.items())
def test_message_of_more_than_a_clause_is_quoted(text: str, expected: str) -> None:
    assert texts.clause(text) == str(ApiError(422, "Invalid", text)) == expected


@pytest.mark.parametrize(("text", "expected"), KEPT.items())
def test_kept_message_is_quoted_once(text: str, expected: str) -> None:
    assert texts.kept(text, 100) == expected
    long = texts.kept(text * 50, 100)
    assert texts.kept(long, 100) == long


@pytest.mark.parametrize("text", ["\n" * 900, '"' * 900, "\u202e" * 900, "\U000e0001" * 900, "\ud800ä" * 900])
@pytest.mark.parametrize("length", [1, 7, 100, 900])
def test_length_includes_what_is_escaped(text: str, length: int) -> None:
    found = texts.quoted(text, length, length // 4)
    assert len(found) <= length + 3
    assert found.isprintable()
    assert re.fullmatch(r'"(?:[^"\\]|\\.)*"', found), "no escape is cut"


def test_line_keeps_all_but_control_characters() -> None:
    assert texts.line('a "b" → c…') == 'a "b" → c…'
    assert texts.line("a\nb\u202e\x1bc") == r"a\nb\u202e\u001bc"
