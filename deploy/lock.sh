#!/bin/sh
# Repins what goes into the images, from pyproject.toml and the versions of requirements.lock.
# Run from the project's root; LOCKER names the program where it is not on the PATH.
set -eu

compile() {
    "${LOCKER:-pip-compile}" -q --generate-hashes --no-annotate --no-header --strip-extras \
        --allow-unsafe --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
        -c requirements.lock "$@"
}

compile --extra gateway --extra learn -o deploy/requirements-gateway.lock pyproject.toml
compile -o deploy/requirements-agent.lock pyproject.toml
# With the mypyc that `make native` has, whose wheel the tests run on.
compile -c requirements-dev.lock -o deploy/requirements-build.lock deploy/requirements-build.in
