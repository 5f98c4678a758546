from classifier.features import extract


def names(text):
    return extract({"messages": [{"role": "user", "content": text}]}).names


def test_the_lead_governs_its_object():
    assert {"lead:WRITE", "WRITE*CODE"} <= names("Please write a function")
    assert {"lead:EXPLAIN", "EXPLAIN*CODE"} <= names("Объясни этот код")


def test_languages_share_concepts():
    shared = {"lead:TRANSLATE", "c:LANG"}
    assert shared <= names("Translate into English") & names("Переведи на английский")


def test_what_is_ruled_out_and_insisted_on():
    assert "no:CODE" in names("Explain closures without any code")
    assert "no:CODE" in names("Объясни без кода")
    assert "only:JSON" in names("only the json please")
    assert "only:CODE" in names("код, только код")


def test_neighbours_make_pairs():
    assert "STEP>STEP" in names("Think step by step")
    assert "STEP>STEP" in names("think step-by-step")


def test_the_edges_of_a_document_are_the_instruction():
    document = "Translate the following:\n" + "def f():\n    return table\n" * 60
    assert "lead:TRANSLATE" in names(document)
    assert "c:CODEV" not in names(document)


def test_the_ends_of_a_turn_are_named():
    assert {"^:how", "^:how many", "$:spain"} <= names("How many people live in Spain?")
    assert {"^:写一", "$:函数"} <= names("写一个函数。")
    assert not [name for name in names("") if name.startswith(("^:", "$:"))]
