"""`python3 -m olm`."""

import sys

from olm.cli import main

if __name__ == "__main__":
    sys.exit(main())
