"""The command line, as `python -m fairlead.runtime`."""

import sys

from .interfaces.cli.main import main

sys.exit(main())
