"""What a finished answer actually was: the free label of the request that led to it.

Works on a bounded sample of the answer, off the hot path. Counterparts: `classifier.learning`,
which trains on these labels, and `classifier.memory`, which counts them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from classifier.classes import CLASS_OF_KIND, WorkloadClass

SAMPLE_CHARS: Final = 16_384
"""Characters of an answer that are looked at: its head and tail, half each, when it is longer."""

REASONING_SHARE: Final = 0.5
"""An answer of which at least this share was reasoning counts as reasoning."""

CODE_SHARE: Final = 0.3
LINE_SHARE: Final = 0.5
"""Shares of the answer's characters (code) or lines (list, table) that make it that kind."""

MEASURED_ERROR: Final = 0.06
"""Share of answers whose class is read wrongly: see `tests/unit/classifier/test_produced.py`."""

SHORT_ANSWER_WORDS: Final = 6
ANNOUNCED: Final = 200
"""Characters that may stand before an object that is not fenced."""
MIN_DERIVATION_MARKS: Final = 3
MANY_NUMBERS: Final = 6
SHORT_PROOF: Final = 900
LONG_PROOF: Final = 6000
"""Characters up to which three conclusion words are a chain of reasoning, or may be one at all."""

_THINK: Final = re.compile(r"^\s*<think(?:ing)?>(.*?)(?:</think(?:ing)?>|\Z)", re.DOTALL)
_FENCE: Final = re.compile(r"```([\w+#.-]*)[^\n]*\n(.*?)(?:```|\Z)", re.DOTALL)
_ITEM: Final = re.compile(r"^\s*(?:[-*•–➤]|[A-Z]?\d{1,3}[.):]|[a-zа-я][.)])\s+\S", re.IGNORECASE)
_ROW: Final = re.compile(r"^\s*\|.*\|\s*$|^\s*\S[^|\n]*\|[^|\n]*\|")
_DELIMITED: Final = re.compile(r"^[^,;\t\n]+(?:[,;\t][^,;\t\n]*){2,}$")
_CODE_LINE: Final = re.compile(
    r"""^\s*(?:def|class|import|from\s+\w+\s+import|return|if\s.*:|for\s.*:|while\s.*:|elif\s.*:
    |else:|try:|public|private|static|func|fn|let|const|var|package|using|\#include|SELECT|INSERT
    |CREATE|UPDATE|FROM|WHERE|JOIN|GROUP\ BY|ORDER\ BY|<\w+|</\w+|\#!|@\w+|\}|\{|\)|print\(
    |echo\s|sudo\s|git\s|pip\s|npm\s|docker\s)|[;{}]\s*$|^\s*\w+\s*=\s*\S|\w+\(.*\)\s*$""",
    re.VERBOSE,
)
_PAIR: Final = re.compile(r"^\s*(?:- )?[\w.-]+\s?:(?:\s+\S+){0,6}$|^\s*- \S+$")
_COMMAND: Final = re.compile(r"^[a-z][\w.-]*\s.*(?:\s-{1,2}\w|[|>]\s?\w|/\w+/)[^.!?]*$")
_STEP: Final = re.compile(
    r"""(?:^|\n)\s*(?:\#+\s*|\*\*)?(?:step|шаг|步骤|第[一二三四五六]步)\s*\d*
    |\b(?:therefore|hence|thus|so\ the|let's|let\ us|we\ have|we\ get|which\ means|it\ follows
    |suppose|assume|contradict\w*|consistent|in\ that\ case|if\ [^.\n]{3,60}?,\ then)\b
    |\b(?:следовательно|значит|поэтому|отсюда|тогда|получаем|пусть|итого|итак|предположим
    |противоречи\w*|допустим)\b
    |\b(?:sei\ \w\b|daher|folglich|somit|also\ (?=\w\s?=)|daraus\ folgt|angenommen|widerspruch)
    |\b(?:sea\ \w\b|por\ lo\ tanto|entonces|por\ tanto|supongamos|contradicción)
    |\b(?:soit\ \w\b|donc|par\ conséquent|supposons)\b
    |因此|所以|设|则|假设|矛盾|那么""",
    re.VERBOSE | re.IGNORECASE,
)
_EQUATION: Final = re.compile(r"[\w)²³]\s*[=≈]\s*[-−(\w√\\]|\\\(|\\\[|\\frac|\$\$")
_SUM: Final = re.compile(r"\d\s*[-+*/×÷−]\s*\d[^=\n]{0,40}=\s*[-−]?\d")
_SIGN: Final = re.compile(r"[∫∑∏√]\s*\w")
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_FINAL: Final = re.compile(
    r"\b(?:answer|ответ)\b\s*(?:is|:|—|-|=)|\\boxed|####|答案", re.IGNORECASE
)
_OPENING: Final = re.compile(r"(?m)^[\[{]")
_INDENTED: Final = re.compile(r"^(?: {4}|\t)\s*\S")
_ENDS: Final = ".!?…。！？～"
_JSON_FENCES: Final = frozenset({"json", "jsonl", "yaml", "yml", "xml", "toml", "ini"})
_TABLE_FENCES: Final = frozenset({"csv", "tsv", "table"})
_TEXT_FENCES: Final = frozenset({"", "text", "txt", "markdown", "md"})


