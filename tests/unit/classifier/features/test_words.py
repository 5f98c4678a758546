import pytest

from classifier.features.words import MEMO_SIZE, entries, spaceless


@pytest.mark.parametrize(
    ("word", "concept"),
    [
        ("function", "CODE"),
        ("функцию", "CODE"),
        ("переведи", "TRANSLATE"),
        ("tabla", "TABLE"),
        ("42", "NUM"),
        ("ёлка", ""),
        ("ещё", "NOW"),
    ],
)
def test_concepts_in_several_languages(word, concept):
    assert entries(word)[0][1] == concept


def test_stems_are_five_letters_and_scripts_are_told_apart():
    assert [entry[0] for entry in entries("Summarising документы")] == ["summa", "докум"]
    assert "".join(entry[2] for entry in entries("word слово 12 文字")) == "lcnz"


def test_plus_plus_and_sharp_are_words():
    assert [entry[1] for entry in entries("C++ or C#")] == ["TECH", "", "TECH"]


def test_scripts_without_spaces_give_concepts_in_order_and_pairs():
    concepts, pairs = spaceless("请把这段代码翻译成Java")
    assert concepts.index("CODE") < concepts.index("TRANSLATE")
    assert "代码" in pairs


def test_the_memo_stays_bounded_and_changes_nothing():
    before = entries("function")
    for start in range(0, MEMO_SIZE + 2000, 500):
        entries(" ".join(f"w{number}" for number in range(start, start + 500)))
    from classifier.features import words

    assert len(words._MEMO) <= MEMO_SIZE
    assert entries("function") == before


def test_a_word_of_any_length_is_one_entry():
    assert len(entries("a" * 100_000)) == 1
