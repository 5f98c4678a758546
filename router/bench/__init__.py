"""Measurements that can be trusted: like with like, interleaved, with intervals."""

from __future__ import annotations

from router.bench.load import Sample, run_jobs
from router.bench.report import Comparison, Row, compare, summarise
from router.bench.workload import PROMPTS, Prompt, workload

__all__ = [
    "PROMPTS",
    "Comparison",
    "Prompt",
    "Row",
    "Sample",
    "compare",
    "run_jobs",
    "summarise",
    "workload",
]