@dataclass(frozen=True, slots=True)
class ProducedLabel:
    """Class and kind of what came out; `confidence` is 0..1; `reasoning_share` is the share of
    all characters that were reasoning."""

    workload_class: WorkloadClass
    kind: str
    confidence: float
    reasoning_share: float


def label_output(
    text: str, *, reasoning: str = "", tool_calls: bool = False, truncated: bool = False
) -> ProducedLabel:
    """Class and kind of an answer.

    `reasoning` is what the server sent apart from the answer; a leading `<think>` block in `text`
    counts too. `truncated` says that the answer hit its token limit (an open fence or an unclosed
    JSON text is then still what it began as).
    """
    inner = _THINK.match(text)
    if inner is not None:
        reasoning = reasoning + inner.group(1)
        text = text[inner.end() :]
    total = len(reasoning) + len(text)
    share = len(reasoning) / total if total else 0.0
    if share >= REASONING_SHARE and len(reasoning.strip()) > 1:
        return _label("math" if _EQUATION.search(reasoning) else "logic", 0.95, share)
    if tool_calls:
        return _label("tool_call", 0.98, share)
    kind, confidence = _kind(_sample(text).strip(), truncated)
    return _label(kind, confidence, share)


def _label(kind: str, confidence: float, share: float) -> ProducedLabel:
    return ProducedLabel(CLASS_OF_KIND[kind], kind, confidence, share)


def _sample(text: str) -> str:
    if len(text) <= SAMPLE_CHARS:
        return text
    half = SAMPLE_CHARS // 2
    return f"{text[:half]}\n{text[-half:]}"


def _kind(text: str, truncated: bool) -> tuple[str, float]:
    if not text:
        return "chat", 0.2
    data = _data_kind(text, truncated)
    if data:
        return data
    fenced = _fenced_kind(text)
    if fenced:
        return fenced
    return _plain_kind(text)


def _data_kind(text: str, truncated: bool) -> tuple[str, float] | None:
    """JSON (also one value per line, or cut off), or markup from the first character on."""
    first = text[0]
    if first in "{[":
        if _parses(text) or all(_parses(line) for line in text.splitlines() if line.strip()):
            return "json", 0.99
        if truncated or re.match(r"[\[{]\s*[\[{\"\]}]", text):
            return "json", 0.8
    if text[-1] in "]}" and _announced(text):
        return "json", 0.9
    if first == "<" and re.match(r"<(?:\?xml|!DOCTYPE|[a-zA-Z][\w-]*[\s>/])", text):
        return ("json", 0.85) if text.startswith("<?xml") else ("code", 0.9)
    return None


def _announced(text: str) -> bool:
    """Whether a sentence announces the object or array that the rest of the text is."""
    opening = _OPENING.search(text)
    return opening is not None and opening.start() < ANNOUNCED and _parses(text[opening.start() :])


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _fenced_kind(text: str) -> tuple[str, float] | None:
    """The kind of the fenced blocks when they make up enough of the answer."""
    blocks = _FENCE.findall(text)
    if not blocks:
        return None
    inside = sum(len(body) for _, body in blocks)
    outside = len(_FENCE.sub("", text).strip())
    if inside < CODE_SHARE * (inside + outside):
        return None
    language, body = max(blocks, key=lambda block: len(block[1]))
    language = language.lower()
    if language in _JSON_FENCES or (not language and _parses(body)):
        return "json", 0.95
    if language in _TABLE_FENCES:
        return "table", 0.9
    if language in _TEXT_FENCES:
        inner = _plain_kind(body.strip()) if body.strip() else ("code", 0.5)
        return inner if inner[0] in ("table", "list", "code", "json") else ("code", 0.5)
    return "code", 0.97


def _plain_kind(text: str) -> tuple[str, float]:
    """The kind of an answer without fences, from its lines."""
    lines = [line for line in text.splitlines() if line.strip()]
    rows = sum(1 for line in lines if _ROW.match(line))
    if len(lines) >= 2 and rows >= max(2, LINE_SHARE * len(lines)):
        return "table", 0.95
    derived = _derivation(text)
    if derived:
        return derived
    return _by_lines(text, lines)


