"""`python -m moldau.cli` is `moldau`."""

import sys

from moldau.cli import main

sys.exit(main())
