"""Whole conversations in ChatML, as (text, is_answer) pieces, and the mixture of kinds."""
# ruff: noqa: E501, SIM905 - word lists and templates read better unbroken.

from __future__ import annotations

import pydoc
import random
import re
from typing import TYPE_CHECKING

from corpus.english import English
from corpus.programs import Code
from corpus.reason import Reason
from corpus.russian import Russian
from corpus.structured import Structured

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SYSTEMS = (
    "You are a helpful assistant.",
    "You are a helpful assistant.",
    "You are a concise assistant.",
    "Answer briefly.",
    "You are an expert programmer.",
    "You are a friendly assistant. Answer in the language of the user.",
    "Ты полезный помощник.",
    "Отвечай кратко.",
    "You are a storyteller.",
    "Follow the format exactly.",
    "You are a JSON generator. Return only what is asked.",
)
Piece = tuple[str, bool]
PLANS = (
    "The user wants this: {}.",
    "Task: {}.",
    "I should answer in the right format. {}.",
    "Plan: {}.",
    "Нужно ответить. {}.",
)
MODULES = (
    "argparse asyncio base64 bisect calendar collections concurrent.futures configparser contextlib copy csv "
    "dataclasses datetime decimal difflib email enum fractions functools glob gzip hashlib heapq html http.client "
    "inspect io ipaddress itertools json logging math multiprocessing operator os pathlib pickle queue random re "
    "sched secrets shlex shutil signal socket sqlite3 statistics string struct subprocess tempfile textwrap threading "
    "time tokenize traceback types typing unittest urllib.parse uuid warnings weakref xml.etree.ElementTree zipfile"
).split()
# How often each kind of turn comes up, out of about a thousand.
MIXTURE = {
    "count": 65,
    "steps": 40,
    "json": 170,
    "extract": 35,
    "yaml": 20,
    "csv": 15,
    "list": 45,
    "sequence": 25,
    "howto": 15,
    "table": 50,
    "code": 210,
    "english": 95,
    "russian": 85,
    "manual": 5,
    "reason": 110,
    "small": 14,
}


class Chat:
    """An endless mixture of documents."""

    def __init__(self, seed: int, mixture: Mapping[str, int] = MIXTURE) -> None:
        self.mixture = mixture
        self.rng = rng = random.Random(seed)
        self.structured, self.code, self.reason = Structured(rng), Code(rng), Reason(rng)
        self.english, self.russian = English(rng), Russian(rng)
        self.paragraphs = list(manual())

    def turn(self) -> tuple[str, str, str, bool]:
        """(prompt, answer, thought, is a reasoning question)."""
        s, rng = self.structured, self.rng
        kind = rng.choices(list(self.mixture), list(self.mixture.values()))[0]
        if kind == "reason":
            ask, thought, answer = self.reason.any()
            return ask, answer, thought, True
        makers = {
            "count": s.count,
            "steps": s.steps,
            "json": s.json,
            "extract": s.extract,
            "yaml": s.yaml,
            "csv": s.csv,
            "list": s.listing,
            "sequence": s.sequence,
            "howto": s.howto,
            "table": s.table,
            "code": self.code.any,
            "english": self.english.any,
            "russian": self.russian.any,
            "manual": self.manual,
            "small": self.small,
        }
        ask, answer, plan = makers[kind]()
        return ask, answer, rng.choice(PLANS).format(plan.rstrip(".")), False

    def manual(self) -> tuple[str, str, str]:
        """A paragraph or two of the standard library's own documentation."""
        module, text = self.rng.choice(self.paragraphs)
        ask = self.english.spin(
            "{What does|Explain what|Describe what} the Python module "
            + module
            + " {does|is for}{?|.}"
        )
        return ask, text, f"About the module {module}"

    def small(self) -> tuple[str, str, str]:
        """Greetings and thanks."""
        pairs = (
            ("{Hi|Hello|Hey|Good morning}{!|.|}", "Hello! How can I help you today?"),
            ("{Thanks|Thank you}{!|.| very much}", "You are welcome!"),
            ("{Привет|Здравствуй|Добрый день}{!|.|}", "Здравствуйте! Чем я могу помочь?"),
            ("{Спасибо|Большое спасибо}{!|.|}", "Пожалуйста!"),
            (
                "{Who are you|What are you|What is your name}?",
                "I am a tiny model that ships with Specroute. I know a few formats and tell small stories.",
            ),
            (
                "{Кто ты|Как тебя зовут}?",
                "Я маленькая модель из Specroute. Я знаю несколько форматов и рассказываю короткие истории.",
            ),
        )
        ask, answer = self.rng.choice(pairs)
        return self.english.spin(ask), answer, "A greeting"

    def document(self) -> list[Piece]:
        """One conversation, mostly of one turn."""
        rng = self.rng
        pieces: list[Piece] = []
        if rng.random() < 0.2:
            pieces.append((f"<|im_start|>system\n{rng.choice(SYSTEMS)}<|im_end|>\n", False))
        turns = rng.choices((1, 2, 3), (86, 11, 3))[0]
        for left in reversed(range(turns)):
            ask, answer, thought, hard = self.turn()
            pieces.append((f"<|im_start|>user\n{ask}<|im_end|>\n<|im_start|>assistant\n", False))
            if left:
                pieces.append((f"{answer}<|im_end|>\n", True))
            elif rng.random() < (0.5 if hard else 0.06):
                pieces += [
                    ("<think>\n", False),
                    (f"{thought}\n</think>\n\n{answer}<|im_end|>\n", True),
                ]
            else:
                pieces += [("<think>\n\n</think>\n\n", False), (f"{answer}<|im_end|>\n", True)]
        return pieces

    def __iter__(self) -> Iterator[list[Piece]]:
        while True:
            yield self.document()


def manual() -> Iterator[tuple[str, str]]:
    """Paragraphs of docstrings in the standard library that read as prose."""
    for module in MODULES:
        found = pydoc.locate(module)
        things = [found, *(getattr(found, n, None) for n in dir(found) if not n.startswith("_"))]
        for thing in things:
            doc = pydoc.getdoc(thing) if callable(thing) or thing is found else ""
            text = re.sub(r"[ \t]*\n[ \t]*", " ", doc.split("\n\n\n")[0][:900]).strip()
            if len(text) > 250 and sum(c.isalpha() or c == " " for c in text) > 0.9 * len(text):
                yield module, text.rsplit(". ", 1)[0].rstrip(".") + "."
