#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What the Kafka bus passes with the librdkafka of this machine, with that of the image, which is a later
# one: the same programs, with the image's libraries beside them. One broker, and three.
set -euo pipefail
image=build/image/neutracer.tar
[ -f "$image" ] || { echo "skip: kafka: there is no $image: 'make image' builds it" && exit 77; }
. tests/kafka/lib.sh

tar -xf "$image" -C "$kafka_dir" manifest.json
jq -r '.[0].Layers[]' "$kafka_dir/manifest.json" >"$kafka_dir/layers"
while read -r layer; do
  tar -xOf "$image" "$layer" | tar -x -C "$kafka_dir" --wildcards 'usr/lib/*-linux-gnu/*.so*' '*/sbom.spdx.json' 2>/dev/null || :
done <"$kafka_dir/layers"
libraries=$(dirname "$kafka_dir"/usr/lib/*-linux-gnu/librdkafka.so.1)
loader=$(echo "$libraries"/ld-linux-*.so.*)
of_tests=$(dirname "$(realpath /usr/lib/*/libcmocka.so.0)") # what only the tests need
with_image() { try "$loader" --library-path "$libraries:$of_tests" "$bin/$1"; }
echo "# librdkafka of the image: $(jq -r '.packages[] | select(.name == "librdkafka1").versionInfo' \
  "$kafka_dir/usr/share/doc/neutracer/sbom.spdx.json")"

kafka --version 3.9.1
with_image contract
with_image bus
kafka --version 4.1.1 --nodes 3
with_image three
exit $status
