"""The ops dashboard: its own process, reads Redis only, orders by signed commands.

Pages are rendered here, as HTML and SVG, by pure functions of one Snapshot; `specroute report` uses
the same functions. The browser gets no framework, only a small script that refreshes the page.
"""

from __future__ import annotations
