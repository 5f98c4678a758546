"""Who keeps a request although another is slightly better: moving costs, and noise must not move.

Two memories: the worker that holds a conversation (given with the request), and the worker that a
kind of request went to last.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

_MAX_KINDS: Final = 4096


class Hysteresis:
    """Switch only for a stated gain."""

    def __init__(self, switch_margin: float, tie_margin: float) -> None:
        self._switch = switch_margin
        self._tie = tie_margin
        self._last: OrderedDict[Hashable, str] = OrderedDict()

    def at_home(self, names: Sequence[str], totals: Sequence[float], home: str) -> int | None:
        """Index of the conversation's home if leaving it does not gain the margin."""
        if home not in names:
            return None
        # A worker with several arms holds the conversation in all of them.
        index = min((i for i, n in enumerate(names) if n == home), key=totals.__getitem__)
        stays = min(totals) >= (1.0 - self._switch) * totals[index]
        return index if stays else None

    def incumbent(self, kind: Hashable, names: Sequence[str], totals: Sequence[float]) -> int:
        """Index of the best, or of the last choice for this kind if the gain is within the tie."""
        best = min(range(len(totals)), key=totals.__getitem__)
        last = self._last.get(kind)
        if last is None or last == names[best] or last not in names:
            return best
        index = names.index(last)
        return index if totals[best] >= (1.0 - self._tie) * totals[index] else best

    def remember(self, kind: Hashable, name: str) -> None:
        """Note the worker that a kind of request goes to."""
        self._last[kind] = name
        self._last.move_to_end(kind)
        if len(self._last) > _MAX_KINDS:
            self._last.popitem(last=False)
