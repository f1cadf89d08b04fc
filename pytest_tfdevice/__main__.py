"""``python -m pytest_tfdevice``."""

import sys

from pytest_tfdevice.cli import main

if __name__ == "__main__":
    sys.exit(main())
