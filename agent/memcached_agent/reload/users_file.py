"""The file of memcached's option `-Y`: lines `user:password`. What memcached would ignore or misread is an error."""

from typing import Final

from memcached_agent.errors import InvalidError
from memcached_agent.memcached.login import User
from memcached_agent.reload.files import File

MAX_USERS: Final = 8
"""memcached ignores further lines (MAX_ENTRIES of authfile.c; measured with 1.6.18 and 1.6.38)."""
MAX_LINE: Final = 254
"""Bytes of a line without its newline. memcached 1.6.18 and 1.6.38 read 255 bytes, including the newline or not; after
a line of 255 bytes, they ignore the following ones or refuse the file."""


def parse_users(file: File) -> tuple[User, ...]:
    """The users of a file, in their order. Raises InvalidError, which names the line but not its content."""
    path, content = file
    if not content:
        raise InvalidError(f"{path} is {'empty' if content == b'' else 'missing'}; add lines user:password")
    lines = content.removesuffix(b"\n").split(b"\n")
    if len(lines) > MAX_USERS:
        raise InvalidError(
            f"{path} contains {len(lines)} lines, but memcached reads only {MAX_USERS}; remove the others"
        )
    for number, line in enumerate(lines, 1):
        if problem := _problem(line):
            raise InvalidError(f"{path}, line {number}: {problem}")
    return tuple(_user(line) for line in lines)


def _user(line: bytes) -> User:
    name, _, password = line.removesuffix(b"\r").partition(b":")
    return User(name, password)


def _problem(line: bytes) -> str:
    """The error in a line, with the remedy. Empty without one."""
    text = line.removesuffix(b"\r")
    if len(line) > MAX_LINE:
        return f"longer than {MAX_LINE} bytes; use a shorter password"
    if not text:
        return "empty; remove the line"
    if any(byte <= ord(" ") or byte == 0x7F for byte in text):
        return "contains a space or a control character, so that clients cannot log in; use other characters"
    if b":" not in text:
        return "no colon; write user:password"
    if not all(_user(line)):
        return "the user or the password is empty; write user:password"
    return ""
