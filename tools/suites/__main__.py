"""`python -m suites`."""

import sys

from project.venv import VenvError, check_version

try:
    check_version(sys.version_info[:2], sys.executable)
except VenvError as error:
    sys.exit(f"error: {error}")

from suites.cli import main

sys.exit(main())
