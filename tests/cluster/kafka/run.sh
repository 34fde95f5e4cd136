#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs one Kafka node: KAFKA_LOG_DIRS in the environment becomes log.dirs in its properties, and so on.
# CLUSTER_ID and KAFKA_HEAP_OPTS are what they are in Apache's image.
set -euo pipefail

properties=$(mktemp)
for name in $(compgen -e KAFKA_); do
  case $name in KAFKA_HEAP_OPTS | KAFKA_LOG4J_*) continue ;; esac
  key=${name#KAFKA_}
  key=${key,,}
  printf '%s=%s\n' "${key//_/.}" "${!name}" >>"$properties"
done
# shellcheck disable=SC2206 # two words
java=(java ${KAFKA_HEAP_OPTS:-} -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto -cp '/opt/kafka/libs/*')
"${java[@]}" kafka.tools.StorageTool format -t "${CLUSTER_ID:?}" -c "$properties" --ignore-formatted
exec "${java[@]}" kafka.Kafka "$properties"
