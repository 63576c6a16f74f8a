"""`python -m olm_demo`."""

import sys

from olm_demo.cli import main

sys.exit(main())
