#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# wheels.sh [LIST]: fetches the real libraries of a list in tests/bpf/wheels (wheels.txt) once, checks their hashes and
# unpacks their shared objects, and nvml.h or amdsmi_wrapper.py, to $NT_CACHE/wheels/NAME-VERSION/, and the headers of the runtime and of CUPTI to include/ there.
# Of CUPTI's libraries libcupti alone. Prints that directory's parent. NT_CACHE: ~/.cache/neutracer.
set -euo pipefail

here=$(dirname "$0")
cache=${NT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/neutracer}/wheels
mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9

while read -r requirement hash; do
  case $requirement in '' | '#'*) continue ;; esac
  name=${requirement%%==*} version=${requirement##*==}
  to=$cache/$name-$version
  case $name in nvidia-cuda-*) whole=$to/include ;; *) whole=$to ;; esac
  [ ! -d "$whole" ] || continue
  work=$cache/.$name-$version.$$
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work/lib"
  # pip takes more than one requirement a line only from a file.
  printf '%s %s\n' "$requirement" "$hash" >"$work/requirements"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --require-hashes --dest "$work" --requirement "$work/requirements" >&2
  python3 - "$work"/*.whl "$work/lib" <<'PY'
import os, sys, zipfile
has_headers = "_cuda_" in os.path.basename(sys.argv[1])
of_cupti = "_cuda_cupti" in os.path.basename(sys.argv[1])
with zipfile.ZipFile(sys.argv[1]) as wheel:
    for name in wheel.namelist():
        base = os.path.basename(name)
        to = None
        if ".so" in base and "/lib/" in name:
            to = base if base.startswith("libcupti.") or not of_cupti else None
        elif base in ("nvml.h", "amdsmi_wrapper.py"):
            to = base
        elif has_headers and "/include/" in name and base.endswith(".h"):
            to = os.path.join("include", name.split("/include/", 1)[1])
        if to:
            path = os.path.join(sys.argv[2], to)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as out:
                out.write(wheel.read(name))
PY
  rm -rf "$to"
  mv "$work/lib" "$to"
  rm -rf "$work"
done <"$here/${1:-wheels.txt}"
echo "$cache"
