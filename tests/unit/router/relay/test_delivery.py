"""What is sent to which kind of worker, and what will come back."""

from __future__ import annotations

import orjson
import pytest

from router.core import Endpoint
from router.relay.delivery import Delivery, prepare
from tests.fakes.gateway import decision, record, request

OURS = record()
FOREIGN = record(engine="external")


def test_a_stream_for_llama_server_is_the_clients_own_body():
    ask = request(stream=True)
    assert prepare(ask, OURS, decision()) == (Delivery.STREAM, ask.body)


def test_a_plain_request_is_streamed_upstream():
    delivery, body = prepare(request(), OURS, None)
    assert delivery is Delivery.ASSEMBLED
    assert orjson.loads(body)["stream"] is True


@pytest.mark.parametrize("payload", [{"n": 2}, {"n": 3, "stream": False}])
def test_several_choices_are_not(payload):
    ask = request(payload=payload)
    assert prepare(ask, OURS, None) == (Delivery.WHOLE, ask.body)


def test_several_streamed_choices_are_looked_after():
    ask = request(stream=True, payload={"n": 2})
    assert prepare(ask, OURS, None) == (Delivery.CHOICES, ask.body)
    assert prepare(request(stream=True, payload={"n": 1}), OURS, None)[0] is Delivery.STREAM


@pytest.mark.parametrize(
    "endpoint", [Endpoint.MESSAGES, Endpoint.RESPONSES, Endpoint.EMBEDDINGS, Endpoint.INFILL]
)
def test_other_surfaces_are_sent_as_they_are(endpoint):
    for stream in (True, False):
        ask = request(stream=stream, endpoint=endpoint)
        delivery, body = prepare(ask, OURS, None)
        assert delivery is (Delivery.STREAM if stream else Delivery.WHOLE)
        assert body == ask.body


def test_another_engine_is_asked_for_usage_and_by_its_models_name():
    ask = request(stream=True, payload={"model": "alias", "stream_options": {"x": 1}})
    delivery, body = prepare(ask, FOREIGN, None)
    assert delivery is Delivery.STREAM_WITHOUT_USAGE
    sent = orjson.loads(body)
    assert sent["model"] == "tiny"
    assert sent["stream_options"] == {"x": 1, "include_usage": True}


def test_a_client_that_asked_for_usage_itself_gets_it():
    ask = request(stream=True, payload={"stream_options": {"include_usage": True}})
    assert prepare(ask, FOREIGN, None) == (Delivery.STREAM, ask.body)


def test_the_policys_overrides_are_worked_in():
    overrides = {"speculative.n_max": 3}
    ask = request(stream=True, payload={"future": [1]})
    _, body = prepare(ask, OURS, decision(overrides=overrides))
    assert orjson.loads(body) == ask.payload | overrides
    _, body = prepare(request(), OURS, decision(overrides=overrides))
    assert orjson.loads(body)["speculative.n_max"] == 3


@pytest.mark.parametrize("stream", [True, False])
def test_a_slot_may_be_named_except_where_tenants_share_the_workers(stream):
    ask = request(stream=stream, payload={"id_slot": 3})
    _, body = prepare(ask, OURS, None)
    assert orjson.loads(body)["id_slot"] == 3
    pin = {"id_slot": 1, "cache_prompt": True}
    _, body = prepare(ask, OURS, None, pin=pin)
    assert orjson.loads(body) | pin == orjson.loads(body)
    uncached = request(stream=stream, payload={"cache_prompt": False})
    _, body = prepare(uncached, OURS, None, pin=pin)
    assert orjson.loads(body)["cache_prompt"] is False
    _, body = prepare(ask, FOREIGN, None, pin=pin)
    assert orjson.loads(body)["id_slot"] == 3  # another server's word, if it has it at all
