"""``python -m ssdvae``, as launchers of many processes want it."""

import sys

from ssdvae.cli import main

sys.exit(main())
