"""Whether drafting changes what a model says: greedy answers compared with plain decoding's.

Plain decoding is asked twice, in two orders: what differs there is the machine's own noise, and the
measure for what differs elsewhere. Where texts part, plain decoding's own log-probabilities tell a
tie (two tokens as good as equal, which another order of sums may turn) from a real difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import httpx

from router.bench.one_worker import running_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from router.bench.one_worker import Bench, Measured
    from router.bench.workload import Prompt
    from workers.spec import WorkerSpec

TIE_NATS: Final = 0.05
"""Log-probabilities closer than this are a tie: half precision differs by about as much."""

CONTROL: Final = "ar, again"
_TIMEOUT_S: Final = 900.0


class AuditFailed(RuntimeError):
    """A worker refused a request; the sentence says which and how."""


@dataclass(frozen=True, slots=True)
class Said:
    """One greedy answer. `gaps`: where each token ends, and the nats between its two best."""

    text: str
    drafted: int = 0
    gaps: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """Where one answer leaves plain decoding's: characters from the start, and the nats there."""

    prompt: str
    at: int
    nats: float | None
    plain: str
    other: str

    @property
    def tie(self) -> bool:
        """Whether plain decoding was itself undecided there."""
        return self.nats is not None and self.nats < TIE_NATS


@dataclass(frozen=True, slots=True)
class Verdict:
    """One worker against plain decoding."""

    worker: str
    mode: str
    n: int
    drafted: int
    differences: tuple[Difference, ...]
    trouble: str = ""

    @property
    def equal(self) -> int:
        """Answers that are the same to the letter."""
        return self.n - len(self.differences)

    @property
    def ties(self) -> int:
        """Differences that begin at a tie."""
        return sum(d.tie for d in self.differences)

    def as_dict(self) -> dict[str, Any]:
        """A row of `audit --json`."""
        real = [d for d in self.differences if not d.tie]
        return {
            "worker": self.worker,
            "mode": self.mode,
            "n": self.n,
            "equal": self.equal,
            "ties": self.ties,
            "different": len(real),
            "drafted": self.drafted,
            "trouble": self.trouble,
            "differences": [
                {"prompt": d.prompt, "at": d.at, "nats": d.nats, "ar": d.plain, "other": d.other}
                for d in real
            ],
        }


async def audit(
    plain: WorkerSpec,
    others: Sequence[WorkerSpec],
    prompts: Sequence[Prompt],
    max_tokens: int,
    bench: Bench,
    on_answer: Callable[[object], None],
) -> list[Verdict]:
    """The control's verdict first, then one for each of `others`; one worker runs at a time.

    Raises:
        WorkerFailed: one did not start.
        AuditFailed: one refused a request.
    """

    async def answers(worker: Measured, order: Sequence[Prompt], *, gaps: bool) -> dict[str, Said]:
        said: dict[str, Said] = {}
        async with httpx.AsyncClient(
            base_url=worker.record.url,
            headers=dict(worker.headers),
            timeout=_TIMEOUT_S,
            limits=httpx.Limits(max_keepalive_connections=0),
            trust_env=False,
        ) as http:
            for prompt in order:
                said[prompt.text] = await _ask(http, prompt, max_tokens, gaps=gaps)
                on_answer(prompt)
        return said

    async with running_worker(plain, bench) as worker:
        first = await answers(worker, prompts, gaps=True)
        again = await answers(worker, prompts[::-1], gaps=False)
    verdicts = [_verdict(CONTROL, plain.mode, first, again)]
    for spec in others:
        async with running_worker(spec, bench) as worker:
            said = await answers(worker, prompts, gaps=False)
            verdicts.append(_verdict(spec.name, spec.mode, first, said, worker.trouble))
    return verdicts


async def _ask(http: httpx.AsyncClient, prompt: Prompt, max_tokens: int, *, gaps: bool) -> Said:
    body = prompt.body("audit", max_tokens=max_tokens, seed=0) | {
        "stream": False,
        "temperature": 0,
        "cache_prompt": False,
        "reasoning_format": "none",  # thinking stays in the text, where it was said
    }
    del body["stream_options"]
    if gaps:
        body |= {"logprobs": True, "top_logprobs": 2}
    try:
        answer = await http.post("/v1/chat/completions", json=body)
        payload = answer.json()
        choice = payload["choices"][0]
    except (httpx.HTTPError, ValueError, KeyError, IndexError) as error:
        raise AuditFailed(f"{prompt.text[:40]!r} got no answer: {type(error).__name__}") from error
    text = choice["message"].get("content") or ""
    drafted = (payload.get("timings") or {}).get("draft_n") or 0
    return Said(text, drafted, _gaps(choice, text) if gaps else ())


def _gaps(choice: dict[str, Any], text: str) -> tuple[tuple[int, float], ...]:
    """For each token: where it ends in `text`, and how clearly it was the best."""
    entries = (choice.get("logprobs") or {}).get("content") or ()
    whole = "".join(entry.get("token", "") for entry in entries)
    end = -max(0, whole.find(text))  # white space before the text is not in it
    rows = []
    for entry in entries:
        end += len(entry.get("token", ""))
        top = sorted((float(t["logprob"]) for t in entry.get("top_logprobs") or ()), reverse=True)
        rows.append((end, top[0] - top[1] if len(top) > 1 else math.inf))
    return tuple(rows)


def _verdict(
    worker: str, mode: str, plain: dict[str, Said], other: dict[str, Said], trouble: str = ""
) -> Verdict:
    differences = [
        difference(prompt, said, other[prompt].text)
        for prompt, said in plain.items()
        if said.text != other[prompt].text
    ]
    drafted = sum(said.drafted for said in other.values())
    return Verdict(worker, mode, len(plain), drafted, tuple(differences), trouble)


def difference(prompt: str, plain: Said, other: str) -> Difference:
    """Where `other` leaves plain decoding's text, and how sure plain decoding was there."""
    pairs = zip(plain.text, other, strict=False)
    shortest = min(len(plain.text), len(other))
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), shortest)
    spans = plain.text[max(0, at - 20) : at + 20], other[max(0, at - 20) : at + 20]
    nats = next((gap for end, gap in plain.gaps if end > at), None)
    return Difference(prompt, at, nats, *spans)


def passes(verdicts: Sequence[Verdict], tolerance: float) -> list[str]:
    """Why the audit fails, a sentence each; empty when it does not.

    A worker may really differ as often as plain decoding differs from itself, plus `tolerance` (a
    share of the answers); and one that drafts nothing proves nothing.
    """
    control, *others = verdicts
    allowed = control.n - control.equal + tolerance * control.n
    told = []
    for verdict in others:
        real = len(verdict.differences) - verdict.ties
        if real > allowed:
            of = f"{real} of {verdict.n} answers differ from plain decoding"
            told.append(f"{verdict.worker} ({verdict.mode}): {of}, {allowed:g} are allowed")
        if not verdict.drafted:
            told.append(f"{verdict.worker} ({verdict.mode}): nothing was drafted")
    return told
