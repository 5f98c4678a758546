#!/bin/sh
# The comparison's Python peers, each in a virtual environment of its own below FOLDER.
#     sh tests/perf/peers.sh FOLDER
# nginx comes from the system's packages (Debian: apt-get install nginx-light).
set -eu
folder=$1
python=${PYTHON:-python3}
make_venv() {
    [ -x "$folder/$1/bin/pip" ] || "$python" -m venv "$folder/$1"
    "$folder/$1/bin/pip" install -q --disable-pip-version-check "$2"
}
make_venv vllm "vllm-router==0.1.17"
make_venv sgl "sglang-router==0.3.2"
make_venv litellm "litellm[proxy]==1.108.7"
