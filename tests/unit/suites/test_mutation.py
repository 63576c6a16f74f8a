"""The tests that run for mutants."""

from pathlib import Path

from mutation.__main__ import unit_tests

ROOT = Path(__file__).parents[3]


def test_tests_of_inner_folders_run_for_mutants_once() -> None:
    found = unit_tests(ROOT)
    of_memcached = {str(file.relative_to(ROOT)) for file in ROOT.glob("tests/unit/memcached/**/test_*.py")}
    assert of_memcached <= set(found)
    assert "tests/unit/test_goldens.py" in found
    assert len(found) == len(set(found))
