"""Word problems with a short chain of thought, in English and Russian."""
# ruff: noqa: E501 - word lists and templates read better unbroken.

from __future__ import annotations

from typing import TYPE_CHECKING

from corpus import words
from corpus.spin import Spinner

if TYPE_CHECKING:
    import random

ITEMS = "apples|oranges|books|pens|coins|cards|eggs|stamps|candies|balls|flowers|cookies|tickets|marbles|pencils|shells|toys|stickers"
ITEMS_RU = (
    "яблок|книг|ручек|монет|карточек|яиц|конфет|мячей|цветов|билетов|тетрадей|марок|груш|орехов"
)


class Reason:
    """Every method returns (prompt, thought, answer)."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.spin = rng, Spinner(words.RULES, rng)

    def names(self, ru: bool) -> tuple[str, str]:
        pool = words.RULES["ru_first" if ru else "first"]
        a, b = self.rng.sample(str(pool).split("|"), 2)
        return a, b

    def gain(self) -> tuple[str, str, str]:
        """Start with some, get and lose some."""
        rng = self.rng
        ru = rng.random() < 0.4
        (a, b), item = self.names(ru), rng.choice((ITEMS_RU if ru else ITEMS).split("|"))
        n, parts, steps = rng.randint(2, 40), [], []
        total = n
        for _ in range(rng.randint(1, 3)):
            k = rng.randint(1, 20)
            up = rng.random() < 0.5 or k > total
            new = total + k if up else total - k
            if ru:
                parts.append(
                    rng.choice(
                        (f"получает ещё {k}", f"покупает ещё {k}", f"находит {k}")
                        if up
                        else (f"отдаёт {k}", f"теряет {k}", f"дарит {k}")
                    )
                )
            else:
                parts.append(
                    rng.choice(
                        (f"buys {k} more", f"gets {k} more", f"finds {k}", f"receives {k} from {b}")
                        if up
                        else (
                            f"gives {k} to {b}",
                            f"loses {k}",
                            f"eats {k}"
                            if item in ("apples", "oranges", "eggs", "cookies", "candies")
                            else f"sells {k}",
                        )
                    )
                )
            steps.append(f"{total} {'+' if up else '-'} {k} = {new}")
            total = new
        if ru:
            ask = (
                f"У {genitive(a)} {n} {item}. {a} {', потом '.join(parts)}. Сколько {item} теперь?"
            )
            return (
                ask,
                self.think_ru(f"Сначала было {n}.", steps, total),
                self.answer(steps, f"{total} {item}", ru),
            )
        joined = parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and then " + parts[-1]
        ask = f"{a} has {n} {item}. {a} {joined}. " + rng.choice(
            (
                f"How many {item} does {a} have now?",
                f"How many {item} are left?",
                f"How many {item} does {a} have in the end?",
            )
        )
        return (
            ask,
            self.think(f"{a} starts with {n}.", steps, total),
            self.answer(steps, f"{total} {item}", ru),
        )

    def groups(self) -> tuple[str, str, str]:
        """Multiplication and division."""
        rng = self.rng
        ru = rng.random() < 0.4
        item = rng.choice((ITEMS_RU if ru else ITEMS).split("|"))
        k, m = rng.randint(2, 12), rng.randint(2, 12)
        a = self.names(ru)[0]
        if rng.random() < 0.5:
            step = [f"{k} * {m} = {k * m}"]
            ask = (
                f"В каждой коробке {m} {item}. Сколько {item} в {k} коробках?"
                if ru
                else rng.choice(
                    (
                        f"There are {k} boxes with {m} {item} in each. How many {item} are there in total?",
                        f"{a} buys {k} packs of {m} {item}. How many {item} is that?",
                        f"One box holds {m} {item}. How many {item} fit in {k} boxes?",
                    )
                )
            )
            total = k * m
        else:
            step = [f"{k * m} / {k} = {m}"]
            ask = (
                f"{k * m} {item} разделили поровну на {k} человек. Сколько получил каждый?"
                if ru
                else rng.choice(
                    (
                        f"{k * m} {item} are shared equally among {k} children. How many does each get?",
                        f"{a} puts {k * m} {item} into {k} equal bags. How many are in each bag?",
                    )
                )
            )
            total = m
        think = (
            self.think_ru("Нужно одно действие.", step, total)
            if ru
            else self.think("One operation is enough.", step, total)
        )
        return ask, think, self.answer(step, f"{total} {item}", ru)

    def speed(self) -> tuple[str, str, str]:
        rng = self.rng
        ru = rng.random() < 0.4
        v, t = rng.choice((4, 5, 10, 12, 15, 20, 30, 40, 50, 60, 70, 80, 90)), rng.randint(2, 9)
        d = v * t
        kind = rng.randint(0, 2)
        thing = self.spin(
            "{поезд|автомобиль|автобус|катер}" if ru else "{train|car|bus|boat|truck|bike}"
        )
        if kind == 0:
            step, unit = f"{v} * {t} = {d}", "км" if ru else "km"
            ask = (
                f"{thing.capitalize()} едет {t} ч со скоростью {v} км/ч. Какой путь он проедет?"
                if ru
                else f"A {thing} travels at {v} km/h for {t} hours. How far does it go?"
            )
            total = d
        elif kind == 1:
            step, unit, total = f"{d} / {v} = {t}", "ч" if ru else "hours", t
            ask = (
                f"Сколько часов нужно, чтобы проехать {d} км со скоростью {v} км/ч?"
                if ru
                else f"How long does a {thing} need for {d} km at {v} km/h?"
            )
        else:
            step, unit, total = f"{d} / {t} = {v}", "км/ч" if ru else "km/h", v
            ask = (
                f"{thing.capitalize()} проехал {d} км за {t} ч. Какая у него скорость?"
                if ru
                else f"A {thing} covers {d} km in {t} hours. What is its speed?"
            )
        rule = (
            "Путь равен скорости, умноженной на время." if ru else "Distance is speed times time."
        )
        think = self.think_ru(rule, [step], total) if ru else self.think(rule, [step], total)
        return ask, think, self.answer([step], f"{total} {unit}", ru)

    def price(self) -> tuple[str, str, str]:
        rng = self.rng
        ru = rng.random() < 0.4
        k, m, p, q = (rng.randint(2, 9) for _ in range(4))
        x, y = rng.sample((ITEMS_RU if ru else ITEMS).split("|"), 2)
        total = k * p + m * q
        steps = [f"{k} * {p} = {k * p}", f"{m} * {q} = {m * q}", f"{k * p} + {m * q} = {total}"]
        if ru:
            ask = f"Куплено {k} {x} по {p} рублей и {m} {y} по {q} рублей. Сколько всего заплатили?"
            return (
                ask,
                self.think_ru("Считаю каждую покупку.", steps, total),
                self.answer(steps, f"{total} рублей", ru),
            )
        a = self.names(ru)[0]
        ask = f"{a} buys {k} {x} for ${p} each and {m} {y} for ${q} each. How much does {a} pay{rng.choice((' in total', '', ' altogether'))}?"
        return (
            ask,
            self.think("Price of each kind, then the sum.", steps, total),
            self.answer(steps, f"${total}", ru),
        )

    def compare(self) -> tuple[str, str, str]:
        """Ordering three people."""
        rng = self.rng
        ru = rng.random() < 0.35
        pool = str(words.RULES["ru_first" if ru else "first"]).split("|")
        a, b, c = rng.sample(pool, 3)
        if ru:
            ask = f"{a} выше, чем {b}. {b} выше, чем {c}. Кто самый {rng.choice(('высокий', 'низкий'))}?"
            low = "низкий" in ask
            who = c if low else a
            think = f"{a} > {b}. {b} > {c}. Порядок: {a}, {b}, {c}. Нужен самый {'низкий' if low else 'высокий'}: {who}."
            return ask, think, f"Порядок: {a} > {b} > {c}.\n\nОтвет: {who}"
        rel, top, bottom = rng.choice(
            (
                ("taller", "tallest", "shortest"),
                ("older", "oldest", "youngest"),
                ("faster", "fastest", "slowest"),
                ("richer", "richest", "poorest"),
                ("stronger", "strongest", "weakest"),
            )
        )
        want = rng.choice((top, bottom))
        who = a if want == top else c
        facts = [f"{a} is {rel} than {b}.", f"{b} is {rel} than {c}."]
        rng.shuffle(facts)
        ask = " ".join(facts) + f" Who is the {want}?"
        think = f"{a} > {b}. {b} > {c}. So the order is {a}, {b}, {c}. The {want} is {who}."
        return ask, think, f"Order: {a} > {b} > {c}.\n\nAnswer: {who}"

    def arithmetic(self) -> tuple[str, str, str]:
        rng = self.rng
        ru = rng.random() < 0.35
        a, b = rng.randint(2, 99), rng.randint(2, 99)
        op = rng.choice("++-*")
        if op == "*":
            a, b = rng.randint(2, 20), rng.randint(2, 12)
        c = rng.randint(1, 30)
        first = {"+": a + b, "-": a - b, "*": a * b}[op]
        steps = [f"{a} {op} {b} = {first}"]
        expr, total = f"{a} {op} {b}", first
        if rng.random() < 0.5:
            expr, total = f"{expr} + {c}", first + c
            steps.append(f"{first} + {c} = {total}")
        ask = (
            self.spin(
                "{Сколько будет|Вычисли|Посчитай|Чему равно} "
                if ru
                else "{What is|Calculate|Compute|Solve|How much is} "
            )
            + expr
            + "?"
        )
        think = (
            self.think_ru("Считаю по порядку.", steps, total)
            if ru
            else self.think("I go step by step.", steps, total)
        )
        return ask, think, self.answer(steps, str(total), ru)

    def equation(self) -> tuple[str, str, str]:
        rng = self.rng
        ru = rng.random() < 0.35
        k, x, c = rng.randint(2, 9), rng.randint(1, 20), rng.randint(1, 30)
        right = k * x + c
        ask = (
            self.spin(
                "{Реши уравнение|Найди x}: "
                if ru
                else "{Solve|Solve for x|Find x|Solve the equation}: "
            )
            + f"{k}x + {c} = {right}"
        )
        steps = [f"{k}x = {right} - {c} = {right - c}", f"x = {right - c} / {k} = {x}"]
        think = (
            self.think_ru("Переношу число вправо.", steps, x)
            if ru
            else self.think("Move the number to the right.", steps, x)
        )
        return ask, think, self.answer(steps, f"x = {x}", ru)

    def think(self, start: str, steps: list[str], total: int) -> str:
        lead = self.spin(
            "{Let me think.|I need to find the result.|Let me work it out.|Let me see what is given.|The question asks for a number.}"
        )
        body = "\n".join(f"Step {i}: {s}." for i, s in enumerate(steps, 1))
        check = self.spin("{So the answer is|The result is|That gives}") + f" {total}."
        return f"{lead} {start}\n{body}\n{check}"

    def think_ru(self, start: str, steps: list[str], total: int) -> str:
        lead = self.spin("{Нужно найти число.|Разберу по шагам.|Подумаю.|Посмотрю, что дано.}")
        body = "\n".join(f"Шаг {i}: {s}." for i, s in enumerate(steps, 1))
        return f"{lead} {start}\n{body}\n" + self.spin("{Значит, ответ|Получается}") + f" {total}."

    def answer(self, steps: list[str], total: str, ru: bool) -> str:
        lines = [f"{i}. {s}" for i, s in enumerate(steps, 1)]
        return "\n".join(lines) + ("\n\nОтвет: " if ru else "\n\nAnswer: ") + total

    def any(self) -> tuple[str, str, str]:
        """A random kind of problem, sometimes with a wish for steps."""
        kinds = (
            self.gain,
            self.groups,
            self.speed,
            self.price,
            self.compare,
            self.arithmetic,
            self.equation,
        )
        ask, think, answer = self.rng.choices(kinds, (28, 14, 12, 12, 10, 14, 10))[0]()
        if self.rng.random() < 0.2:
            ru = "Ответ" in answer
            ask += self.spin(
                " {Объясни по шагам.|Думай по шагам.|Реши по шагам.}"
                if ru
                else " {Think step by step.|Explain your steps.|Show your work.|Solve it step by step.}"
            )
        return ask, think, answer


def genitive(name: str) -> str:
    """A first name after «у»."""
    if name.endswith("а"):
        return name[:-1] + "ы" if name[-2] not in "гкх" else name[:-1] + "и"
    if name.endswith("я"):
        return name[:-1] + "и"
    if name in ("Пётр", "Павел"):
        return {"Пётр": "Петра", "Павел": "Павла"}[name]
    return name[:-1] + "я" if name[-1] in "йь" else name + "а"
