"""Structured answers in English and Russian: counting, JSON, lists, tables, YAML, CSV, extraction."""
# ruff: noqa: E501 - word lists and templates read better unbroken.

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from corpus import words
from corpus.spin import Spinner

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

Answer = tuple[str, str, str]
COUNT_EN = [
    "{Count|Please count|Can you count|Count up|Now count} from <a> to <b>{.||, one number per line.| please| for me.}",
    "{List|Print|Write|Write out|Show|Give me|Output} {the|all|all the} {numbers|integers} from <a> to <b>{.|| one per line.|, each on a new line.}",
    "{Write|Print|Give me} {the |}numbers <a> to <b>{.|}",
    "{Numbers|Integers} from <a> to <b>",
    "{Start at|Begin with} <a> and count {up |}to <b>{.|}",
]
COUNT_RU = [
    "{Посчитай|Сосчитай|Считай|Пожалуйста, посчитай|Досчитай} от <a> до <b>{.||, по одному числу в строке.| пожалуйста}",
    "{Напиши|Выведи|Перечисли|Запиши|Покажи} {все |}{числа|целые числа} от <a> до <b>{.||, каждое с новой строки.}",
    "{Числа|Все числа} от <a> до <b>",
]
COMMA_EN = "{, separated by commas|, comma separated| in one line| on one line, separated by commas|, with commas}{.|}"
COMMA_RU = "{ через запятую| в одну строку|, через запятую}{.|}"
STEP_EN = [
    "{List|Write|Print|Show|Give me} the {first|} <n> {even numbers|odd numbers|multiples of <k>|squares|square numbers}{.|}",
    "{List|Write|Print|Show} {even numbers|odd numbers|multiples of <k>|the squares} {up to <b>|from 1 to <b>}{.|}",
    "{Count|Count up} by <k>{s|} {from <a> |}to <b>{.|}",
]


def spell(rng: random.Random, pairs: list[str]) -> str:
    """A human list of names."""
    if len(pairs) == 1:
        return pairs[0]
    return ", ".join(pairs[:-1]) + rng.choice((" and ", ", ", " and ")) + pairs[-1]


def spell_ru(pairs: list[str]) -> str:
    return pairs[0] if len(pairs) == 1 else ", ".join(pairs[:-1]) + " и " + pairs[-1]


