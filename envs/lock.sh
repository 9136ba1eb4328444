#!/bin/sh
# Resolves pyproject.toml into the hash-pinned locks beside this file, for Python 3.11 and newer at once.
# Usage: envs/lock.sh [PYTHON] [--upgrade]     (PYTHON has uv; `make lock` runs it in the project's venv)
# Without --upgrade, what a lock already pins stays as it is. No lock names an index or a host.
set -eu
cd "$(dirname "$0")/.."
python=${1:-python3}
upgrade=${2:-}

compile() { # compile LOCK ARGUMENT...
    lock=$1
    shift
    "$python" -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
        --no-annotate --custom-compile-command "make lock" --output-file "envs/$lock" $upgrade "$@"
    echo "envs/$lock: $(grep -c == "envs/$lock") pins"
}

compile build.lock envs/build.in
compile base.lock pyproject.toml --extra cupy
# The other environments agree with the first on every version that they share.
compile gpu-cuda12.lock pyproject.toml --extra cuda12 --constraints envs/base.lock
compile gpu-cuda13.lock pyproject.toml --extra cuda13 --constraints envs/base.lock
compile slurm.lock pyproject.toml --extra slurm --constraints envs/base.lock
compile search.lock pyproject.toml --extra search --constraints envs/base.lock
compile dev.lock pyproject.toml --extra dev --constraints envs/base.lock
compile docs.lock pyproject.toml --extra docs --constraints envs/base.lock
