import pytest

from classifier.features import extract


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What is the weather like?", "en"),
        ("Какая сегодня погода?", "ru"),
        ("今天天气怎么样？", "zh"),
        ("今日の天気はどうですか", "other"),
        ("오늘 날씨 어때요", "other"),
        ("Яка сьогодні погода в Києві?", "other"),
        ("¿Qué tiempo hace hoy en la ciudad?", "other"),
        ("Wie ist das Wetter in der Stadt und im Wald?", "other"),
        ("Translate into Russian: the sea is calm", "ru"),
        ("Переведи на английский: море спокойно", "en"),
        ("Translate into Spanish: the sea is calm", "other"),
        ("Напиши функцию на Python, которая читает csv", "ru"),
        ("", "en"),
    ],
)
def test_language_of_the_answer(text, language):
    assert extract({"messages": [{"role": "user", "content": text}]}).language == language
