from dataclasses import asdict

from classifier.features import extract

BODY = {"model": "m", "messages": [{"role": "user", "content": "Count to ten"}], "max_tokens": 9}


def test_equal_bodies_give_equal_features():
    assert extract(BODY) == extract({**BODY})


def test_lengths_and_limits_are_of_the_whole_body():
    features = extract(BODY)
    assert (features.prompt_chars, features.n_messages, features.max_tokens) == (12, 1, 9)
    assert not features.has_images | features.has_tools | features.has_grammar


def test_sampling_and_model_fields_change_nothing():
    assert asdict(extract({**BODY, "model": "x", "temperature": 2, "stream": True})) == asdict(
        extract(BODY)
    )
