"""Training requests of our own writing: the prompts under `corpus/`, filled in and combined.

They stand where public data is thin (several languages, short requests, tools, system prompts that
dictate a format, follow-ups whose meaning lies in the previous answer). They are one group of their
own: always trained on, never counted in a figure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from classifier.classes import CLASS_OF_KIND, WorkloadClass
from classifier.dataset import LabelledRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

CORPUS: Final = Path(__file__).parent / "corpus"
GROUP: Final = "authored"
SEED: Final = 7

FILLS: Final = 3
"""Ways a template with blanks is filled in."""

NEUTRAL_SYSTEM: Final = 0.3
AFTER_OTHER_TURN: Final = 0.12
UNPOLISHED: Final = 0.25
"""Shares of stand-alone prompts that get a system prompt that says nothing, an earlier exchange
about something else, and lower case without a final mark."""

PER_SYSTEM: Final = 7
"""Prompts put under each system prompt that dictates a format."""

PER_FORMAT: Final = 6
"""Prompts that each naming of a form is put behind."""

IDLE_TOOLS: Final = 220
"""Prompts that have nothing to do with the tools they are sent with."""

_BLANK: Final = re.compile(r"\{(\w+)\}")
_PROSE_FILES: Final = ("structured.txt", "prose.txt", "reasoning.txt")

Sections = dict[tuple[str, str], list[str]]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A stand-alone request: its kind, language and text."""

    kind: str
    language: str
    text: str