def _derivation(text: str) -> tuple[str, float] | None:
    """Worked reasoning: step and conclusion words with equations, or with a stated answer; one sum
    is enough that leads to a stated answer or stands among other figures."""
    steps = len(_STEP.findall(text))
    equations = len(_EQUATION.findall(text))
    final = _FINAL.search(text) is not None or _SIGN.search(text) is not None
    if _SUM.search(text) and (final or steps or len(_NUMBER.findall(text)) >= MANY_NUMBERS):
        return "math", 0.8
    if equations and steps >= 2:
        return "math", 0.7
    if equations >= 2 and steps + equations + final >= MIN_DERIVATION_MARKS:
        code_like = sum(1 for line in text.splitlines() if _CODE_LINE.search(line))
        if code_like <= 0.5 * len(text.splitlines()) or steps >= 2:
            return "math", 0.8
    if steps >= MIN_DERIVATION_MARKS and (final or steps >= 4 or len(text) < SHORT_PROOF):
        return ("logic", 0.65) if len(text) < LONG_PROOF else None
    return None


def _by_lines(text: str, lines: list[str]) -> tuple[str, float]:
    count = len(lines)
    code = sum(1 for line in lines if _CODE_LINE.search(line))
    if count >= 2 and code >= 0.6 * count:
        return "code", 0.8
    if count == 1 and _COMMAND.match(text):
        return "code", 0.8
    if _has_indented_block(text):
        return "code", 0.7
    pairs = sum(1 for line in lines if _PAIR.match(line))
    if count >= 3 and pairs >= 0.9 * count:
        return "json", 0.7
    items = [line for line in lines if _ITEM.match(line)]
    if len(items) >= 2 and len(items) >= LINE_SHARE * count:
        words = sum(len(line.split()) for line in items) / len(items)
        return ("list", 0.9) if words <= 25 else ("essay", 0.6)
    if count >= 3 and sum(1 for line in lines if _DELIMITED.match(line)) >= 0.9 * count:
        return "table", 0.8
    return _short_or_prose(text, lines)


def _has_indented_block(text: str) -> bool:
    """Markdown's older code block: indented lines after an empty one, CODE_SHARE of the text."""
    inside, before, block = 0, "", False
    for line in text.splitlines():
        block = _INDENTED.match(line) is not None and (block or not before.strip())
        inside += len(line) if block and not _ITEM.match(line) else 0
        before = line
    return inside >= max(1, CODE_SHARE * len(text))


def _short_or_prose(text: str, lines: list[str]) -> tuple[str, float]:
    words = text.split()
    if _is_counting(text):
        return "count", 0.95
    mean_line = len(words) / len(lines)
    ends = sum(1 for line in lines if line.rstrip()[-1] in f"{_ENDS}:")
    if len(lines) >= 3 and mean_line <= 6 and ends * 3 < len(lines) and not _verse(lines):
        return "list", 0.75
    if len(words) <= SHORT_ANSWER_WORDS and text.rstrip()[-1] not in _ENDS:
        return "extraction", 0.7
    separators = text.count(",") + text.count("、") + text.count(";")
    sentence = text.rstrip()[-1] in _ENDS
    if (
        len(lines) == 1
        and not sentence
        and separators >= 3
        and len(words) <= 2.6 * (separators + 1)
    ):
        return "list", 0.7
    return _prose_kind(text, lines)


def _is_counting(text: str) -> bool:
    numbers = re.findall(r"\d+", text)
    letters = sum(char.isalpha() for char in text)
    if len(numbers) == 1:
        return len(text) <= 24 and letters <= 12
    return len(numbers) >= 5 and letters <= 0.2 * len(text)


def _verse(lines: list[str]) -> bool:
    """Verse: lines of some length, half of which end in a pause, as names and items do not."""
    pauses = sum(1 for line in lines if line.rstrip()[-1] in ",;—-.!?")
    words = sum(len(line.split()) for line in lines)
    return words >= 2.5 * len(lines) and pauses >= 0.4 * len(lines)


def _prose_kind(text: str, lines: list[str]) -> tuple[str, float]:
    if len(text) > 6000:
        return "long_document", 0.8
    if _verse(lines) and len(lines) >= 4 and len(text) / len(lines) < 60:
        return "story", 0.7
    return ("essay", 0.8) if len(text) > 900 else ("qa", 0.75) if len(text) > 160 else ("chat", 0.7)
