"""The docstrings below a struct's fields, which Python itself throws away."""

import ast
import inspect
import re
import textwrap
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec

from crds import snapshot


@cache
def field_descriptions(cls: type[Any]) -> dict[str, str]:
    """The description of each field, by its name in JSON: our docstring, else Kubernetes' own text for its types."""
    name = kubernetes_type(cls)
    theirs: dict[str, Any] = snapshot.described(name)["properties"] if name else {}
    found = {field: first_sentence(schema["description"]) for field, schema in theirs.items()}
    for base in reversed(cls.__mro__):
        if issubclass(base, msgspec.Struct) and base is not msgspec.Struct:
            found |= _docstrings(base)
    return found


def _docstrings(cls: type[msgspec.Struct]) -> dict[str, str]:
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    names = dict(zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True))
    return {
        names[field.target.id]: one_line(text.value.value)
        for field, text in pairwise(getattr(body, "body", []))
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def type_description(cls: type[Any]) -> str:
    if name := kubernetes_type(cls):
        return first_sentence(snapshot.described(name)["description"])
    return one_line(cls.__doc__ or "")


def first_sentence(text: str) -> str:
    """The first sentence of a text of Kubernetes. A CRD has no room for all: client-side apply stores it once more, in
    an annotation of at most 256 KiB.
    """
    line = one_line(text).removeprefix("Required. ").removeprefix("Required: ")
    return re.split(r"(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<=\.) ", line)[0]


def kubernetes_type(cls: type[Any]) -> str | None:
    """The name of the type in Kubernetes' OpenAPI document, if it is one of Kubernetes' own."""
    return getattr(cls, "SCHEMA", None)


def one_line(text: str) -> str:
    return " ".join(text.split())


def plural(noun: str) -> str:
    """The plural of a regular noun."""
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
