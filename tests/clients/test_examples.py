"""The settings in PHP and Ruby in examples/: their interpreters accept them. These tests need no pods."""

import configparser
import json
import os
from pathlib import Path

import pytest

from clients import libraries
from cluster.shell import run
from support import examples
from support.code_blocks import code_blocks
from support.examples import FOLDERS

CHECKS = {"php": "-l", "ruby": "-c"}
"""The option of each interpreter that checks the syntax of standard input."""


@pytest.fixture(scope="module", params=CHECKS)
def language(request: pytest.FixtureRequest) -> str:
    """A language whose interpreter checks blocks."""
    return request.param


def test_blocks_have_valid_syntax(language: str) -> None:
    (command,) = {"php": libraries.php, "ruby": libraries.ruby}[language]().values()
    blocks = [text for folder in FOLDERS for text in code_blocks(examples.readme(folder), language)]
    assert blocks
    for text in blocks:
        run([command[0], CHECKS[language]], stdin=text)


def test_settings_of_php_sessions_are_known(tmp_path: Path) -> None:
    """PHP returns each value as it was set, and false for a setting that it does not have."""
    (command,) = libraries.php().values()
    (text,) = code_blocks(examples.readme(examples.ROOT / "php-sessions"), "ini")
    (tmp_path / "sessions.ini").write_text(text)
    settings = configparser.ConfigParser(interpolation=None)
    settings.read_string(text)
    wanted = {name: value.strip('"') for section in settings.values() for name, value in section.items()}
    code = "echo json_encode(array_map('ini_get', json_decode($argv[1])));"
    found = run(
        [command[0], "-r", code, json.dumps(list(wanted))],
        # The first, empty entry: the directories with the extensions.
        env={"PHP_INI_SCAN_DIR": f"{os.pathsep}{tmp_path}"},
    )
    switches = {"On": "1", "Off": ""}
    values = dict(zip(wanted, json.loads(found), strict=True))
    assert {name: switches.get(value, value) for name, value in values.items()} == {
        name: switches.get(value, value) for name, value in wanted.items()
    }
