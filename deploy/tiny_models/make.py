"""Make the bundled trio from nothing: corpus, tokenizer, trunk, self-play, drafters, GGUF files.

resume.py fills a work folder with what shipped; from there, the stages `answers` and `greedy` give
the drafter its last lessons again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SHIPPED = HERE.parents[1] / "workers" / "tiny"
CORPUS_ROWS = 12_000
SELF_PLAY_PROMPTS = 2_400
ANSWERS = 12_000
# For two idle cores; a busy machine needs more for the same number of steps.
TARGET_MINUTES, MTP_MINUTES, DFLASH_MINUTES = 42.0, 30.0, 40.0
GREEDY_MINUTES = 58.0
TRAINERS = 2
STAGES = ["corpus", "target", "mtp", "dflash", "selfplay", "answers", "greedy", "export", "ship"]


def child(stage: str, args: argparse.Namespace, *extra: str) -> subprocess.Popen[bytes]:
    """This program again, for one stage, one thread."""
    same = ("--work", str(args.work), "--scale", str(args.scale))
    command = [sys.executable, __file__, *same, "--stage", stage, *extra]
    quiet = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "GLOO_SOCKET_IFNAME": "lo"}
    # Its own variables pass through: they say where the interpreter lives.
    environment = {**os.environ, **quiet}  # noqa: TID251
    return subprocess.Popen(command, env=environment)


def together(*running: subprocess.Popen[bytes]) -> None:
    """Wait for all; one failure is a failure."""
    codes = [process.wait() for process in running]
    if any(codes):
        raise SystemExit(f"a stage failed: exit codes {codes}")


def everything(args: argparse.Namespace) -> None:
    """All stages in order; each resumes from what the work folder holds."""
    work: Path = args.work
    if not (work / "tokens.npy").exists():
        together(child("corpus", args))
    (work / "rendezvous").unlink(missing_ok=True)
    together(*(child("target", args, "--index", str(i)) for i in range(TRAINERS)))
    together(child("export", args))
    together(*(child(stage, args) for stage in ("selfplay", "mtp", "dflash")))
    together(child("answers", args))
    together(child("greedy", args))
    together(child("export", args))


def stage(args: argparse.Namespace) -> None:
    """One stage; imports here, because each process needs only its own part."""
    work: Path = args.work
    share: float = args.scale
    if args.stage == "corpus":
        import dataset

        dataset.build(work, int(CORPUS_ROWS * share))
    elif args.stage == "target":
        import train_target

        train_target.run(work, TARGET_MINUTES * share, args.index, TRAINERS)
    elif args.stage == "mtp":
        import train_mtp

        train_mtp.run(work, MTP_MINUTES * share)
    elif args.stage == "dflash":
        import train_dflash

        train_dflash.run(work, DFLASH_MINUTES * share)
    elif args.stage == "selfplay":
        import selfplay

        selfplay.run(work, work / "out" / "target.gguf", int(SELF_PLAY_PROMPTS * share))
    elif args.stage == "answers":
        import answers

        answers.run(work, work / "out" / "target.gguf", int(ANSWERS * share))
    elif args.stage == "greedy":
        import train_greedy

        train_greedy.run(work, GREEDY_MINUTES * share)
    elif args.stage == "export":
        import checkpoint

        checkpoint.write(work, work / "out")
    elif args.stage == "ship":
        import checkpoint

        checkpoint.write(work, SHIPPED)


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder for checkpoints")
    parser.add_argument(
        "--stage",
        choices=("all", *STAGES),
        default="all",
        help="one stage only; `ship` writes the files of the package",
    )
    parser.add_argument("--index", type=int, default=0, help="which of the trunk's trainers")
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="share of the whole work: 0.03 is a rehearsal of every stage, not a usable model",
    )
    args = parser.parse_args()
    if not 0 < args.scale <= 1:
        parser.error("--scale is a share: above 0, at most 1")
    args.work.mkdir(parents=True, exist_ok=True)
    everything(args) if args.stage == "all" else stage(args)


if __name__ == "__main__":
    main()
