"""Keeps what a bench measured as JSON lines: short runs one after the other are one measurement."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import orjson

from router.bench.load import Job, Sample
from router.bench.workload import Prompt
from workers.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


def append(path: Path, concurrency: int, samples: Iterable[Sample]) -> None:
    """Add samples measured at `concurrency` requests at a time.

    Raises:
        OSError: the file cannot be written.
    """
    rows = [orjson.dumps({"concurrency": concurrency, **asdict(sample)}) for sample in samples]
    with path.open("ab") as file:
        file.write(b"".join(row + b"\n" for row in rows))


def read(path: Path) -> dict[int, list[Sample]]:
    """The samples of a file by concurrency; none if there is no such file.

    Raises:
        ValueError: a line is no sample; says which.
        OSError: the file cannot be read.
    """
    found: dict[int, list[Sample]] = {}
    if not path.exists():
        return found
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            row = orjson.loads(line)
            found.setdefault(int(row.pop("concurrency")), []).append(_sample(row))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}, line {number}: no sample of the bench ({error})") from error
    return found


def _sample(row: Mapping[str, Any]) -> Sample:
    job = row["job"]
    prompt = Prompt(**job["prompt"])
    return Sample(**{**row, "job": Job(**{**job, "prompt": prompt}), "timings": _timings(row)})


def _timings(row: Mapping[str, Any]) -> Timings:
    return Timings(**row["timings"])
