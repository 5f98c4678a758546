"""Clients that stand on OpenAI's surface: litellm, langchain-openai, and llm."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic

from tests.conformance.checks_formats import FORMAT, ONE_CALL
from tests.conformance.suite import check, raised
from tests.conformance.target import COUNTING, PATIENCE

if TYPE_CHECKING:
    from tests.conformance.target import Target

LITELLM, LANGCHAIN, LLM = "litellm", "langchain-openai", "llm"


def _litellm(t: Target) -> Any:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it fetches a list when imported
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm
    litellm.suppress_debug_info = True
    return litellm


def _completion(t: Target, text: str = COUNTING, **fields: Any) -> dict[str, Any]:
    body = t.sdk_body(text, **fields)
    model = f"openai/{body.pop('model')}"
    return {**body, "model": model, "api_base": t.v1, "api_key": t.api_key, "timeout": PATIENCE}


@check(LITELLM)
def litellm_completion(t: Target) -> Any:
    """litellm asks and is answered."""
    answer = _litellm(t).completion(**_completion(t))
    assert answer.usage.completion_tokens == 8
    return answer.choices[0].message.content


@check(LITELLM)
def litellm_stream(t: Target) -> Any:
    """It reads a stream."""
    chunks = _litellm(t).completion(**_completion(t, stream=True))
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


@check(LITELLM)
def litellm_stream_usage(t: Target) -> Any:
    """It finds the usage of a stream when it asks."""
    options = {"include_usage": True}
    chunks = list(_litellm(t).completion(**_completion(t, stream=True, stream_options=options)))
    usage = next(chunk.usage for chunk in reversed(chunks) if getattr(chunk, "usage", None))
    assert usage.completion_tokens == 8
    return usage.prompt_tokens


@check(LITELLM)
def litellm_async(t: Target) -> Any:
    """It works asynchronously."""
    answer = asyncio.run(_litellm(t).acompletion(**_completion(t)))
    return answer.choices[0].message.content


@check(LITELLM)
def litellm_schema(t: Target) -> Any:
    """It passes a JSON schema on."""
    answer = _litellm(t).completion(**_completion(t, max_tokens=60, response_format=FORMAT))
    assert set(json.loads(answer.choices[0].message.content)) == {"ok"}
    return answer.choices[0].message.content


@check(LITELLM)
def litellm_tool(t: Target) -> Any:
    """It finds a tool's call."""
    answer = _litellm(t).completion(**_completion(t, **ONE_CALL))
    call = answer.choices[0].message.tool_calls[0].function
    assert call.name == "weather"
    return json.loads(call.arguments)


@check(LITELLM, gateway_only=True)
def litellm_unknown_model(t: Target) -> None:
    """A refusal is its NotFoundError."""
    litellm = _litellm(t)
    error = raised(
        litellm.NotFoundError, lambda: litellm.completion(**_completion(t, model="nobody"))
    )
    assert "nobody" in str(error)


@check(LITELLM)
def litellm_text_completion(t: Target) -> Any:
    """It continues a text."""
    answer = _litellm(t).text_completion(
        model=f"text-completion-openai/{t.exact}",
        prompt="Once upon a time",
        max_tokens=6,
        temperature=0,
        api_base=t.v1,
        api_key=t.api_key,
    )
    return answer.choices[0].text


