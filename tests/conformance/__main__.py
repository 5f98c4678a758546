"""`python -m tests.conformance --base-url URL`: every check against a server, one row each."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from rich.console import Console
from rich.table import Table

from tests.conformance.catalogue import CHECKS
from tests.conformance.suite import run_check, selected
from tests.conformance.target import Target, Worker
from workers.keys import worker_api_key

if TYPE_CHECKING:
    from tests.conformance.suite import Result

STYLE = {"pass": "green", "fail": "bold red", "not run": "dim"}


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance",
        description=__doc__,
        epilog="example: python -m tests.conformance --base-url http://127.0.0.1:8080",
    )
    parser.add_argument("--base-url", required=True, help="the server, without /v1")
    parser.add_argument("--api-key", default="unused")
    parser.add_argument("--model", help="default: the first of /v1/models")
    parser.add_argument("--raw", action="store_true", help="it is a llama-server, not a gateway")
    parser.add_argument(
        "--state-dir", type=Path, help="of a local `up`: checks then see the workers' slots"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="names or clients that hold it")
    parser.add_argument("--json", action="store_true", help="rows as JSON")
    return parser


def local_workers(base_url: str, state_dir: Path) -> tuple[dict[str, Worker], dict[str, str]]:
    """The workers of a local `up`, and the operator's header."""
    token = (state_dir / "admin-token").read_text().strip()
    secret = (state_dir / "cluster-secret").read_text().strip()
    admin = {"authorization": f"Bearer {token}"}
    rows = httpx.get(f"{base_url}/ops/workers", headers=admin, timeout=30.0).json()["workers"]
    return {
        row["name"]: Worker(row["name"], row["url"], worker_api_key(secret, row["name"]))
        for row in rows
    }, admin


def make_target(args: argparse.Namespace) -> Target:
    """The target that the command line names."""
    workers, admin = {}, {}
    if args.raw:
        key = "" if args.api_key == "unused" else args.api_key
        workers = {"": Worker("", args.base_url, key)}
    elif args.state_dir:
        workers, admin = local_workers(args.base_url, args.state_dir)
    return Target(
        args.base_url,
        api_key=args.api_key,
        is_gateway=not args.raw,
        model=args.model,
        workers=workers,
        admin=admin,
    )


def show(results: list[Result]) -> None:
    """The table, failures last so that they are seen."""
    table = Table(title="Conformance")
    for name in ("check", "client", "outcome", "s", "detail"):
        table.add_column(name, overflow="fold")
    for one in sorted(results, key=lambda r: (r.outcome == "fail", r.check.client, r.check.name)):
        detail = one.detail or one.check.says
        style = STYLE[one.outcome]
        row = (one.check.name, one.check.client, f"[{style}]{one.outcome}[/]", f"{one.seconds:.2f}")
        table.add_row(*row, detail.replace("[", r"\["))
    Console().print(table)


def main() -> int:
    """Exit status 0 if nothing failed, 1 otherwise."""
    args = options().parse_args()
    target = make_target(args)
    try:
        results = [run_check(one, target) for one in selected(args.only, CHECKS.values())]
    finally:
        target.close()
    counts = Counter(result.outcome for result in results)
    if args.json:
        rows = [result.as_row() for result in results]
        print(json.dumps({"counts": counts, "checks": rows}, ensure_ascii=False, indent=1))  # noqa: T201
    else:
        show(results)
        print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))  # noqa: T201
    return 1 if counts["fail"] or not counts["pass"] else 0


if __name__ == "__main__":
    sys.exit(main())
