"""What the text looks like, whatever its language: fences, braces, formulas, numbers, questions.

Tests of one character come before those of several, which cost several times as much, and both
look at the signs of the window first (see `_signs_of`), a tenth of its length.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from classifier.features.base import PromptText

_NOT_SIGNS: Final = bytes(
    code
    for code in range(128)
    if chr(code) in " \t\r" or (chr(code).isalpha() and chr(code) not in "ABbxyn")
)
"""Characters left out of the signs (see `_signs_of`): all letters but those that a mark has."""

_FORMULA: Final = re.compile(r"[=+*/^×÷<>≤≥](?<=[\d)xyn ].) ?[\d(\-xyn]")
_FORMULA_HINT: Final = re.compile(r"[=+*/^<>][\d(\-xyn]")
"""What the signs of an ASCII formula have: an operator beside what it works on."""

_FORMULA_SIGNS: Final = "=+*/^×÷<>≤≥"
_FORMULA_MARKS: Final = "√²³∫∑π"
_FORMULA_WORDS: Final = ("\\frac", "\\sqrt", "\\(", "$$")
_PAIRS: Final = (("B)", "A)"), ("B.", "A."), ("b)", "a)"))
_PAIRS_RU: Final = (("Б)", "А)"), ("Б.", "А."))
_CALL_MARKS: Final = ((");", ");"), ("){", ") {"), ("){", "){"), ("):", "):"))
"""What the signs have if the window may have the mark, and the mark."""

_CODE_WORDS: Final = ("def ", "import ", "function ", "class ", "const ", "public ", "SELECT ")

_Phrases = tuple[tuple[str, tuple[str, ...]], ...]
"""Phrases by a character or word that is looked for first: a text without it has none of them."""

_QUOTED_CHOICE: Final[_Phrases] = (
    ('"', ('" or "', '", or "', '" или "', '" oder "', '" ou "', '" o "')),
    ("'", ("' or '",)),
    ("«", ("» или «",)),
)
_SPOKEN_CHOICE: Final[_Phrases] = (
    ("/", ("yes/no", "да/нет")),
    (" or ", ("yes or no", "true or false")),
    ("да ", ("да или нет",)),
    ("í", ("sí o no",)),
    ("j", ("ja oder nein",)),
    ("ou", ("oui ou non",)),
)
_ONE_WORD: Final[_Phrases] = (
    ("word", ("one word", "single word")),
    ("одн", ("одним словом", "одно слово")),
    ("palabra", ("una palabra",)),
    (" wort", ("einem wort", "ein wort")),
    (" mot", ("un mot", "seul mot")),
)
_HOW_TO: Final[_Phrases] = (
    (
        "how ",
        (
            "how to ",
            "how do i ",
            "how can i ",
            "how do you ",
            "how would you ",
            "how should i ",
        ),
    ),
    ("best way", ("what's the best way to ",)),
    ("ó", ("cómo puedo ",)),
    ("wie ", ("wie kann ich ",)),
)
_HOW_TO_RU: Final = re.compile(r"как (?:[а-я]+ ){0,2}[а-я]+(?:ть|ти|чь|ться)\b")
_PHRASE_CHARS: Final = 240
_QUESTION_MARKS: Final = ("?", "\uff1f")  # the second is the full-width one

_MARKS: Final = (
    ("`", "x:tick", (("```", "x:fence"),)),
    ("{", "", (('{"', "x:json"),)),
    ("<", "", (("</", "x:markup"),)),
    ("|", "x:pipe", (("|--", "x:table"),)),
    ("@", "x:at", ()),
    ("$", "x:dollar", ()),
    ("%", "x:percent", ()),
    ('"', "x:dquote", ()),
    (":", "x:colon", (("://", "x:url"),)),
    ("_", "x:identifier", (("___", "x:blank"),)),
    ("(", "", (("()", "x:identifier"),)),
    ("\n", "", (("\n-", "x:dash"), ("\n1", "x:numbered"))),
    (".", "", (("...", "x:dots"),)),
)
"""One character that costs little to look for, its feature, and what is looked for if it occurs."""

_SPACED: Final = {"\n-": "\n- "}
"""Marks with a space in the window, by what is left of them in the signs."""


_ASKED: Final = re.compile(
    r"(\d{1,2}[ ,.]?\d00|\d{2,4})[- ]?(?:words?|слов|个?字|palabras|wörter|mots)\b"
)
_ASKED_UNITS: Final = ("word", "слов", "字", "palabras", "wörter", "mots")


def asked_words(window: str) -> int | None:
    """The number of words an answer is asked to have, if the text says it."""
    for unit in _ASKED_UNITS:
        if unit in window:
            found = _ASKED.search(window)
            return int(re.sub(r"\D", "", found.group(1))) if found else None
    return None


def _says(text: str, table: _Phrases) -> bool:
    """Whether the text has one of the phrases."""
    for sign, phrases in table:
        if sign in text:
            for phrase in phrases:
                if phrase in text:
                    return True
    return False


def _signs_of(window: str) -> str:
    """The window without its letters, spaces and whatever is not ASCII: a tenth of it.

    What stands side by side in the window does so here. So a mark that is not here is not there
    either, which is most of the answers; the reverse has to be looked up in the window.
    """
    return window.encode("ascii", "ignore").translate(None, _NOT_SIGNS).decode("ascii")


def add_shape(text: PromptText, concepts: Sequence[str], out: list[str]) -> None:
    """Marks anywhere in the window, the end of the turn, and how numbers and questions combine."""
    window = text.window
    signs = _signs_of(window)
    for sign, name, marks in _MARKS:
        if sign in signs:
            if name:
                out.append(name)
            for mark, marked in marks:
                if mark in signs and _SPACED.get(mark, mark) in window:
                    out.append(marked)
    if "«" in window:
        out.append("x:quote")
    _add_code(window, signs, out)
    formula = _has_formula(window, signs)
    if formula:
        out.append("x:formula")
    _add_phrases(text, signs, concepts, out)
    _add_end(window, out)
    _add_numbers(window, concepts, formula, out)


def _add_code(window: str, signs: str, out: list[str]) -> None:
    """Calls and declarations; lettered options."""
    if ")" in signs:
        if _has_options(window, signs):
            out.append("x:options")
        for hint, mark in _CALL_MARKS:
            if hint in signs and mark in window:
                out.append("x:call")
                return
    if "\n" in signs or "`" in signs:
        for mark in _CODE_WORDS:
            if mark in window:
                out.append("x:call")
                return


def _has_options(window: str, signs: str) -> bool:
    for second, first in _PAIRS:
        if second in signs and second in window and first in window:
            return True
    if "Б" in window:
        for second, first in _PAIRS_RU:
            if second in window and first in window:
                return True
    return False


def _has_formula(window: str, signs: str) -> bool:
    plain = window.isascii()
    if not plain:
        for mark in _FORMULA_MARKS:
            if mark in window:
                return True
    if "\\" in signs or "$" in signs:
        for word in _FORMULA_WORDS:
            if word in window:
                return True
    if plain:  # otherwise the digits may be other than ASCII's
        return bool(_FORMULA_HINT.search(signs) and _FORMULA.search(window))
    for sign in _FORMULA_SIGNS:
        if sign in window:
            return _FORMULA.search(window) is not None
    return False


def _add_phrases(text: PromptText, signs: str, concepts: Sequence[str], out: list[str]) -> None:
    """A choice between named answers, and "how do I do this" (about code or not)."""
    if _offers_choice(text, signs, concepts):
        out.append("x:choice")
    if "LENGTH" in concepts and _says(f"{text.first}\n{text.last}".lower(), _ONE_WORD):
        out.append("x:oneword")
    if "HOW" not in concepts and "WHAT" not in concepts:
        return
    start = text.first[:_PHRASE_CHARS].lower()
    if _says(start, _HOW_TO) or ("как " in start and _HOW_TO_RU.search(start)):
        out.append("x:howto")
        if "TECH" in concepts or "CODE" in concepts:
            out.append("x:howto&tech")


def _offers_choice(text: PromptText, signs: str, concepts: Sequence[str]) -> bool:
    """Quoted answers with "or" between them, or yes or no (whose words have these concepts)."""
    # Of two quoted answers, the signs have the marks that stand around "or" side by side.
    quoted = '""' in signs or "''" in signs or '","' in signs or "«" in text.window
    spoken = "NEG" in concepts or "CLASSIFY" in concepts
    if not quoted and not spoken:
        return False
    edges = f"{text.first}\n{text.last}".lower()
    return (quoted and _says(edges, _QUOTED_CHOICE)) or (spoken and _says(edges, _SPOKEN_CHOICE))


def _add_end(window: str, out: list[str]) -> None:
    end = window.rstrip()
    last = end[-1:]
    if last in _QUESTION_MARKS:
        out.append("e:?")
    elif last == "`" and end.endswith("```"):
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


def _add_numbers(window: str, concepts: Sequence[str], formula: bool, out: list[str]) -> None:
    numbers = concepts.count("NUM")
    out.append("n:0" if not numbers else "n:1" if numbers == 1 else "n:2" if numbers < 3 else "n:3")
    if numbers > 1 and not formula:
        asks = "?" in window or "MANY" in concepts
        if asks and ("QUANT" in concepts or "UNIT" in concepts):
            out.append("n:problem")
        out.append("n:asks" if asks else "n:states")
