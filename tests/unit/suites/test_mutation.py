"""The tests that run for mutants."""

from pathlib import Path

from mutation.levels import files_of

ROOT = Path(__file__).parents[3]


def test_tests_of_inner_folders_run_for_mutants_once() -> None:
    found = files_of("unit", ROOT)
    of_memcached = {str(file.relative_to(ROOT)) for file in ROOT.glob("tests/unit/memcached/**/test_*.py")}
    assert of_memcached <= set(found)
    assert "tests/unit/test_goldens.py" in found
    assert len(found) == len(set(found))
