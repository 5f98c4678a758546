"""What the text looks like, whatever its language: fences, braces, formulas, numbers, questions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from classifier.features.base import PromptText
    from classifier.features.words import Entry

_FORMULA: Final = re.compile(
    r"[\d)xyn]\s?[=+*/^×÷<>≤≥]\s?[\d(\-xyn]|\\frac|\\sqrt|√|²|³|∫|∑|π|\$\$"
)
_OPTIONS: Final = re.compile(
    r"(?:^|\n|\s)\(?[AaАа][).:]\s?.{1,120}?[\n\s]\(?[BbБбВв][).:]\s", re.DOTALL
)
_CALL: Final = re.compile(
    r"\w\(\w*[,)]|\)\s?[{:;]\s*\n|^\s*(?:def|import|function|class|const|#include|public|SELECT)\b",
    re.M,
)
_MARKS: Final = (
    ("```", "x:fence"),
    ("`", "x:tick"),
    ('{"', "x:json"),
    ("</", "x:markup"),
    ("|--", "x:table"),
    ("| ", "x:pipe"),
    ("://", "x:url"),
    ("@", "x:at"),
    ("$", "x:dollar"),
    ("%", "x:percent"),
    ("«", "x:quote"),
    ('"', "x:dquote"),
    ("\n- ", "x:dash"),
    ("\n1", "x:numbered"),
    (": ", "x:colon"),
    ("___", "x:blank"),
    ("...", "x:dots"),
)


_HOW_TO: Final = re.compile(
    r"how (?:to|do i|can i|do you|would (?:i|you)|should i)\b"
    r"|как (?:[а-я]+ ){0,2}[а-я]+(?:ть|ти|чь|ться)\b|what's the best way to|cómo puedo|wie kann ich"
)
_HOW_TO_CHARS: Final = 240


def add_shape(text: PromptText, entries: Sequence[Entry], out: list[str]) -> None:
    """Marks anywhere in the windows, the end of the turn, and how numbers and questions combine."""
    window = f"{text.head}\n{text.tail}" if text.tail else text.head
    for mark, name in _MARKS:
        if mark in window:
            out.append(name)
    if _CALL.search(window):
        out.append("x:call")
    if "_" in window or "()" in window:
        out.append("x:identifier")
    formula = _FORMULA.search(window) is not None
    if formula:
        out.append("x:formula")
    if _OPTIONS.search(window):
        out.append("x:options")
    if _HOW_TO.search(text.head[:_HOW_TO_CHARS].lower()):
        out.append("x:howto")
        if any(entry[1] in ("TECH", "CODE") for entry in entries):
            out.append("x:howto&tech")
    _add_end(window, out)
    _add_numbers(window, entries, formula, out)


def _add_end(window: str, out: list[str]) -> None:
    end = window.rstrip()
    last = end[-1:]
    if last in ("?", "\uff1f"):  # the second is the full-width question mark
        out.append("e:?")
    elif end.endswith("```"):
        out.append("e:fence")
    elif last in ("{", "(", "=", ","):
        out.append("e:open")
    elif last == ":":
        out.append("e::")
    if "\n" in end:
        first, _, rest = end.partition("\n")
        last_line = rest.rpartition("\n")[2]
        if "?" in first:
            out.append("e:first?")
        if len(last_line) < 160 and "?" in last_line:
            out.append("e:last?")
        out.append("e:lines")


def _add_numbers(window: str, entries: Sequence[Entry], formula: bool, out: list[str]) -> None:
    numbers = sum(1 for entry in entries if entry[1] == "NUM")
    level = "0" if not numbers else "1" if numbers == 1 else "2" if numbers < 3 else "3"
    out.append("n:" + level)
    if numbers > 1 and not formula:
        concepts = {entry[1] for entry in entries}
        asks = "?" in window or "MANY" in concepts
        if asks and ("QUANT" in concepts or "UNIT" in concepts):
            out.append("n:problem")
        out.append("n:asks" if asks else "n:states")
