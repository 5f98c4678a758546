"""Put model files where workers look for them: checked, whole or not at all, and only once.

Arguments: a JSON file {"tiny": bool, "files": [{"path", "url", "sha256"}]} and the folder. Runs as
an init container on the standard library alone. Exit 1: a file could not be fetched; the pod's log
says which and why, and the kubelet tries again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import sys
import urllib.error
import urllib.request
from pathlib import Path

CHUNK = 1 << 22
TIMEOUT_S = 60


def main(plan_path: str, folder: str) -> int:
    """Fetch everything of the plan; 0 when all of it is there."""
    plan = json.loads(Path(plan_path).read_text())
    root = Path(folder)
    try:
        if plan.get("tiny"):
            copy_tiny(root)
        for entry in plan.get("files") or ():
            fetch(root, entry)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"models: {error}\n")
        return 1
    return 0


def copy_tiny(root: Path) -> None:
    """The bundled toy model, from the package beside which we run."""
    import workers.tiny

    source = Path(workers.tiny.__file__).parent
    for name in ("target.gguf", "draft.gguf"):
        place = root / "tiny" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        scratch = place.with_suffix(f".{os.getpid()}.part")
        shutil.copyfile(source / name, scratch)
        scratch.replace(place)


def fetch(root: Path, entry: dict[str, str]) -> None:
    """One file, unless it is there; pods that share a volume wait for one another.

    Raises OSError or ValueError with a sentence when it is not what was asked for.
    """
    place = (root / entry["path"]).resolve()
    if root.resolve() not in place.parents:
        raise ValueError(f"{entry['path']} would lie outside {root}")
    place.parent.mkdir(parents=True, exist_ok=True)
    scratch = place.with_name(place.name + ".part")
    with scratch.with_name(place.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if place.exists():
            sys.stdout.write(f"{entry['path']} is there\n")
            return
        download(entry["url"], scratch)
        found = digest(scratch)
        wanted = entry.get("sha256", "")
        if wanted and found != wanted.lower():
            scratch.unlink()
            raise ValueError(f"{entry['url']} has SHA-256 {found}, not {wanted}")
        scratch.replace(place)
        sys.stdout.write(f"{entry['path']} fetched, SHA-256 {found}\n")


def download(url: str, scratch: Path) -> None:
    """Go on where an earlier try was cut off, where the server can do that."""
    have = scratch.stat().st_size if scratch.exists() else 0
    request = urllib.request.Request(url)  # noqa: S310 - the operator's own URL
    token = os.environ.get("DOWNLOAD_TOKEN")  # noqa: TID251 - from a Secret
    if token:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT_S)  # noqa: S310
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing is left to fetch
            return
        raise OSError(f"{url}: {error}") from error
    with answer, scratch.open("ab" if answer.status == 206 else "wb") as file:
        shutil.copyfileobj(answer, file, CHUNK)
    length = answer.headers.get("Content-Length")
    begun = have if answer.status == 206 else 0
    if length is not None and scratch.stat().st_size != begun + int(length):
        raise OSError(f"{url}: the connection broke off; the next try goes on from there")


def digest(path: Path) -> str:
    """SHA-256 as 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
