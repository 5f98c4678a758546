"""Build the wheel whose request path is compiled: `make native`.

The hot modules (`modules.txt`) are copied, their dataclasses written out (`rewrite.py`), compiled
by mypyc to one shared library and put into the ordinary wheel beside their sources. Needs a C
compiler and the headers of the Python that runs this.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import click

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "build" / "native"
PACKAGES = ("router", "classifier", "workers")
MODULES = tuple((HERE / "modules.txt").read_text().split())
HELPER = "specroute_native.py"
_SHOWN_LINES = 30
"""Of the log when compiling fails: inside an image's build nobody can look into the file."""

_MYPY = """[mypy]
ignore_missing_imports = True
# What a written-out dataclass no longer is to mypy: `replace`, `asdict` and `__slots__` work still.
disable_error_code = call-overload, type-var, attr-defined
[mypy-litellm.*]
follow_imports = skip
"""


@click.command()
@click.option("--out", default=ROOT / "dist", type=click.Path(path_type=Path), show_default=True)
@click.option("--no-isolation", is_flag=True, help="Use the installed hatchling, fetch none.")
def main(out: Path, no_isolation: bool) -> None:
    """Build the wheel and print its path; three to five minutes."""
    problem = missing()
    if problem:
        raise click.ClickException(problem)
    shutil.rmtree(WORK, ignore_errors=True)
    sources = copied(WORK / "src")
    click.echo(f"compiling {len(MODULES)} modules (log: {WORK / 'build.log'})", err=True)
    with (WORK / "build.log").open("w") as log:
        compiled(sources, log.fileno())
    click.echo(packed(sources, out, isolated=not no_isolation))


def missing() -> str | None:
    """What this machine lacks, in a sentence that says what to do."""
    if not any(shutil.which(name) for name in ("cc", "gcc", "clang")):
        return "No C compiler found: install one (Debian: apt-get install gcc)."
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        return "No Python.h found: install the headers (Debian: apt-get install python3-dev)."
    return None


def copied(folder: Path) -> Path:
    """A copy of the packages in `folder`, the modules to compile rewritten."""
    # Loaded here: run as a script, this file's folder is on the path, and nobody else needs it.
    from rewrite import rewrite

    for package in PACKAGES:
        skip = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / package, folder / package, ignore=skip)
    shutil.copy(HERE / HELPER, folder)
    for module in MODULES:
        path = folder / module
        path.write_text(rewrite(path.read_text(encoding="utf-8")), encoding="utf-8")
    return folder


def compiled(sources: Path, log: int) -> None:
    """Compile in `sources`, in a process of its own: mypyc works in the current folder.

    Raises:
        ClickException: it failed; the log says why.
    """
    (sources / "mypy.ini").write_text(_MYPY)
    argv = [sys.executable, str(HERE / "compile.py"), *MODULES]
    if subprocess.call(argv, cwd=sources, stdout=log, stderr=log):
        said = (WORK / "build.log").read_text(errors="replace").splitlines()[-_SHOWN_LINES:]
        raise click.ClickException(
            "\n".join([*said, f"compiling failed: see {WORK / 'build.log'}"])
        )


def packed(sources: Path, out: Path, *, isolated: bool = True) -> Path:
    """The ordinary wheel with the shared libraries in it, in `out`.

    Not `isolated`, what makes the ordinary one has to be installed here and nothing is fetched.
    """
    plain = WORK / "wheel"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    how = ["-q", "--no-deps"] if isolated else ["-q", "--no-deps", "--no-build-isolation"]
    subprocess.check_call([*pip, "wheel", *how, "-w", str(plain), str(ROOT)])
    wheel = [sys.executable, "-m", "wheel"]
    quiet = subprocess.DEVNULL
    subprocess.check_call([*wheel, "unpack", str(*plain.glob("*.whl")), "-d", plain], stdout=quiet)
    tree = next(path for path in plain.iterdir() if path.is_dir())
    for library in [*sources.glob("*.so"), *sources.glob("[rcw]*/**/*.so"), sources / HELPER]:
        shutil.copy(library, tree / library.relative_to(sources))
    said = next(tree.glob("*.dist-info/WHEEL"))
    said.write_text(said.read_text().replace("Root-Is-Purelib: true", "Root-Is-Purelib: false"))
    subprocess.check_call([*wheel, "pack", str(tree), "-d", plain], stdout=quiet)
    tags = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    flags = ["--python-tag", tags, "--abi-tag", tags, "--platform-tag", platform, "--remove"]
    argv = [*wheel, "tags", *flags, str(*plain.glob("*.whl"))]
    name = subprocess.check_output(argv, text=True).split()[-1]
    out.mkdir(exist_ok=True)
    return Path(shutil.copy(plain / name, out))


if __name__ == "__main__":
    main()
