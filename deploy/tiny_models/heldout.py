"""Prompts no training template produces word for word, by kind; what the model card measures."""

from __future__ import annotations

HELD_OUT: dict[str, tuple[str, ...]] = {
    "counting": (
        "Count from 1 to 60",
        "I need every whole number between 20 and 75, one under the other.",
        "Count up to 80 for me starting with 1",
        "Write the numbers from 100 to 150, each on its own line",
        "Посчитай, пожалуйста, от 1 до 50",
        "Выпиши по порядку числа от 30 до 70",
        "Show the first 25 square numbers",
        "Count in fives up to 200",
    ),
    "json": (
        "Write a JSON object describing a book",
        "Produce JSON for a small bakery with name, address, opening hours and three products.",
        "Return a JSON array with 4 users, each with id, name and email",
        "JSON for a chess tournament, please",
        "Give me an example of an API response in JSON that lists three orders",
        "Create a JSON config file for a web server",
        "Напиши JSON с описанием машины: марка, год, цвет, цена",
        "Сделай массив JSON из трёх городов с населением",
    ),
    "code": (
        "Write a Python function that checks if a number is prime",
        "Write a Python function that returns the second largest element of a list",
        "Implement a stack class in Python with push and pop",
        "Write a function in Python to merge two sorted lists",
        "Python code for binary search, please",
        "Write a Python function that counts how many times each letter occurs in a word",
        "Напиши на Python функцию, которая считает факториал",
        "Напиши функцию на Python для сортировки списка",
    ),
    "table": (
        "Make a Markdown table of 5 countries with their capital and population",
        "Compare three cars in a table: model, year, price",
        "Show a table of four planets with diameter and number of moons",
        "Сделай таблицу из 5 книг: название, автор, год",
        "Give me a table with columns name, age and city for 6 people",
    ),
    "list": (
        "List 10 animals that live in a forest",
        "Name the months of the year",
        "Give me a bulleted list of seven things to take on a hike",
        "How do I change a light bulb? Number the steps.",
        "Перечисли 10 овощей",
        "Назови все дни недели по порядку",
    ),
    "extraction": (
        "Extract name and age as JSON: Paula is 31 years old and lives in Rome.",
        "Pull name and city out of this as JSON: Victor, a nurse aged 52, moved to Oslo.",
        "Извлеки имя, возраст и город в JSON: Елена, 44 года, врач, город Томск.",
        "Write a CSV with 6 employees: id, name, salary",
        "Write a YAML file for a user with name, email and role",
    ),
    "reasoning": (
        "Tom has 3 apples and buys 9 more. He gives 4 to Anna. How many does he have?",
        "A train goes 60 km/h for 3 hours. How far does it travel?",
        "Solve for x: 4x + 7 = 31",
        "There are 6 boxes with 8 pens each. How many pens are there?",
        "Lucy is taller than Max. Max is taller than Eva. Who is the shortest?",
        "У Ивана 12 яблок, он отдал 5 и купил ещё 8. Сколько у него яблок?",
    ),
    "prose": (
        "Write a story about a fox",
        "Explain how a bridge works",
        "Tell me a fairy tale about a lonely lighthouse keeper",
        "What is friendship? Answer in a few sentences.",
        "Describe an old harbour on a rainy evening",
        "Write a letter to my grandmother about my summer",
        "Why do people need music?",
        "Explain in simple words how a volcano erupts",
    ),
    "prose_ru": (
        "Напиши рассказ о лисе",
        "Объясни, как работает мост",
        "Расскажи сказку про старого рыбака и море",
        "Почему людям нужна музыка?",
        "Напиши письмо другу о лете",
        "Опиши осенний лес",
    ),
}
PROSE = ("prose", "prose_ru")
# At temperature 0 these must average the length that the project asks of its drafters.
PREDICTABLE = ("counting", "json", "code")


def fifty() -> list[str]:
    """Fifty prompts over all kinds, for the equality of the modes."""
    columns = [list(v) for v in HELD_OUT.values()]
    mixed = [c[i] for i in range(max(map(len, columns))) for c in columns if i < len(c)]
    return mixed[:50]
