"""The natural-language group of the answer, from scripts, common words and a named target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from classifier.features.lexicon import STOP_WORDS
from classifier.features.words import STEM_LETTERS, Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

_EN: Final = frozenset(word[:STEM_LETTERS] for word in STOP_WORDS["en"])
_OTHER: Final = frozenset(word[:STEM_LETTERS] for word in STOP_WORDS["other"]) - _EN
_NOT_RUSSIAN: Final = "іїєґўјљњђћ"
_NAMED: Final = {
    "engli": "en", "англи": "en", "inglé": "en", "angla": "en", "ingle": "en",
    "russi": "ru", "русск": "ru", "ruso": "ru", "russe": "ru", "rus": "ru",
    "chine": "zh", "китай": "zh", "manda": "zh",
    "frenc": "other", "germa": "other", "spani": "other", "itali": "other", "portu": "other",
    "japan": "other", "korea": "other", "turki": "other", "polis": "other", "ukrai": "other",
    "франц": "other", "немец": "other", "испан": "other", "италь": "other", "японс": "other",
    "украи": "other", "турец": "other", "польс": "other", "корей": "other", "арабс": "other",
    "arabi": "other", "hindi": "other", "dutch": "other",
}  # fmt: skip


def target_language(entries: Sequence[Entry]) -> str:
    """The language a translation is asked into, or "" (the last one named wins)."""
    named = [_NAMED[stem] for stem, _, _ in entries if stem in _NAMED]
    return named[-1] if named else ""


def language_of(scripts: str, window: str, names: frozenset[str]) -> str:
    """en, ru, zh or other; en for a text without words.

    `scripts` has one letter per word (empty if all are Latin), `names` the stems of the words.
    """
    if scripts:
        latin, cyrillic, spaceless = map(scripts.count, "lcz")
        if spaceless and spaceless * 3 >= latin + cyrillic:
            return "zh" if _is_chinese(window) else "other"
        if cyrillic and cyrillic * 3 >= latin:
            return "other" if any([c in window for c in _NOT_RUSSIAN]) else "ru"  # noqa: C419
        if scripts.count("o") * 2 > len(scripts):
            return "other"
    if _OTHER.isdisjoint(names):
        return "en"
    return "other" if len(names & _OTHER) > len(names & _EN) else "en"


def _is_chinese(window: str) -> bool:
    return not any("\u3040" <= c <= "\u30ff" or "\uac00" <= c <= "\ud7af" for c in window)
