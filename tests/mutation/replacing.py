"""Replaces the codes of modules before their import, and those of functions after it."""

import gc
from collections.abc import Callable, Mapping
from importlib.machinery import SourceFileLoader
from types import CodeType, FunctionType

FUNCTION = 0x1 | 0x2
"""Flags of the code of a function; that of a module or class has none of them."""
Pairs = dict[CodeType, CodeType]
"""Codes of functions, and those that replace them."""


def before_import(code_of: Callable[[str], CodeType | None]) -> None:
    """Let modules that are imported later have the code that a function returns for their path, unless it is None."""
    original = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        return code_of(self.path) or original(self, fullname)

    SourceFileLoader.get_code = get_code


def changed(old: CodeType, new: CodeType) -> Pairs | None:
    """What differs in two codes of a module, or None if its functions alone cannot be replaced."""
    if not _is_equal(old, new):
        return None
    pairs: Pairs = {}
    for before, after in zip(_inner(old), _inner(new), strict=True):
        if _is_function(before):
            if not _add(pairs, before, after):
                return None
        elif (found := changed(before, after)) is None:
            return None
        else:
            pairs |= found
    return pairs


def _add(pairs: Pairs, old: CodeType, new: CodeType) -> bool:
    """Add a function with those in it, which may exist already; False if it cannot be replaced."""
    inner, others = _inner(old), _inner(new)
    if _is_equal(old, new) and all(map(_is_same, inner, others)):
        return True
    if old.co_freevars != new.co_freevars:
        return False
    pairs[old] = new
    return len(inner) != len(others) or all(_add(pairs, *each) for each in zip(inner, others, strict=True))


def _is_same(old: CodeType, new: CodeType) -> bool:
    inner, others = _inner(old), _inner(new)
    return _is_equal(old, new) and all(map(_is_same, inner, others))


def _is_equal(old: CodeType, new: CodeType) -> bool:
    """Without their lines, and without the functions and classes in them."""
    return len(_inner(old)) == len(_inner(new)) and _content(old) == _content(new)


def _content(code: CodeType) -> object:
    constants = [f"{type(each).__name__} {each!r}" for each in code.co_consts if not isinstance(each, CodeType)]
    names = code.co_qualname, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, constants, names, code.co_flags


def _inner(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _is_function(code: CodeType) -> bool:
    return code.co_flags & FUNCTION == FUNCTION


class Functions:
    """The functions that exist now, by their code. Raises RuntimeError if the garbage collector hides them."""

    def __init__(self) -> None:
        self._known: dict[CodeType, list[FunctionType]] = {}
        for each in gc.get_objects():
            if type(each) is FunctionType:
                self._known.setdefault(each.__code__, []).append(each)
        if not self._known:
            raise RuntimeError("gc.freeze() was called: no mutant would be detected")

    def replace(self, pairs: Mapping[CodeType, CodeType]) -> None:
        """Replace their code."""
        for old, new in pairs.items():
            for function in self._known.get(old, ()):
                function.__code__ = new