def _langchain(t: Target, **fields: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from langchain_openai import ChatOpenAI

    fixed = {"max_tokens": 8, "temperature": 0, "extra_body": {"cache_prompt": False}}
    return ChatOpenAI(
        model=t.exact,
        base_url=t.v1,
        api_key=t.api_key,
        max_retries=0,
        timeout=PATIENCE,
        http_client=t.plain_client(),
        **{**fixed, **fields},
    )


class Colour(pydantic.BaseModel):
    """A colour."""

    ok: bool


@check(LANGCHAIN)
def langchain_invoke(t: Target) -> Any:
    """ChatOpenAI asks and is answered."""
    answer = _langchain(t).invoke(COUNTING)
    assert answer.usage_metadata["output_tokens"] == 8
    return answer.content


@check(LANGCHAIN)
def langchain_stream(t: Target) -> Any:
    """It reads a stream, with the usage at its end."""
    chunks = list(_langchain(t, stream_usage=True).stream(COUNTING))
    assert sum((c.usage_metadata or {}).get("output_tokens", 0) for c in chunks) == 8
    return "".join(chunk.content for chunk in chunks)


@check(LANGCHAIN)
def langchain_batch(t: Target) -> Any:
    """It asks several questions at once."""
    return [answer.content for answer in _langchain(t).batch([COUNTING, COUNTING])]


@check(LANGCHAIN)
def langchain_structured(t: Target) -> Any:
    """`with_structured_output` makes objects of answers."""
    model = _langchain(t, max_tokens=60).with_structured_output(Colour, method="json_schema")
    return model.invoke(COUNTING).ok


@check(LANGCHAIN)
def langchain_tool(t: Target) -> Any:
    """`bind_tools` finds the call."""
    extra = {"cache_prompt": False, **ONE_CALL["extra_body"]}
    model = _langchain(t, max_tokens=90, stop=["</"], extra_body=extra)
    bound = model.bind_tools(ONE_CALL["tools"], tool_choice="required")
    call = bound.invoke(ONE_CALL["text"]).tool_calls[0]
    assert call["name"] == "weather"
    return call["args"]


@check(LANGCHAIN)
def langchain_logprobs(t: Target) -> Any:
    """Logprobs are in the answer's metadata."""
    answer = _langchain(t, logprobs=True).invoke(COUNTING)
    return [row["token"] for row in answer.response_metadata["logprobs"]["content"]]


@check(LANGCHAIN)
def langchain_messages(t: Target) -> Any:
    """System and earlier messages are passed on."""
    turns = [("system", "Be brief."), ("human", "Hello"), ("ai", "Hello."), ("human", COUNTING)]
    return _langchain(t).invoke(turns).content


def _llm_folder(t: Target) -> Path:
    """The folder that tells llm of the server as one of its models."""
    if "llm" not in t.memo:
        holder = tempfile.TemporaryDirectory(prefix="conformance-")
        t.on_close(holder.cleanup)
        row = {"model_id": "here", "model_name": t.exact, "api_base": t.v1}
        row |= {"supports_schema": True, "api_key_name": "here"}
        folder = t.memo["llm"] = Path(holder.name)
        # JSON is YAML.
        (folder / "extra-openai-models.yaml").write_text(json.dumps([row]))
    return t.memo["llm"]


def _llm(t: Target, **fields: Any) -> str:
    """What llm's Python API is answered."""
    os.environ["LLM_USER_PATH"] = str(_llm_folder(t))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import llm
    model = llm.get_model("here")
    fixed = {"key": t.api_key, "max_tokens": 8, "temperature": 0}
    return model.prompt(COUNTING, **{**fixed, **fields}).text()


@check(LLM, gateway_only=True)
def llm_command(t: Target) -> Any:
    """The command prints the answer as it comes."""
    argv = [sys.executable, "-W", "ignore", "-m", "llm", "prompt", "-m", "here", "--key", t.api_key]
    options = ["-o", "max_tokens", "8", "-o", "temperature", "0", "--no-log", COUNTING]
    done = subprocess.run(
        [*argv, *options],
        env={**os.environ, "LLM_USER_PATH": str(_llm_folder(t))},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.strip()
    return done.stdout


@check(LLM)
def llm_stream(t: Target) -> Any:
    """Its Python API reads a stream."""
    return _llm(t, stream=True)


@check(LLM)
def llm_plain(t: Target) -> Any:
    """Without streaming the answer is the same."""
    said = _llm(t, stream=False)
    assert said == _llm(t, stream=True)
    return said


@check(LLM)
def llm_system(t: Target) -> Any:
    """A system prompt is passed on."""
    return _llm(t, system="Be brief.", stream=False)


@check(LLM)
def llm_schema(t: Target) -> Any:
    """A schema makes the answer JSON."""
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    said = json.loads(_llm(t, schema=schema, max_tokens=60, stream=False))
    assert isinstance(said["ok"], bool)
    return said
