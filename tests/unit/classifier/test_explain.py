from classifier.explain import explain, to_json, to_text
from classifier.rules import RuleClassifier

BODY = {"messages": [{"role": "user", "content": "Translate this into French"}]}


def test_answers_and_says_why():
    account = to_json(explain(BODY, RuleClassifier()), top=1)
    assert (account["class"], account["kind"]) == ("prose", "translation")
    assert [item["name"] for item in account["contributions"]] == ["lead:TRANSLATE"]
    assert sum(account["probabilities"].values()) > 0.999


def test_the_default_thinking_is_the_workers():
    text = to_text(explain(BODY, RuleClassifier(), default_thinking=True), top=3)
    assert text.startswith("reasoning")
    assert "thinking on" in text
