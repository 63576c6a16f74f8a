"""The options of `spec.cache.extraArgs`: which items are accepted, and what the messages say about the others."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from corners.options import ALLOWED_ITEMS, COMBINATIONS, DENIED_ITEMS, FLAGS, VALUES
from memcached_api.memcached import options
from memcached_api.memcached.denied_options import DENIED, SHORT_NAMES
from memcached_api.memcached.rules.extra_args import EXTRA_ARGS_RULES, OPTIONS_OF_FIELDS
from memcached_api.validation.common_rules import matches
from memcached_api.validation.rules import rule_errors

RELEASES: Final = ("1.6.18", "1.6.38", "1.6.45")
"""The options in options-<release>.txt are those of `memcached -h` and of the program's own tables of names."""
NUMBERS: Final = {
    "--listen-backlog": (1000, 4096),
    "--max-reqs-per-event": (1, 20),
    "--slab-min-size": (48, 1024),
    "-o hashpower": (16, 30),
    "-o hot_lru_pct": (1, 40),
    "-o idle_timeout": (60, 86_400),
    "-o lru_crawler_sleep": (0, 1_000_000),
    "-o lru_crawler_tocrawl": (0, 999_999_999),
    "-o slab_automove": (0, 1),
    "-o slab_automove_window": (3, 1000),
    "-o temporary_ttl": (1, 300),
    "-o warm_lru_pct": (1, 40),
}
HUNDREDTHS: Final = {
    "--slab-growth-factor": (125, 400),
    "-o hot_max_factor": (1, 999),
    "-o slab_automove_ratio": (1, 99),
    "-o warm_max_factor": (1, 999),
}
CHOICES: Final = {"--protocol": ("ascii", "auto"), "-o hash_algorithm": ("jenkins", "murmur3", "xxh3")}


def errors(*items: str) -> list[str]:
    """The messages about a list of items, each with its path."""
    found = rule_errors(EXTRA_ARGS_RULES, {"spec": {"cache": {"extraArgs": list(items)}}})
    return [f"{error.field}: {error.message}" for error in found]


def known(release: str) -> list[list[str]]:
    """The options of a release: the name, and the short name if there is one."""
    lines = (Path(__file__).parent / f"options-{release}.txt").read_text().splitlines()
    return [[line] if line.startswith("-o ") else line.split() for line in lines]


def items_of(option: options.Option, values: Sequence[object]) -> list[str]:
    return [f"{option.name}={value}" for value in values]


def with_values(table: dict[str, tuple[int, int]]) -> list[options.Option]:
    return [option for option in options.ALLOWED if option.name in table]


def test_every_option_with_a_value_is_in_one_table():
    tables = [*NUMBERS, *HUNDREDTHS, *CHOICES]
    assert sorted(tables) == sorted(option.name for option in options.ALLOWED if option.pattern)


