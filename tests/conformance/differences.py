"""Where gateway and raw llama-server differ on purpose, and why; docs/conformance.md shows it.

A check that is listed here must fail on the raw server (build b11549): when it passes, llama.cpp
has changed and the row goes.
"""

from __future__ import annotations

FORM = "llama-server's errors have an integer code and no `param`; OpenAI's clients expect a string"
RAW_FAILS: dict[str, str] = {
    "wrong_stream": FORM,
    "wrong_n_zero": FORM,
    "wrong_n_text": FORM,
    "wrong_max_tokens": FORM,
    "wrong_temperature": FORM,
    "wrong_messages": FORM,
    "wrong_message": FORM,
    "body_that_is_not_json": FORM,
    "body_that_is_empty": FORM,
    "body_that_is_no_object": FORM,
    "too_many_tokens": FORM,
    "unknown_path": FORM,
    "wrong_stop": "a `stop` that is no text is passed over",
    "wrong_options": "`stream_options` that is no object is passed over",
    "wrong_format": "`response_format` that is no object is passed over",
    "wrong_tools": "a wrong type of `tools` is a 500",
    "tools_must_be_a_list": "a wrong type of `tools` is a 500",
    "message_needs_messages": "a missing field is a 500 on /v1/messages",
    "empty_messages": "empty `messages` generate",
    "errors_are_the_sdks_own": "empty `messages` generate",
    "body_of_another_type": "any content type is read as JSON",
    "unknown_model": "any model's name is taken",
    "unknown_model_in_the_sdk": "any model's name is taken",
    "node_unknown_model": "any model's name is taken",
    "model_is_found": "GET /v1/models/{id} does not exist",
    "wrong_method": "a wrong method is a 404",
    "image_on_a_text_model_is_refused": "an image on a text model is a 500",
    "stream_begins_with_the_role_though_a_character_is_split": (
        "the event that would carry the role is left out when the first token is half a character"
    ),
    "stream_of_two_choices_counts_both": "each choice of a stream tells usage of its own",
    "http10_stream_is_not_chunked": "HTTP/1.0 clients are sent chunks that they cannot read",
    "connection_is_used_again_after_a_stream": (
        "the connection is closed after a stream although keep-alive was announced"
    ),
}
# Checks that pass on both, with answers that are not alike.
OTHERWISE: dict[str, str] = {}
