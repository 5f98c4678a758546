"""The trained model's file and the serving-time predictor; no scikit-learn, no numpy.

The file is JSON: feature names, one signed byte per name and lane (3 classes, then every kind), a
scale and a bias per lane. In memory a name's bytes are one integer with 16 bits per lane, each
holding weight + 128, and a counting lane; adding the integers of the names present adds all lanes
at once, and the count takes the 128s out again. A lane overflows after 257 names, so at most 256
are added.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from math import exp, log2
from operator import index
from pathlib import Path
from struct import Struct, iter_unpack, pack
from struct import error as StructError
from sys import intern
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar
from zlib import crc32

from classifier.classes import CLASSES, KINDS, Classification, Contribution
from classifier.features import is_stem
from classifier.lengths import expected_tokens
from classifier.rules import RuleClassifier, settled, spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from classifier.features import RequestFeatures

FORMAT: Final = 1
SHIPPED: Final = Path(__file__).parent / "models" / "classifier.json"
LANES: Final[tuple[str, ...]] = (
    *(c.value for c in CLASSES),
    *(kind for c in CLASSES for kind in KINDS[c]),
)
"""Names of the lanes, in the order of the file."""

_Name = TypeVar("_Name", str, int)
_FIRST, _SECOND, _THIRD = (c.value for c in CLASSES)
_KindLane = tuple[int, str, float, float]
"""Lane, name, bias and scale of a kind."""

_ZERO: Final = 128
_TOP: Final = 127
_MAX_NAMES: Final = 256
_EVIDENCE_STEPS: Final = 20
"""Steps per doubling: a byte reaches to 6,900, more than our training rows can say."""
_WIDTH: Final = 2 * (len(LANES) + 1)
_UNPACK: Final = Struct(f"<{len(LANES) + 1}H").unpack


_MOST_WEIGHT: Final = 100.0  # of a scale or bias; real ones are below ten
_UNREADABLE: Final = (
    KeyError,
    TypeError,
    AttributeError,
    ValueError,
    RecursionError,
    StructError,
    zlib.error,
)


class Predictor(Protocol):
    """Features in, classification out; synchronous and pure. `version` says which model it is."""

    version: str

    def predict(self, features: RequestFeatures) -> Classification: ...

    def explain(self, features: RequestFeatures) -> tuple[Contribution, ...]: ...


class BadArtifact(ValueError):
    """The file is not an artifact that this version reads; the message says why."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A trained model: per name one byte per lane (`rows`: names x lanes), per lane scale and
    bias; class lanes have the temperature folded in. `card` says how it was made and measured.
    `hashed` and `hashed_rows` are the same for names that own-traffic learning knows by hash.
    `evidence` (a byte per name, then per hash; empty if unknown) says how much the training rows
    knew of each name, see `evidence_bytes`; `bias_evidence` is the same for the biases.
    `silent` are hashes of names that training found to say nothing, with `silent_evidence`: they
    are not served, but are no news to learning."""

    version: str
    names: tuple[str, ...]
    rows: bytes
    scales: tuple[float, ...]
    biases: tuple[float, ...]
    card: Mapping[str, Any]
    hashed: tuple[int, ...] = ()
    hashed_rows: bytes = b""
    evidence: bytes = b""
    bias_evidence: float = 0.0
    silent: tuple[int, ...] = ()
    silent_evidence: bytes = b""


@lru_cache(maxsize=32_768)
def hash_name(name: str) -> int:
    """32 bits that stand for a feature name where the name itself must not be kept.

    Odd for a word stem, even for the rest: learning trusts a stem less (see `estimator`).
    """
    stem = is_stem(name)
    return crc32(name.encode("utf-8", "replace")) & ~1 | stem


def evidence_bytes(information: Iterable[float]) -> bytes:
    """Fisher information of each weight (the training rows' sum of p(1-p)), on a log scale."""
    return bytes(min(255, round(_EVIDENCE_STEPS * log2(1.0 + value))) for value in information)


def information_of(evidence: bytes) -> list[float]:
    """What `evidence_bytes` was given, within 2 %."""
    return [2.0 ** (value / _EVIDENCE_STEPS) - 1.0 for value in evidence]


def quantise(
    names: Sequence[str],
    weights: Sequence[Sequence[float]],
    biases: Sequence[float],
    *,
    version: str,
    card: Mapping[str, Any],
    information: Sequence[float] = (),
) -> Artifact:
    """An artifact from float weights (names x lanes); all-zero names are not served.

    `information` is by name, then of the biases, see `evidence_bytes`; empty if it is not known.
    """
    tops = [max((abs(row[lane]) for row in weights), default=0.0) for lane in range(len(LANES))]
    scales = tuple(top / _TOP if top else 1.0 for top in tops)
    kept: list[int] = []
    zero: list[int] = []
    rows = bytearray()
    for at, row in enumerate(weights):
        small = [round(value / scale) for value, scale in zip(row, scales, strict=True)]
        if any(small):
            kept.append(at)
            rows.extend(value + _ZERO for value in small)
        elif information:
            zero.append(at)
    return Artifact(
        version,
        tuple(names[at] for at in kept),
        bytes(rows),
        scales,
        tuple(biases),
        dict(card),
        evidence=evidence_bytes(information[at] for at in kept) if information else b"",
        bias_evidence=information[-1] if information else 0.0,
        silent=tuple(hash_name(names[at]) for at in zero),
        silent_evidence=evidence_bytes(information[at] for at in zero),
    )


def save(artifact: Artifact, path: Path) -> None:
    """Writes the artifact as JSON; raises OSError."""
    path.write_text(to_text(artifact), encoding="utf-8")


def to_text(artifact: Artifact) -> str:
    """The artifact as JSON."""
    data = {
        "format": FORMAT,
        "version": artifact.version,
        "lanes": LANES,
        "names": "\n".join(artifact.names),
        "rows": _squeezed(artifact.rows),
        "scales": [round(scale, 8) for scale in artifact.scales],
        "biases": [round(bias, 6) for bias in artifact.biases],
        "card": dict(artifact.card),
        "hashed": list(artifact.hashed),
        "hashed_rows": _squeezed(artifact.hashed_rows),
        "evidence": _squeezed(artifact.evidence),
        "bias_evidence": round(artifact.bias_evidence, 1),
        "silent": _squeezed(pack(f"<{len(artifact.silent)}I", *artifact.silent)),
        "silent_evidence": _squeezed(artifact.silent_evidence),
    }
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


def read(path: Path) -> Artifact:
    """The artifact in the file; raises BadArtifact, OSError."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadArtifact(f"{path.name}: not a classifier artifact ({error})") from error
    return from_text(text, path.name)


def from_text(text: str, where: str) -> Artifact:
    """The artifact in a JSON text; raises BadArtifact, which says that it came from `where`."""
    try:
        data = json.loads(text)
        if data["format"] != FORMAT or tuple(data["lanes"]) != LANES:
            raise BadArtifact(f"{where}: format {data['format']}, {len(data['lanes'])} lanes")
        artifact = Artifact(
            str(data["version"]),
            tuple(map(intern, data["names"].split("\n"))),  # as stems are: found by identity
            _unsqueezed(data["rows"]),
            tuple(map(_weight, data["scales"])),
            tuple(map(_weight, data["biases"])),
            dict(data["card"]),
            tuple(map(index, data.get("hashed", ()))),
            _unsqueezed(data.get("hashed_rows", "")),
            _unsqueezed(data.get("evidence", "")),
            float(data.get("bias_evidence", 0.0)),
            tuple(chain.from_iterable(iter_unpack("<I", _unsqueezed(data.get("silent", ""))))),
            _unsqueezed(data.get("silent_evidence", "")),
        )
    except _UNREADABLE as error:
        if isinstance(error, BadArtifact):
            raise
        raise BadArtifact(f"{where}: not a classifier artifact ({error!r})") from error
    if not _fits(artifact):
        raise BadArtifact(f"{where}: sizes do not fit together")
    return artifact


def _weight(value: float) -> float:
    if not abs(value) <= _MOST_WEIGHT:
        raise ValueError(f"a scale or bias of {value}")
    return float(value)


def _squeezed(raw: bytes) -> str:
    return b64encode(zlib.compress(raw, 9)).decode("ascii") if raw else ""


def _unsqueezed(text: str) -> bytes:
    return zlib.decompress(b64decode(text)) if text else b""


def _fits(artifact: Artifact) -> bool:
    return (
        len(artifact.rows) == len(artifact.names) * len(LANES)
        and len(artifact.hashed_rows) == len(artifact.hashed) * len(LANES)
        and len(artifact.evidence) in (0, len(artifact.names) + len(artifact.hashed))
        and len(artifact.silent) == len(artifact.silent_evidence)
        and len(artifact.scales) == len(artifact.biases) == len(LANES)
    )


def _packed(names: Iterable[_Name], rows: bytes) -> dict[_Name, int]:
    """Name (or its hash) to its lanes as one integer, the counting lane first."""
    lanes = len(LANES)
    wide = bytearray(2 * len(rows))
    wide[::2] = rows
    one = (1).to_bytes(2, "little")
    return {
        name: int.from_bytes(one + wide[2 * at * lanes : 2 * (at + 1) * lanes], "little")
        for at, name in enumerate(names)
    }


class LinearPredictor:
    """The served model: flags first, then the table."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.version = artifact.version
        self._table = _packed(artifact.names, artifact.rows)
        self._hashed = _packed(artifact.hashed, artifact.hashed_rows)
        self._scales = artifact.scales
        self._biases = artifact.biases
        self._kinds = _kind_lanes(artifact)

    def predict(self, features: RequestFeatures) -> Classification:
        """What the request will probably produce."""
        names: Iterable[str] = features.names
        if len(features.names) > _MAX_NAMES:
            names = sorted(names)[:_MAX_NAMES]
        total = sum(filter(None, map(self._table.get, names)))
        if self._hashed:
            total += self._unnamed(names)
        count, *lanes = _UNPACK(total.to_bytes(_WIDTH, "little"))
        zero = _ZERO * count
        decided = settled(features)
        if decided is None:
            probabilities, best = self._classes(lanes, zero)
            winner, kind = CLASSES[best], self._kind(best, lanes, zero)
        else:
            winner, kind, probability = decided
            kind = kind or self._kind(CLASSES.index(winner), lanes, zero)
            probabilities = spread(winner, probability)
        median, interval = expected_tokens(features, kind, features.thinking)
        return Classification(
            winner,
            kind,
            probabilities,
            median,
            interval,
            self.version,
            features.thinking,
            features.language,
            "model" if decided is None else "rules",
        )

    def _unnamed(self, names: Iterable[str]) -> int:
        """The sum over names that are known by their hash only."""
        hashes = [hash_name(name) for name in names if name not in self._table]
        return sum(filter(None, map(self._hashed.get, hashes)))

    def _classes(self, lanes: Sequence[int], zero: int) -> tuple[dict[str, float], int]:
        """The probability of each class, and the place of the likeliest in CLASSES."""
        biases, scales = self._biases, self._scales
        first = exp(biases[0] + scales[0] * (lanes[0] - zero))
        second = exp(biases[1] + scales[1] * (lanes[1] - zero))
        third = exp(biases[2] + scales[2] * (lanes[2] - zero))
        total = first + second + third
        best = 0 if first >= second and first >= third else 1 if second >= third else 2
        return {_FIRST: first / total, _SECOND: second / total, _THIRD: third / total}, best

    def _kind(self, at_class: int, lanes: Sequence[int], zero: int) -> str:
        """The likeliest kind of a class, given by its place in CLASSES."""
        best, best_kind = float("-inf"), ""
        for at, kind, bias, scale in self._kinds[at_class]:
            score = bias + scale * (lanes[at] - zero)
            if score > best:
                best, best_kind = score, kind
        return best_kind

    def explain(self, features: RequestFeatures) -> tuple[Contribution, ...]:
        """Every feature present that the model knows, largest effect first; flags come first."""
        decided = settled(features)
        found = [self._contribution(name) for name in features.names if name in self._table]
        found.sort(key=lambda c: (-_reach(c.weights), c.name))
        if decided is not None:
            flag = "thinking" if features.thinking else f"forced:{features.forced}"
            found.insert(0, Contribution(flag, {decided[0].value: 8.0}))
        return tuple(found)

    def _contribution(self, name: str) -> Contribution:
        lanes = _UNPACK(self._table[name].to_bytes(_WIDTH, "little"))[1:]
        weights = {c.value: self._scales[at] * (lanes[at] - _ZERO) for at, c in enumerate(CLASSES)}
        return Contribution(name, weights)


def _reach(weights: Mapping[str, float]) -> float:
    return max(weights.values()) - min(weights.values())


def _kind_lanes(artifact: Artifact) -> tuple[tuple[_KindLane, ...], ...]:
    """What a kind's score is made of, by class in the order of CLASSES."""
    lanes = zip(range(len(LANES)), LANES, artifact.biases, artifact.scales, strict=True)
    kinds = islice(lanes, len(CLASSES), None)
    return tuple(tuple(islice(kinds, len(KINDS[c]))) for c in CLASSES)


def load(path: Path | None = None) -> Predictor:
    """The predictor of the artifact at `path`, or of the shipped one (else the rules).

    Raises BadArtifact or OSError for a path that was given.
    """
    if path is None and not SHIPPED.exists():
        return RuleClassifier()
    return LinearPredictor(read(path or SHIPPED))
