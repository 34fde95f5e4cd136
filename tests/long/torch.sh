#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs the PyTorch of torch.txt once, under $NT_CACHE (~/.cache/neutracer), with the dummies of the
# libraries that it names. Prints two directories: that of the modules, that of the dummies.
set -euo pipefail

here=$(dirname "$0")
stand_in=$1
cache=${NT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/neutracer}
version=$(sed -n 's/^torch==\([^ ]*\) .*/\1/p' "$here/torch.txt")
to=$cache/torch-$version
work=$cache/.torch-$version.$$
imports='import torch.distributed.run, torch.distributed.elastic.multiprocessing, torch.distributed.fsdp, torch.nn.parallel'
mkdir -p "$cache"
exec 9>"$cache/.torch-lock"
flock 9
trap 'rm -rf "$work"' EXIT

if ! cmp -s "$here/torch.txt" "$to/torch.txt"; then
  rm -rf "$to"
  mkdir "$work"
  TMPDIR=$cache /usr/bin/python3 -m pip install --quiet --disable-pip-version-check --no-deps --no-compile \
    --root-user-action ignore --no-cache-dir --only-binary=:all: --require-hashes --target "$work/site" \
    --requirement "$here/torch.txt" >&2
  cp "$here/torch.txt" "$work/"
  mv "$work" "$to"
fi
rm -rf "$to/dummies"
/usr/bin/python3 "$here/dummies.py" "$to/site/torch/lib" "$to/dummies" "$stand_in" >&2
# The bytecode of what jobs import is written once. Else each rank compiles it: half a minute of a processor.
if [ ! -e "$to/compiled" ]; then
  LD_LIBRARY_PATH="$(realpath "$stand_in"):$to/dummies" PYTHONPATH=$to/site PYTHONDONTWRITEBYTECODE='' \
    /usr/bin/python3 -c "$imports" >&2
  touch "$to/compiled"
fi
printf '%s\n' "$to/site" "$to/dummies"
