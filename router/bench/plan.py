"""The order of a measurement: short blocks, every target in each, so that drift hits all alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from router.bench.load import Job
from router.bench.workload import workload

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """What to measure. Round 0 is the warm-up: sent to every target alike, not counted."""

    targets: Mapping[str, str]  # target's name in the table -> model (or MODEL@WORKER) to ask for
    rounds: int = 3
    warmup_rounds: int = 1
    per_class: int = 4
    max_tokens: int = 160
    concurrency: int = 1
    first_round: int = 1  # of the counted ones, where earlier runs are part of the measurement

    @property
    def total(self) -> int:
        """How many requests the whole run sends."""
        rounds = self.rounds + self.warmup_rounds
        return rounds * 3 * self.per_class * len(self.targets)

    def blocks(self, rng: random.Random) -> Iterator[list[Job]]:
        """Lists of jobs of one target each; run one list after the other.

        Within a block the requests of one target run together (at `concurrency`), never beside
        those of another, which would share the cores with it.
        """
        size = 2 * self.concurrency
        for number in range(self.rounds + self.warmup_rounds):
            counted = number - self.warmup_rounds + 1  # <= 0: warm-up
            counted += self.first_round - 1 if counted > 0 else 0
            prompts = workload(rng, self.per_class)
            for start in range(0, len(prompts), size):
                order = list(self.targets)
                rng.shuffle(order)
                for target in order:
                    yield [
                        Job(
                            target,
                            p,
                            self.targets[target],
                            counted,
                            self.max_tokens,
                            seed=start + i,
                        )
                        for i, p in enumerate(prompts[start : start + size])
                    ]