def sections(name: str) -> Sections:
    """The lines under each `[word word]` header of a corpus file, line breaks restored."""
    result: Sections = {}
    current: list[str] = []
    for line in (CORPUS / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("[") and line.endswith("]") and " " in line:
            first, _, last = line[1:-1].partition(" ")
            current = result.setdefault((first, last), [])
        elif line.strip():
            current.append(line.replace("\\n", "\n").replace("\\t", "\t"))
    return result


@dataclass(slots=True)
class Author:
    """Fills and combines; every draw comes from one seeded generator."""

    rng: Random
    slots: Sections = field(default_factory=lambda: sections("slots.txt"))
    answers: Sections = field(default_factory=lambda: sections("answers.txt"))

    def fill(self, template: str, language: str) -> str:
        """The template with each blank replaced by a random entry of its slot."""

        def pick(match: re.Match[str]) -> str:
            slot = match.group(1)
            options = self.slots.get((slot, language)) or self.slots.get((slot, "en"))
            return self.rng.choice(options) if options else match.group(0)

        return _BLANK.sub(pick, template)

    def prompts(self) -> list[Prompt]:
        """Every template, those with blanks FILLS times."""
        return [
            Prompt(kind, language, self.fill(line, language))
            for name in _PROSE_FILES
            for (kind, language), lines in sections(name).items()
            for line in lines
            for _ in range(FILLS if _BLANK.search(line) else 1)
        ]

    def unpolished(self, text: str) -> str:
        """Sometimes typed in haste: lower case, no final mark."""
        if "\n" in text or self.rng.random() > UNPOLISHED:
            return text
        return text.lower().rstrip(".?!。？")

    def answer(self, shape: str, language: str) -> str:
        """An earlier answer of the given shape."""
        language = language if (shape, language) in self.answers else "en"
        return self.rng.choice(self.answers[(shape, language)])


def rows(seed: int = SEED) -> list[LabelledRequest]:
    """All authored requests, the same for the same seed."""
    author = Author(Random(seed))  # noqa: S311  (varied text, nothing secret)
    prompts = author.prompts()
    made = [
        *_alone(author, prompts),
        *_dictated(author, prompts),
        *_followed(author, prompts),
        *_formatted(author, prompts),
        *_with_tools(author, prompts),
    ]
    return [_row(f"authored-{at:05d}", *item) for at, item in enumerate(made)]


Item = tuple[str, str, dict[str, Any]]


def _row(identity: str, kind: str, language: str, body: Mapping[str, Any]) -> LabelledRequest:
    workload_class = CLASS_OF_KIND[kind]
    return LabelledRequest(
        identity, body, workload_class, workload_class, kind, GROUP, language, False
    )


def _turn(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _alone(author: Author, prompts: Sequence[Prompt]) -> Iterator[Item]:
    """Single prompts, some under a system prompt that says nothing, some after another exchange."""
    neutral = {
        lang: lines for (kind, lang), lines in sections("systems.txt").items() if kind == "neutral"
    }
    shapes = sorted({shape for shape, _ in author.answers})
    for prompt in prompts:
        messages = [_turn("user", author.unpolished(prompt.text))]
        if author.rng.random() < AFTER_OTHER_TURN:
            before = author.rng.choice(prompts)
            shape = author.rng.choice(shapes)
            answer = author.answer(shape, prompt.language)
            messages[:0] = [_turn("user", before.text), _turn("assistant", answer)]
        if author.rng.random() < NEUTRAL_SYSTEM:
            lines = neutral.get(prompt.language, neutral["en"])
            messages.insert(0, _turn("system", author.rng.choice(lines)))
        yield prompt.kind, prompt.language, {"messages": messages}


def _dictated(author: Author, prompts: Sequence[Prompt]) -> Iterator[Item]:
    """System prompts that dictate a format, over prompts that ask for anything."""
    by_language: dict[str, list[Prompt]] = {}
    for prompt in prompts:
        by_language.setdefault(prompt.language, []).append(prompt)
    for (kind, language), lines in sections("systems.txt").items():
        if kind == "neutral":
            continue
        for line in lines:
            for prompt in author.rng.sample(by_language[language], PER_SYSTEM):
                system = _turn("system", author.fill(line, language))
                yield kind, language, {"messages": [system, _turn("user", prompt.text)]}


def _followed(author: Author, prompts: Sequence[Prompt]) -> Iterator[Item]:
    """Short turns that lean on the previous answer."""
    for (kind, header), lines in sections("followups.txt").items():
        after, _, language = header.partition(" ")
        shape = after.removeprefix("after-")
        for line in lines:
            for _ in range(2):
                before = author.rng.choice([p for p in prompts if p.language == language])
                messages = [
                    _turn("user", before.text),
                    _turn("assistant", author.answer(shape, language)),
                    _turn("user", author.fill(line, language)),
                ]
                yield kind, language, {"messages": messages}


def _formatted(author: Author, prompts: Sequence[Prompt]) -> Iterator[Item]:
    """Requests that end by naming the form of the answer, which outweighs what they began with."""
    for (kind, language), lines in sections("formats.txt").items():
        wanted = CLASS_OF_KIND[kind]
        # Prose is only a surprise where code, a list or a table was asked for, and the reverse.
        others = [p for p in prompts if p.language == language and _differs(p.kind, wanted)]
        for line in lines:
            for prompt in author.rng.sample(others, PER_FORMAT):
                joint = author.rng.choice(["\n", " ", "\n\n"])
                text = f"{prompt.text}{joint}{author.fill(line, language)}"
                yield kind, language, {"messages": [_turn("user", text)]}


def _differs(kind: str, wanted: WorkloadClass) -> bool:
    own = CLASS_OF_KIND[kind]
    if wanted is WorkloadClass.PROSE:
        return kind in ("code", "list", "table")
    return own is WorkloadClass.PROSE and kind in ("qa", "essay", "summary", "chat")


def _with_tools(author: Author, prompts: Sequence[Prompt]) -> Iterator[Item]:
    """Requests that need a tool, requests that do not, and answers after a tool has spoken."""
    tool_sets, uses = _tool_sections()
    names = sorted(tool_sets)
    for (name, language), lines in uses.items():
        for line in lines:
            for _ in range(2):
                offered = tool_sets[name] + tool_sets[author.rng.choice(names)]
                messages = [_turn("user", author.fill(line, language))]
                body = {"messages": messages, "tools": offered}
                yield "tool_call", language, body
                if author.rng.random() < 0.3:
                    yield "qa", language, {**body, "messages": [*messages, *_tool_turns(offered)]}
    for prompt in author.rng.sample(list(prompts), IDLE_TOOLS):
        offered = tool_sets[author.rng.choice(names)]
        body = {"messages": [_turn("user", prompt.text)], "tools": offered}
        yield prompt.kind, prompt.language, body


def _tool_turns(offered: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    name = offered[0]["function"]["name"]
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"ok": true, "value": 17}'},
    ]


def _tool_sections() -> tuple[dict[str, list[dict[str, Any]]], Sections]:
    tool_sets: dict[str, list[dict[str, Any]]] = {}
    uses: Sections = {}
    for (word, rest), lines in sections("tools.txt").items():
        if word == "set":
            tool_sets[rest] = [_tool(line) for line in lines]
        else:
            name, _, language = rest.partition(" ")
            uses[(name, language)] = lines
    return tool_sets, uses


def _tool(line: str) -> dict[str, Any]:
    name, _, description = line.partition(" | ")
    parameters = {"type": "object", "properties": {}}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}
