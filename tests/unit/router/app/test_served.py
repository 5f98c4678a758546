"""The predictor that is swapped while it serves."""

from __future__ import annotations

from classifier import RuleClassifier, extract, load
from router.app.served import Served

FEATURES = extract({"messages": [{"role": "user", "content": "Write a poem."}]})


def test_serves_the_shipped_model_until_another_is_given():
    served = Served(load())
    shipped = served.predict(FEATURES).model_version
    assert served.version == shipped == served.shipped.version
    served.swap(RuleClassifier())
    assert served.predict(FEATURES).model_version == served.version == "rules-1"
    assert served.explain(FEATURES)
    served.swap(None)
    assert served.predict(FEATURES).model_version == shipped
