"""Compile the modules named on the command line, in the current folder; called by `build.py`."""

from __future__ import annotations

import sys

from mypyc.build import mypycify
from setuptools import setup

if __name__ == "__main__":
    extensions = mypycify(
        ["--config-file", "mypy.ini", *sys.argv[1:]], opt_level="2", multi_file=True
    )
    setup(
        name="specroute-native",
        ext_modules=extensions,
        packages=[],
        script_args=["build_ext", "--inplace"],
    )
