"""What the tests' stand-in of a llama-server answers: script, tokens, timings, JSON; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from workers.arms import N_MAX
from workers.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Fault = Literal["none", "error", "stall", "close", "garbage", "no_timings"]


@dataclass(frozen=True, slots=True)
class Script:
    """How the stand-in behaves. Changed while it runs by PUT /script with some of the fields."""

    slots: int = 2
    context: int = 4096  # tokens per request
    mode: str = "ar"
    api_key: str | None = None
    load_s: float = 0.0  # every page answers 503 until then
    prefill_ms: float = 0.0  # per prompt token
    busy_prefill: bool = False  # it uses a processor and answers nothing meanwhile
    step_ms: float = 0.0  # per verification step
    n_max: int = 0  # drafted per step
    obeys: bool = False  # a request may choose a shorter draft, as on a patched build
    acceptance: float = 0.0  # share of the drafted
    tokens: int = 16  # of an answer that the request does not limit further
    word: str = "word"
    fault: Fault = "none"
    fault_every: int = 1  # 1: every request; 2: each second one ...
    fault_after: int = 2  # tokens sent before a stall, a close or garbage


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer before it is sent: tokens of each step, and what is reported of them."""

    words: tuple[tuple[str, ...], ...]
    prompt_n: int
    timings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """The JSON of one endpoint's answers."""

    request: Mapping[str, Any]
    answer: Answer
    chat: bool
    timed: bool = True

    def whole(self) -> dict[str, Any]:
        """A plain answer."""
        text = "".join(word for step in self.answer.words for word in step)
        choice: dict[str, Any] = {"index": 0, "finish_reason": "length"}
        choice |= (
            {"message": {"role": "assistant", "content": text}} if self.chat else {"text": text}
        )
        kind = "chat.completion" if self.chat else "text_completion"
        return self._base(kind) | {"choices": [choice], "usage": self._usage()} | self._timings()

    def piece(self, word: str, *, first: bool) -> dict[str, Any]:
        """One event of a stream."""
        role = {"role": "assistant"} if first else {}
        return self._event(role | {"content": word}, None, word)

    def ending(self) -> Iterator[dict[str, Any]]:
        """The finish event, and the usage event if asked for; timings ride on the last."""
        options = self.request.get("stream_options") or {}
        finish = self._event({}, "length", "")
        if options.get("include_usage"):
            yield finish
            kind = "chat.completion.chunk" if self.chat else "text_completion"
            yield self._base(kind) | {"choices": [], "usage": self._usage()} | self._timings()
        else:
            yield finish | self._timings()

    def _event(self, delta: dict[str, Any], finish: str | None, text: str) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "finish_reason": finish}
        choice |= {"delta": delta} if self.chat else {"text": text}
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return self._base(kind) | {"choices": [choice]}

    def _base(self, kind: str) -> dict[str, Any]:
        model = self.request.get("model", "simulated")
        return {"id": "chatcmpl-simulated", "object": kind, "created": 0, "model": model}

    def _usage(self) -> dict[str, Any]:
        prompt, predicted = self.answer.prompt_n, self.answer.timings["predicted_n"]
        return {
            "prompt_tokens": prompt,
            "completion_tokens": predicted,
            "total_tokens": prompt + predicted,
            "prompt_tokens_details": {"cached_tokens": 0},
        }

    def _timings(self) -> dict[str, Any]:
        return {"timings": dict(self.answer.timings)} if self.timed else {}


def plan_answer(script: Script, request: Mapping[str, Any]) -> Answer:
    """Which tokens come in which step, and the timings that tell of it.

    The first token comes with the prompt. Each step after it verifies `n_max` drafted tokens, of
    which the script's share is accepted (the remainder is carried to later steps), and adds one.
    """
    asked = request.get("max_tokens")
    limit = script.tokens if asked is None else min(int(asked), 1_000_000)
    count = max(1, limit)
    drafts = script.n_max if MODES[script.mode].speculative else 0
    if script.obeys and isinstance(request.get(N_MAX), int):
        drafts = min(drafts, request[N_MAX])
    steps, owed, done = [1], 0.0, 1
    while done < count:
        owed += drafts * script.acceptance
        accepted = min(int(owed), drafts, count - done - 1)
        owed -= accepted
        steps.append(1 + accepted)
        done += 1 + accepted
    words = iter(f"{script.word}{i} " for i in range(count))
    grouped = tuple(tuple(next(words) for _ in range(size)) for size in steps)
    return Answer(grouped, _prompt_tokens(request), _timings(script, request, steps, drafts))


def _timings(
    script: Script, request: Mapping[str, Any], steps: list[int], drafts: int
) -> dict[str, Any]:
    prompt_n, predicted_n, verified = _prompt_tokens(request), sum(steps), len(steps) - 1
    timings: dict[str, Any] = {
        "cache_n": 0,
        "prompt_n": prompt_n,
        "prompt_ms": prompt_n * script.prefill_ms,
        "predicted_n": predicted_n,
        "predicted_ms": verified * script.step_ms,
    }
    if drafts and verified:
        timings |= {"draft_n": drafts * verified, "draft_n_accepted": predicted_n - 1 - verified}
    return timings


def _prompt_tokens(request: Mapping[str, Any]) -> int:
    """Words of the prompt, and one for the template."""
    texts = [str(request.get("prompt", ""))]
    texts += [str(message.get("content", "")) for message in request.get("messages") or ()]
    return 1 + sum(len(text.split()) for text in texts)
