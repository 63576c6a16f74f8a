"""The rules of `spec.cache.extraArgs`, each in Python and in CEL."""

from collections.abc import Iterator, Sequence
from typing import Final

from memcached_api.memcached.denied_options import DENIED
from memcached_api.memcached.options import FORMS, PATTERN, correction, explanation, forms_pattern, name_of
from memcached_api.validation.common_rules import cel_string, matches
from memcached_api.validation.rules import Rule, Violation, blocking

_REPEATED: Final = "must not repeat an option of an earlier item; remove one of the two"

OPTIONS_OF_FIELDS: Final = [name for name, remedy in DENIED.items() if name.startswith("--") and "spec." in remedy]
"""The long options for which there are fields of the spec. The CRD's messages name the field, as `explanation` does."""


def _explanation_cel() -> str:
    """`explanation` for OPTIONS_OF_FIELDS; for other items, the accepted forms."""
    cases = [f"self.matches(r'{forms_pattern(name)}') ? {cel_string(correction(name))}" for name in OPTIONS_OF_FIELDS]
    return " : ".join([*cases, cel_string(FORMS)])


SUPPORTED_OPTION: Final = Rule(
    "spec.cache.extraArgs[*]",
    lambda item: () if matches(PATTERN, item) else (Violation("", item, explanation(item)),),
    f"self.matches(r'{PATTERN}')",
    FORMS,
    message_expression=_explanation_cel(),
)


def _repeated(items: Sequence[str]) -> Iterator[Violation]:
    names = [name_of(item) for item in items]
    return (
        Violation(f"[{index}]", items[index], _REPEATED) for index, name in enumerate(names) if name in names[:index]
    )


DISTINCT_OPTIONS: Final = Rule(
    "spec.cache.extraArgs",
    _repeated,
    "self.all(a, self.exists_one(b, a.split('=')[0] == b.split('=')[0]))",
    _REPEATED,
)

EXTRA_ARGS_RULES: Final = blocking(SUPPORTED_OPTION, DISTINCT_OPTIONS)