@pytest.mark.parametrize("option", with_values(NUMBERS), ids=lambda option: option.name)
def test_numbers(option: options.Option):
    low, high = NUMBERS[option.name]
    inside = {low, low + 1, (low + high) // 2, high - 1, high, *range(low, min(high, 5000) + 1)}
    outside = {low - 1, high + 1, high * 10, -high, 2**31, 2**32 + low} - inside
    assert [item for item in items_of(option, sorted(inside)) if errors(item)] == []
    assert [item for item in items_of(option, sorted(outside)) if not errors(item)] == []
    assert str(low) in option.values
    assert str(high) in option.values


@pytest.mark.parametrize("option", with_values(HUNDREDTHS), ids=lambda option: option.name)
def test_decimal_fractions(option: options.Option):
    low, high = HUNDREDTHS[option.name]
    for hundredths in range(2000):
        text = f"{hundredths / 100:.2f}"
        accepted = {f"{option.name}={text}", f"{option.name}={text.rstrip('0').rstrip('.')}"}
        assert {item for item in accepted if not errors(item)} == (accepted if low <= hundredths <= high else set())
    assert {f"{low / 100:g}", f"{high / 100:g}"} <= set(option.values.split())


@pytest.mark.parametrize(
    "option", [option for option in options.ALLOWED if option.name in CHOICES], ids=lambda option: option.name
)
def test_choices(option: options.Option):
    assert [item for item in items_of(option, CHOICES[option.name]) if errors(item)] == []
    assert re.split(", | or ", option.values) == list(CHOICES[option.name])


def test_values_that_no_option_accepts():
    values = ("", " ", "x", "0x10", "+16", "16 ", " 16", "16\n", "1e3", "016", "16,modern", "١٦", "=")
    items = [f"{option.name}={value}" for option in options.ALLOWED if option.pattern for value in values]
    assert [item for item in items if not errors(item)] == []


def test_a_value_is_required_or_denied_and_the_message_contains_the_form():
    for option in options.ALLOWED:
        ending = "" if option.pattern else ", without a value"
        message = f"spec.cache.extraArgs[0]: must be exactly {option.form}{ending}"
        assert errors(option.name) == ([message] if option.pattern else [])
        assert errors(f"{option.name}=") == errors(f"{option.name}=?") == [message]


def test_the_message_for_a_denied_option_contains_the_remedy():
    for name, remedy in DENIED.items():
        expected = [f"spec.cache.extraArgs[0]: must not set {name}; {remedy}"]
        assert errors(name) == errors(f"{name}=1") == expected
        assert re.match("(use|write) |remove the item, because ", remedy)


TRAPS: Final = {
    "": options.FORMS,
    " ": options.FORMS,
    "-": options.FORMS,
    "--": options.FORMS,
    "--=": options.FORMS,
    "-o": "must not set --extended; write the item as -o key=value",
    "-o ": options.FORMS,
    "-o=modern": "must not set --extended; write the item as -o key=value",
    "-omodern": "must not set --extended; write the item as -o key=value",
    "-o  modern": options.FORMS,
    "-o modern ": options.FORMS,
    " -o modern": options.FORMS,
    "-o\tmodern": "must not set --extended; write the item as -o key=value",
    "-o modern\n": options.FORMS,
    "-o MODERN": options.FORMS,
    "-o mod": options.FORMS,
    "-o unknown": options.FORMS,
    "modern": options.FORMS,
    "stray": options.FORMS,
    "64": options.FORMS,
    "--DISABLE-CAS": options.FORMS,
    "--disable-cas\n": options.FORMS,
    "--disable_cas": options.FORMS,
    "--disable-cas --disable-watch": options.FORMS,
    "--unknown": options.FORMS,
    "—disable-cas": options.FORMS,
    "--memory-limit 64": options.FORMS,
    "-o modern,idle_timeout=5": "must contain one option; write each option",
    "-o hashpower=16,modern": "must contain one option; write each option",
    "-o modern,": "must contain one option; write each option",
    "--conn": "must not set --conn-limit; use spec.cache.maxConnections",
    "--conn=100": "must not set --conn-limit; use spec.cache.maxConnections",
    "--max-i=2m": "must not set --max-item-size; use spec.cache.maxItemSize",
    "--disable-c": "must be exactly --disable-cas, without a value",
    "--listen-b=1000": "must be exactly --listen-backlog=<1000 to 4096>",
    "--listen": "must not set --listen; use spec.containerPort",
    "--disable": "must be a complete name; write one of --disable-cas, --disable-dumping, --disable-evictions, ",
    "-c 100": "must not set --conn-limit; use spec.cache.maxConnections",
    "-c100": "must not set --conn-limit; use spec.cache.maxConnections",
    "-R 20": "must be exactly --max-reqs-per-event=<1 to 20>",
    "-C": "must be exactly --disable-cas, without a value",
    "-v": "must not set --verbose; use spec.cache.verbosity",
    "-vt 2": "must not set --verbose; use spec.cache.verbosity",
    "-D:": "must not set -D; remove the item, because ",
    "-h": "must not set --help; remove the item, because ",
    "-i": "must not set --license; remove the item, because ",
    "-V": "must not set --version; remove the item, because ",
    "-M": "must not set --disable-evictions; use spec.cache.evictions: false",
    "-o slab_automove=2": "must be exactly -o slab_automove=<0 or 1>",
    "-o hashpower=31": "must be exactly -o hashpower=<16 to 30>",
    "-o idle_timeout=0": "must be exactly -o idle_timeout=<60 to 86400>",
}


def test_items_that_memcached_reads_differently_or_not_at_all():
    for item, message in TRAPS.items():
        (error,) = errors(item)
        assert error.startswith(f"spec.cache.extraArgs[0]: {message}"), item


def test_options_of_fields():
    assert {remedy.split(";")[0] for remedy in map(DENIED.get, OPTIONS_OF_FIELDS) if remedy} >= {
        *(f"use spec.cache.{field}" for field in ("memory", "maxItemSize", "maxConnections", "threads", "verbosity")),
        "use spec.cache.evictions: false",
        "use spec.containerPort",
    }


def test_the_crd_explains_the_same_forms_of_an_option_as_the_webhook():
    long_names = [each for each in (*DENIED, *(option.name for option in options.ALLOWED)) if each.startswith("--")]
    texts = [*TRAPS, *SHORT_NAMES, *(each[:length] for each in long_names for length in range(1, len(each) + 1))]
    items = [f"{text}{value}" for text in texts for value in ("", "=8", "8", " 8", "=", "=\n", "\n", ",modern", "=a=b")]
    messages = {item: errors(item) for item in items}
    for name in OPTIONS_OF_FIELDS:
        explained = [item for item in messages if matches(options.forms_pattern(name), item)]
        expected = [f"spec.cache.extraArgs[0]: {options.correction(name)}"]
        assert explained == [item for item, found in messages.items() if found == expected]
        assert len(explained) >= 9


def test_an_option_may_not_be_repeated():
    assert errors("-o hashpower=16", "-o modern", "-o hashpower=17") == [
        "spec.cache.extraArgs[2]: must not repeat an option of an earlier item; remove one of the two"
    ]
    assert len(errors("--disable-cas", "--disable-cas", "--disable-cas")) == 2
    assert errors() == []


def test_all_options_together_are_accepted():
    items = [f"{option.name}={NUMBERS[option.name][1]}" for option in with_values(NUMBERS)]
    items += [f"{option.name}={CHOICES[option.name][0]}" for option in options.ALLOWED if option.name in CHOICES]
    items += [f"{option.name}=1.25" for option in with_values(HUNDREDTHS) if option.name != "-o slab_automove_ratio"]
    items += [option.name for option in options.ALLOWED if not option.pattern]
    assert errors(*items, "-o slab_automove_ratio=0.5") == []


def test_arguments():
    items = ["--disable-cas", "-o modern", "--listen-backlog=1024", "-o hashpower=17"]
    assert options.arguments(items) == ["--disable-cas", "-o", "modern", "--listen-backlog=1024", "-o", "hashpower=17"]
    assert options.arguments([]) == []


@pytest.mark.parametrize("release", RELEASES)
def test_every_option_of_a_release_is_either_accepted_or_denied(release: str):
    names = {name for name, *_ in known(release)}
    accepted = {option.name for option in options.ALLOWED}
    assert names - accepted - set(DENIED) == set()
    assert accepted & set(DENIED) == set()
    assert accepted <= names
    newer = {name for each in RELEASES for name, *_ in known(each)}
    assert set(DENIED) <= newer


@pytest.mark.parametrize("release", RELEASES)
def test_short_names(release: str):
    assert {short[0]: name for name, *short in known(release) if short} == SHORT_NAMES


def test_no_name_is_an_abbreviation_of_another():
    for release in RELEASES:
        names = [name for name, *_ in known(release)]
        longer = {
            option.name: [name for name in names if name != option.name and name.startswith(option.name)]
            for option in options.ALLOWED
            if option.name.startswith("--")
        }
        assert not any(longer.values())


def test_names_are_literal_in_a_regular_expression():
    assert all(re.fullmatch("--[a-z-]+|-o [a-z_0-9]+", option.name) for option in options.ALLOWED)


def test_the_pattern_means_the_same_in_re2():
    assert options.PATTERN.isascii()
    assert "'" not in options.PATTERN
    assert "(?" not in options.PATTERN
    assert set(re.findall(r"\\.", options.PATTERN)) == {r"\."}
    assert (
        re.sub(r"\[[^]]*\]|\{\d(,\d)?\}", "", options.PATTERN)
        .translate(str.maketrans("", "", "^$|()?.\\-_= "))
        .isalnum()
    )


def test_all_options_fit_the_limits_of_the_list():
    assert max(map(len, ALLOWED_ITEMS)) <= options.MAX_ITEM_LENGTH
    assert len(options.ALLOWED) <= options.MAX_ITEMS


def test_the_documentation_contains_every_accepted_option():
    text = (Path(__file__).parents[3] / "docs/usage.md").read_text()
    rows = [line for line in text.splitlines() if re.match(r"\| `(--|-o )", line)]
    assert rows == [f"| `{option.name}` | {option.values or '–'} | {option.meaning} |" for option in options.ALLOWED]


def test_the_items_for_the_real_programs():
    assert [item for item in ALLOWED_ITEMS if errors(item)] == []
    assert [errors(*items) for items in COMBINATIONS] == [[], [], []]
    assert [item for item in DENIED_ITEMS if not errors(item)] == []
    assert {*FLAGS, *VALUES} == {option.name for option in options.ALLOWED}
    tried = " ".join(DENIED_ITEMS)
    assert [name for name in DENIED if name not in tried] == ["--daemon"]