class Structured:
    """Every method returns (prompt, answer, plan)."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.spin = Spinner(words.RULES, rng)

    # --- counting -----------------------------------------------------------------------------

    def count(self) -> Answer:
        rng = self.rng
        a = rng.choice((1, 1, 1, 1, 1, 0, 2, 5, 10, 11, 20, 30, 50, 80, 100, rng.randint(0, 300)))
        b = a + rng.choice(
            (9, 10, 14, 19, 20, 24, 29, 30, 39, 40, 49, 50, 59, 60, rng.randint(8, 99))
        )
        if a == 1 and rng.random() < 0.7:
            b = rng.choice((10, 12, 15, 20, 25, 30, 40, 45, 50, 60, 70, 75, 80, 90, 100, 120))
        numbers = list(range(a, b + 1))
        if rng.random() < 0.12:
            return self.backwards(numbers)
        ru = rng.random() < 0.4
        ask = self.spin(rng.choice(COUNT_RU if ru else COUNT_EN), {"a": str(a), "b": str(b)})
        sep = "\n"
        if rng.random() < 0.3:
            ask = ask.split(", one")[0].split(", each")[0].split(" one per")[0].split(", по")[0]
            ask = ask.split(", каждое")[0].rstrip(".") + self.spin(COMMA_RU if ru else COMMA_EN)
            sep = ", "
        elif rng.random() < 0.2:
            ask += self.spin(" {в словах|словами}" if ru else " {in words|as words}")
            spelled = [words.spoken(n, ru) for n in numbers if n <= 100][:40]
            return ask, "\n".join(spelled), f"{a}..{b}"
        return ask, sep.join(map(str, numbers)), f"{a}..{b}"

    def backwards(self, numbers: list[int]) -> Answer:
        ru = self.rng.random() < 0.4
        a, b = str(numbers[-1]), str(numbers[0])
        ask = self.spin(
            self.rng.choice(
                [
                    "{Посчитай|Считай|Сосчитай} {обратно |в обратном порядке |назад |}от <a> до <b>{.|}",
                    "Обратный отсчёт от <a> до <b>",
                ]
                if ru
                else [
                    "{Count|Please count} {down|backwards} from <a> to <b>{.|}",
                    "{Countdown|A countdown} from <a> to <b>{.|}",
                ]
            ),
            {"a": a, "b": b},
        )
        return ask, "\n".join(str(n) for n in reversed(numbers)), f"{a}..{b}"

    def steps(self) -> Answer:
        rng = self.rng
        k, n = rng.randint(2, 12), rng.choice((10, 12, 15, 20, 25, 30))
        kind = rng.choice(("even", "odd", "multiples", "squares", "cubes", "table", "powers"))
        ru = rng.random() < 0.35
        names = {
            "even": ("even numbers", "чётных чисел"),
            "odd": ("odd numbers", "нечётных чисел"),
            "multiples": (f"multiples of {k}", f"чисел, кратных {k}"),
            "squares": (rng.choice(("squares", "square numbers")), "квадратов"),
            "cubes": (rng.choice(("cubes", "cube numbers")), "кубов"),
            "powers": ("powers of 2", "степеней двойки"),
        }
        if kind == "table":
            return self.times(k, ru)
        make: dict[str, Callable[[int], int]] = {
            "even": lambda i: 2 * i,
            "odd": lambda i: 2 * i - 1,
            "multiples": lambda i: k * i,
            "squares": lambda i: i * i,
            "cubes": lambda i: i**3,
            "powers": lambda i: 2**i,
        }
        n = min(n, 20) if kind in ("powers", "cubes") else n
        values = [make[kind](i) for i in range(1, n + 1)]
        bound = {"n": str(n), "what": names[kind][ru]}
        ask = self.spin(
            "{Напиши|Перечисли|Выведи|Назови} {первые |}<n> <what>{.|}"
            if ru
            else "{List|Write|Print|Show|Give me|Write down} the first <n> <what>{.||, one per line.}",
            bound,
        )
        if kind in ("squares", "cubes") and rng.random() < 0.5:
            power = 2 if kind == "squares" else 3
            answer = "\n".join(f"{i}^{power} = {v}" for i, v in enumerate(values, 1))
            return ask, answer, str(n)
        return ask, "\n".join(map(str, values)), str(n)

    def times(self, k: int, ru: bool) -> Answer:
        ask = self.spin(
            "{Напиши|Покажи|Выведи|Составь} таблицу умножения {на|для} <k>{.|}"
            if ru
            else "{Write|Show|Give me|Print|Make} {the|a} {multiplication|times} table {of|for} <k>{.|}",
            {"k": str(k)},
        )
        sign = self.rng.choice(("x", "×", "*"))
        lines = [
            f"{k} {sign} {i} = {k * i}" for i in range(1, self.rng.choice((11, 11, 13, 16, 21)))
        ]
        return ask, "\n".join(lines), str(k)

    # --- JSON and its relatives -----------------------------------------------------------------

    def record(self, schema: str, ru: bool, keys: list[str] | None = None) -> dict[str, Any]:
        """One object of a schema, its values from the word lists."""
        fields = words.SCHEMAS[schema]
        chosen = keys if keys is not None else list(fields)
        return {key: words.value(self.rng, self.spin, fields.get(key, key), ru) for key in chosen}

    def schema(self) -> tuple[str, list[str]]:
        name = self.rng.choice(list(words.SCHEMAS))
        keys = list(words.SCHEMAS[name])
        if self.rng.random() < 0.6:
            count = self.rng.randint(3, len(keys))
            keys = sorted(self.rng.sample(keys, min(count, len(keys))), key=keys.index)
        return name, keys

    def topic(self, schema: str, ru: bool) -> str:
        """How the prompt calls the thing; a third of the time a word outside the schemas."""
        if schema == "thing":
            return self.spin("<ru_object>" if ru else "<object>")
        return words.TITLES_RU[schema] if ru else schema.replace("_", " ")

    def json(self) -> Answer:
        rng = self.rng
        ru = rng.random() < 0.35
        name, keys = self.schema() if rng.random() < 0.72 else ("thing", [])
        keys = keys or sorted(
            rng.sample(list(words.SCHEMAS["thing"]), rng.randint(4, 7)),
            key=list(words.SCHEMAS["thing"]).index,
        )
        topic = self.topic(name, ru)
        many = rng.random() < 0.4
        count = rng.choice((2, 3, 3, 4, 5)) if many else 1
        rows = [self.record(name, ru, keys) for _ in range(count)]
        if rng.random() < 0.5:
            for i, row in enumerate(rows, 1):
                if "id" in row:
                    row["id"] = i
        ask = self.ask_json(topic, keys, count, ru)
        value: Any = rows if many else rows[0]
        if many and rng.random() < 0.25:
            value = {topic_key(name) + "s": rows}
        if not many and rng.random() < 0.15:
            value = {topic_key(name): rows[0]}
        return ask, dump(value, rng), "JSON: " + ", ".join(keys)

    def ask_json(self, topic: str, keys: list[str], count: int, ru: bool) -> str:
        bound = {"t": topic, "n": str(count)}
        if ru:
            head = (
                "{Напиши|Создай|Сделай|Дай|Верни|Сгенерируй|Составь|Покажи} {JSON|JSON-объект|объект JSON|пример JSON} "
                "{для|, описывающий|с описанием|про|с данными:} <t>"
                if count == 1
                else "{Напиши|Создай|Дай|Верни|Сгенерируй|Составь} {JSON-массив|массив JSON|JSON со списком|JSON} {из|:} <n> {объектов|записей|элементов}: <t>"
            )
            ask = self.spin(head, bound).replace(" ,", ",")
            if self.rng.random() < 0.45:
                ask += self.spin(" с {полями|ключами} ") + spell_ru(keys)
            return ask + self.spin("{.||. Только JSON.|, пожалуйста.}")
        head = (
            "<verb> {a|one|a|an example} {JSON|JSON object|JSON document|json object|json} {describing|for|about|representing|that describes|of|with data about} {a|one|some} <t>"
            if count == 1
            else "<verb> {a JSON array|a JSON list|an array in JSON|JSON|a json array} {of|with|containing} <n> {<t>s|<t> objects|objects, each a <t>|<t> records|items about <t>}"
        )
        ask = self.spin(head, bound)
        if self.rng.random() < 0.45:
            ask += self.spin(
                "{ with the fields | with | with keys | including | that has |. Fields: | with fields }"
            )
            ask += spell(self.rng, keys)
        return ask + self.spin(
            "{.||. Return only JSON.|. JSON only.|, please.|. Only output the JSON.}"
        )

    def extract(self) -> Answer:
        rng = self.rng
        ru = rng.random() < 0.35
        person = {
            "name": self.spin("<ru_first>" if ru else "<first>"),
            "age": rng.randint(18, 80),
            "city": self.spin("<ru_city>" if ru else "<city>"),
            "job": self.spin("<ru_job>" if ru else "<job>"),
        }
        text = (
            f"{person['name']}, {person['age']} лет, {person['job']}, город {person['city']}."
            if ru
            else rng.choice(
                (
                    f"{person['name']} is {person['age']} years old, lives in {person['city']} and works as a {person['job']}.",
                    f"My name is {person['name']}. I am a {person['job']} from {person['city']}, aged {person['age']}.",
                    f"{person['job'].capitalize()} {person['name']} ({person['age']}) moved to {person['city']}.",
                )
            )
        )
        keys = sorted(rng.sample(list(person), rng.randint(2, 4)), key=list(person).index)
        ask = self.spin(
            "{Извлеки|Достань|Выдели} {данные|поля} в {JSON|виде JSON} ("
            if ru
            else "{Extract|Pull out|Get|Parse} {the data|the fields|the information|the person} {as|into|to|in} JSON ("
        )
        ask += ", ".join(keys) + self.spin("): ") + text
        return ask, dump({k: person[k] for k in keys}, rng), "JSON: " + ", ".join(keys)

    def yaml(self) -> Answer:
        ru = self.rng.random() < 0.25
        name, keys = self.schema()
        row = self.record(name, ru, keys)
        kind = self.rng.choice(("YAML", "YAML", "TOML", "XML", "INI"))
        topic = self.topic(name, ru)
        ask = self.spin(
            "{Напиши|Создай|Дай} {пример |}<k> {для|про}: <t>{.|}"
            if ru
            else "<verb> {a|an example|a short} <k> {file|document|config|snippet} {for|about|describing} {a|the} <t>{.|}",
            {"k": kind, "t": topic},
        )
        writers = {"YAML": to_yaml, "TOML": to_toml, "XML": to_xml, "INI": to_toml}
        body = writers[kind](topic_key(name), row)
        return ask, f"```{kind.lower()}\n{body}\n```", kind

    def csv(self) -> Answer:
        ru = self.rng.random() < 0.25
        name, keys = self.schema()
        keys = [k for k in keys if not isinstance(words.SCHEMAS[name][k], list)][:5]
        rows = [self.record(name, ru, keys) for _ in range(self.rng.randint(3, 8))]
        for i, row in enumerate(rows, 1):
            if "id" in row:
                row["id"] = i
        ask = self.spin(
            "{Напиши|Создай|Сгенерируй|Дай} CSV {с данными|с <n> строками}: <t>{.|}"
            if ru
            else "<verb> {CSV|a CSV file|CSV data|a CSV} {with|of} {<n> rows|<n> lines|data} {about|for|of} {<t>s|<t>}{.|}",
            {"n": str(len(rows)), "t": self.topic(name, ru)},
        )
        lines = [",".join(keys)] + [",".join(plain(v) for v in r.values()) for r in rows]
        return ask, "\n".join(lines), "CSV: " + ", ".join(keys)

    # --- lists and tables -----------------------------------------------------------------------

    def listing(self) -> Answer:
        rng = self.rng
        ru = rng.random() < 0.4
        kind = rng.choice(list(words.LISTS_RU if ru else words.LISTS))
        values = (words.LISTS_RU if ru else words.LISTS)[kind].split("|")
        n = min(rng.choice((3, 5, 5, 6, 7, 8, 10, 10, 12, 15, 20)), len(values))
        ask = self.spin(
            "{Назови|Перечисли|Напиши|Дай|Составь} {<n>|список из <n>} <k>{.||, списком.| с номерами.}"
            if ru
            else "{List|Name|Give me|Write|Write a list of|Give a list of|Make a list of|I need|Show me} <n> {<k>|different <k>|popular <k>|common <k>}{.|| as a list.| in a numbered list.| as bullet points.}",
            {"n": str(n), "k": kind},
        )
        # Half the time in the usual order, as a model that learned from people would.
        chosen = values[:n] if rng.random() < 0.6 else rng.sample(values, n)
        bullets = "bullet" in ask or "списком" in ask or rng.random() < 0.3
        numbered = "номер" in ask or "numbered" in ask or not bullets
        lines = [f"{i}. {v}" if numbered else f"- {v}" for i, v in enumerate(chosen, 1)]
        return ask, "\n".join(lines), f"{n}: {kind}"

    def sequence(self) -> Answer:
        """Lists everybody knows in order."""
        ru = self.rng.random() < 0.4
        name = self.rng.choice(list(words.ORDERED_RU if ru else words.ORDERED))
        values = (words.ORDERED_RU if ru else words.ORDERED)[name].split("|")
        ask = self.spin(
            "{Перечисли|Назови|Напиши|Какие есть} <k>{.|}"
            if ru
            else "{List|Name|Write|Give me|What are} {all |}the <k>{.|| in order.}",
            {"k": name},
        )
        numbered = self.rng.random() < 0.6
        lines = [f"{i}. {v}" if numbered else f"- {v}" for i, v in enumerate(values, 1)]
        return ask, "\n".join(lines), name

    def howto(self) -> Answer:
        ru = self.rng.random() < 0.35
        goal = self.spin("<ru_goal>" if ru else "<goal>")
        ask = self.spin(
            "{Как|Напиши инструкцию, как|Дай план, как|Шаги:} <g>{?|.|}"
            if ru
            else "{How do I|How to|Give me steps to|Write instructions to|List the steps to|Give me a plan to|What are the steps to} <g>{?|.|}",
            {"g": goal},
        )
        rule = "<ru_step>" if ru else "<step>"
        seen = list(dict.fromkeys(self.spin(rule) for _ in range(self.rng.randint(5, 10))))
        return ask, "\n".join(f"{i}. {s}" for i, s in enumerate(seen, 1)), goal

    def table(self) -> Answer:
        rng = self.rng
        ru = rng.random() < 0.35
        name, keys = self.schema()
        keys = [k for k in keys if not isinstance(words.SCHEMAS[name][k], list)][:5]
        rows = [self.record(name, ru, keys) for _ in range(rng.choice((3, 4, 5, 5, 6, 8)))]
        for i, row in enumerate(rows, 1):
            if "id" in row:
                row["id"] = i
        heads = [words.HEADS_RU.get(k, k) for k in keys] if ru else [k.capitalize() for k in keys]
        bound = {"n": str(len(rows)), "t": self.topic(name, ru)}
        ask = self.spin(
            "{Составь|Сделай|Напиши|Создай|Дай|Покажи} {таблицу|таблицу markdown|маркдаун-таблицу} {из <n> строк|с <n> строками|}: <t>"
            if ru
            else "<verb> {a table|a markdown table|a Markdown table|a small table} {of|with|listing|comparing|for} {<n> |}{<t>s|<t>}",
            bound,
        )
        if rng.random() < 0.5:
            joined = spell_ru(heads) if ru else spell(rng, [h.lower() for h in heads])
            ask += (
                self.spin(" {со столбцами|с колонками} " if ru else " with {columns|the columns} ")
                + joined
            )
        lines = ["| " + " | ".join(heads) + " |", "|" + "|".join([" --- "] * len(heads)) + "|"]
        lines += ["| " + " | ".join(plain(v) for v in r.values()) + " |" for r in rows]
        return ask + self.spin("{.|}"), "\n".join(lines), "| " + " | ".join(heads) + " |"


def topic_key(name: str) -> str:
    return "item" if name == "thing" else name


def plain(v: Any) -> str:
    """A value inside a table or CSV."""
    return (
        {True: "yes", False: "no", None: "-"}.get(v, str(v))
        if isinstance(v, bool | None)
        else str(v)
    )


def dump(value: Any, rng: random.Random) -> str:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return f"```json\n{text}\n```" if rng.random() < 0.12 else text


def to_yaml(name: str, row: dict[str, Any]) -> str:
    lines = [f"{name}:"]
    for key, v in row.items():
        if isinstance(v, list):
            lines += [f"  {key}:"] + [f"    - {x}" for x in v]
        elif isinstance(v, dict):
            lines += [f"  {key}:"] + [f"    {k}: {plain(x)}" for k, x in v.items()]
        else:
            lines.append(
                f"  {key}: {json.dumps(v, ensure_ascii=False) if not isinstance(v, str) else v}"
            )
    return "\n".join(lines)


def to_toml(name: str, row: dict[str, Any]) -> str:
    flat = {k: v for k, v in row.items() if not isinstance(v, dict)}
    body = [f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in flat.items()]
    return "\n".join([f"[{name}]", *body])


def to_xml(name: str, row: dict[str, Any]) -> str:
    lines = [f"<{name}>"]
    for key, v in row.items():
        items = v if isinstance(v, list) else [v]
        lines += [f"  <{key}>{plain(x)}</{key}>" for x in items if not isinstance(x, dict)]
    return "\n".join([*lines, f"</{name}>"])
