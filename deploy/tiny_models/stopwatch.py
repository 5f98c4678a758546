"""The one clock of these scripts: seconds that only go forward."""

from __future__ import annotations

import time

# The product's code takes a Clock; a training script has no simulated time to run in.
seconds = time.monotonic  # noqa: TID251
