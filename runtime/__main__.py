"""`python -m fairlead.runtime` is the command line."""

import sys

from .interfaces.cli.main import main

sys.exit(main())
