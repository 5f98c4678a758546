"""The prompts of the bench: short real requests by class and kind, English and Russian.

Structured answers are sampled greedily, as such applications do. Prose and reasoning run at
temperature 0.8: greedy prose of a small model falls into loops, which every drafter predicts, and
speculation would win falsely.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request of the workload, its class and kind as the author means them."""

    workload_class: str
    kind: str
    language: str
    text: str
    thinking: bool | None = None  # None: only for reasoning
    filler: int = 0  # words of unrelated text before the question

    @property
    def thinks(self) -> bool:
        """Whether the model is asked to think first."""
        return self.workload_class == "reasoning" if self.thinking is None else self.thinking

    def body(self, model: str, *, max_tokens: int, seed: int) -> dict[str, Any]:
        """A streaming chat body; usage is asked for because the timings ride on its chunk."""
        greedy = self.workload_class == "structured"
        return {
            "model": model,
            "messages": [{"role": "user", "content": filler(self.filler) + self.text}],
            "max_tokens": max_tokens,
            "temperature": 0.0 if greedy else 0.8,
            "seed": seed,
            "stream": True,
            "stream_options": {"include_usage": True},
            # Proven by reasoning tokens, never assumed: the bench reports thinking it did not see.
            "chat_template_kwargs": {"enable_thinking": self.thinks},
            # A prompt that is half cached would make the second setting look faster.
            "cache_prompt": self.filler == 0,
        }

    def like(self, *, words: int, thinking: bool | None) -> Prompt:
        """The same question behind a filler of that many words."""
        return replace(self, filler=words, thinking=thinking)


_DRY = (
    "The archive of the harbour office holds lists of ships, their cargo, and the weather of the",
    "day on which they came in; a clerk copied each line twice and signed below it.",
)


def filler(words: int) -> str:
    """An archive's dry text of `words` words: always the same, and of no help with any question."""
    if words <= 0:
        return ""
    stock = " ".join(_DRY).split()
    text = " ".join(stock[i % len(stock)] for i in range(words))
    return f"{text}\n\n"


def _prompts(workload_class: str, kind: str, en: str, ru: str) -> list[Prompt]:
    rows = [(en, "en"), (ru, "ru")]
    return [
        Prompt(workload_class, kind, language, line.strip())
        for block, language in rows
        for line in block.strip().splitlines()
    ]


PROMPTS: tuple[Prompt, ...] = (
    *_prompts(
        "structured",
        "json",
        """
        Write a JSON object describing a book: title, author, year, pages, genres.
        Return a JSON array of five users, each with id, name, email and age.
        Give me JSON for a product with name, price, currency, stock and tags.
        """,
        """
        Верни JSON с описанием человека: имя, возраст, город, профессия.
        Составь JSON-массив из пяти товаров с полями id, name, price.
        """,
    ),
    *_prompts(
        "structured",
        "code",
        """
        Write a Python function that returns the sum of a list of numbers.
        Write a Python function that checks whether a word is a palindrome.
        Write a Python function that counts the words in a text.
        """,
        """
        Напиши функцию на Python, которая находит максимум в списке.
        Напиши функцию на Python, которая переворачивает строку.
        """,
    ),
    *_prompts(
        "structured",
        "count",
        """
        Count from 1 to 60.
        List the even numbers from 2 to 80.
        """,
        """
        Посчитай от 1 до 60.
        Перечисли нечётные числа от 1 до 79.
        """,
    ),
    *_prompts(
        "structured",
        "list",
        """
        Give me a bulleted list of ten fruits.
        List eight European countries, one per line.
        """,
        """
        Составь список из десяти животных.
        Перечисли восемь цветов списком.
        """,
    ),
    *_prompts(
        "structured",
        "table",
        """
        Make a Markdown table of five cities with country and population.
        Draw a table with the columns name, age and city, six rows.
        """,
        """
        Сделай таблицу из пяти городов: город, страна, население.
        """,
    ),
    *_prompts(
        "prose",
        "story",
        """
        Tell me a short story about a fox who lost its way.
        Write a short story about an old lighthouse keeper.
        """,
        """
        Расскажи короткую историю о потерянном ключе.
        Напиши рассказ о лисе и зимнем лесе.
        """,
    ),
    *_prompts(
        "prose",
        "essay",
        """
        Write a few paragraphs about why people keep gardens.
        Explain in plain prose how a bridge carries its load.
        """,
        """
        Напиши несколько абзацев о том, зачем люди путешествуют.
        """,
    ),
    *_prompts(
        "prose",
        "qa",
        """
        Why is the sea salty?
        What is a compiler and what is it good for?
        """,
        """
        Почему осенью желтеют листья?
        """,
    ),
    *_prompts(
        "reasoning",
        "math",
        """
        Tom has 3 apples and buys 4 more, then gives away 2. How many are left?
        A train goes 60 km an hour for 3 hours. How far does it go?
        A box holds 12 eggs. How many eggs are in 5 boxes and 7 loose ones?
        """,
        """
        У Маши было 8 карандашей, она отдала 3 и купила 5. Сколько стало?
        """,
    ),
    *_prompts(
        "reasoning",
        "planning",
        """
        Plan a Saturday: shopping, lunch with Anna and a film at six. What order is best?
        """,
        """
        Нужно успеть в банк, в школу и на рынок до обеда. В каком порядке идти?
        """,
    ),
)


def workload(rng: random.Random, per_class: int) -> list[Prompt]:
    """`per_class` prompts of each class in random order, kinds drawn evenly."""
    chosen: list[Prompt] = []
    for workload_class in ("structured", "prose", "reasoning"):
        pool = [p for p in PROMPTS if p.workload_class == workload_class]
        rng.shuffle(pool)
        chosen += [pool[i % len(pool)] for i in range(per_class)]
    rng.shuffle(chosen)
    return chosen
