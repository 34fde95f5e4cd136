#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Builds what the tests on a Kubernetes run beside the product's own image: the ranks of a job and a
# Kafka, into build/cluster/*.tar.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=build/cluster
mkdir -p "$out"
deploy/image/image.sh neutracer.test/rank:1 "$out/rank.tar" -f tests/cluster/rank/Dockerfile \
  --ignorefile tests/cluster/rank/Dockerfile.dockerignore . >"$out/rank.log" 2>&1 ||
  { tail -n 20 "$out/rank.log" >&2 && exit 1; }

# Its context is a directory of its own: the jars do not lie in this tree.
jars=$(tests/kafka/kafka.sh fetch 3.9.1)
rm -rf "$out/kafka"
mkdir "$out/kafka"
cp -rl "$jars" "$out/kafka/jars" 2>/dev/null || cp -r "$jars" "$out/kafka/jars"
cp tests/cluster/kafka/run.sh "$out/kafka"
deploy/image/image.sh neutracer.test/kafka:3.9.1 "$out/kafka.tar" -f tests/cluster/kafka/Dockerfile \
  "$out/kafka" >"$out/kafka.log" 2>&1 || { tail -n 20 "$out/kafka.log" >&2 && exit 1; }
rm -rf "$out/kafka"
