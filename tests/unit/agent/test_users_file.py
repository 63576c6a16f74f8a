"""The file of users: what memcached reads, and what it would ignore or misread."""

import pytest

from memcached_agent.errors import InvalidError
from memcached_agent.memcached.login import User
from memcached_agent.reload.files import File
from memcached_agent.reload.users_file import MAX_LINE, MAX_USERS, parse_users

VALID = {
    "one": (b"u:p\n", [(b"u", b"p")]),
    "no newline at the end": (b"u:p", [(b"u", b"p")]),
    "rotation": (b"u:new\nu:old\n", [(b"u", b"new"), (b"u", b"old")]),
    "CRLF": (b"u:p\r\nv:q\r\n", [(b"u", b"p"), (b"v", b"q")]),
    "colon in the password": (b"u:p:q\n", [(b"u", b"p:q")]),
    "UTF-8": ("ü:ä\n".encode(), [("ü".encode(), "ä".encode())]),
    "not UTF-8": (b"u:\xff\n", [(b"u", b"\xff")]),
    "most": (b"u:p\n" * MAX_USERS, [(b"u", b"p")] * MAX_USERS),
    "longest": (b"u:" + b"x" * (MAX_LINE - 2) + b"\n", [(b"u", b"x" * (MAX_LINE - 2))]),
}


@pytest.mark.parametrize(("content", "expected"), VALID.values(), ids=VALID.keys())
def test_valid_file(content: bytes, expected: list[tuple[bytes, bytes]]) -> None:
    assert parse_users(File("/users", content)) == tuple(expected)


INVALID = {
    "missing": (None, "/users is missing; add lines user:password"),
    "empty": (b"", "/users is empty; add lines user:password"),
    "nine": (b"u:p\n" * 9, "/users contains 9 lines, but memcached reads only 8; remove the others"),
    "long": (b"u:" + b"x" * (MAX_LINE - 1), "/users, line 1: longer than 254 bytes; use a shorter password"),
    "long with CR": (b"u:" + b"x" * (MAX_LINE - 2) + b"\r\n", "/users, line 1: longer than 254 bytes"),
    "empty line": (b"u:p\n\nv:q\n", "/users, line 2: empty; remove the line"),
    "empty line at the end": (b"u:p\n\n", "/users, line 2: empty; remove the line"),
    "only a newline": (b"\n", "/users, line 1: empty; remove the line"),
    "no colon": (b"u:p\nsecret\n", "/users, line 2: no colon; write user:password"),
    "no password": (b"u:\n", "/users, line 1: the user or the password is empty"),
    "no user": (b":secret\n", "/users, line 1: the user or the password is empty"),
    "space": (b"u:sec ret\n", "/users, line 1: contains a space or a control character"),
    "tab": (b"u:sec\tret\n", "/users, line 1: contains a space or a control character"),
    "carriage return": (b"u:sec\rret\n", "/users, line 1: contains a space or a control character"),
    "binary": (bytes(range(256)), "/users, line 1: contains a space or a control character"),
    "UTF-16": ("u:secret\n".encode("utf-16"), "/users, line 1: contains a space or a control character"),
}


@pytest.mark.parametrize(("content", "message"), INVALID.values(), ids=INVALID.keys())
def test_invalid_file_is_reported_without_its_content(content: bytes | None, message: str) -> None:
    with pytest.raises(InvalidError) as raised:
        parse_users(File("/users", content))
    assert message in str(raised.value)
    assert "secret" not in str(raised.value)
    assert len(str(raised.value)) < 200


REMEDIES = {
    "add lines user:password": b"u:p\n",
    "remove the others": b"u:p\n" * 8,
    "use a shorter password": b"u:" + b"x" * (MAX_LINE - 2),
    "remove the line": b"u:p\nv:q\n",
    "write user:password": b"u:p\nv:secret\n",
    "use other characters": b"u:sec-ret\n",
}
"""Each remedy of INVALID, and a file after it."""


def test_file_is_valid_after_each_remedy() -> None:
    messages = [message for _, message in INVALID.values() if ";" in message]
    assert {message.rpartition("; ")[2] for message in messages} <= REMEDIES.keys()
    assert all(parse_users(File("/users", content)) for content in REMEDIES.values())


def test_users_and_files_do_not_show_secrets() -> None:
    assert "secret" not in repr([User(b"secret", b"secret"), File("/users", b"secret")])
