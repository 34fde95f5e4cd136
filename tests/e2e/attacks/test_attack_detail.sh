#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# All ranks of the node are at level 1, and one process floods it with collectives: their records keep to
# their rate and are accounted for, and those of the healthy job are whole.
set -euo pipefail
# shellcheck source=tests/attack/watch.sh
. tests/attack/watch.sh

seconds=${NT_ATTACK_SECONDS:-15}
rate=8000

setup_attack --level 1 --detail-node-rate "$rate"
healthy_job
watch_begin
before=$(metric neutracer_agent_detail_records_total) begin=$(now_ms)
attack_runs spin --threads 4 --function ncclAllReduce --seconds "$seconds"
watch_end "single calls of a flood"
records=$(($(metric neutracer_agent_detail_records_total) - before)) took=$(($(now_ms) - begin))
echo "$records records in $took ms, $(metric neutracer_agent_detail_lost_total) lost," \
  "$(metric neutracer_agent_detail_events_dropped_total) dropped"
# A period may have twice its aim.
[ "$records" -gt 1000 ] || complain "there are $records records in $took ms"
[ "$records" -le $((2 * rate * (took + 2000) / 1000)) ] ||
  complain "there are $records records in $took ms at a rate of $rate a second"
"$bin/neutracer" detail --bus "spool:$work/spool" --seconds 1s --rewind 10s --json "$job_name" >"$work/out/detail.json"
jq -es 'map(select(.call == "ncclAllReduce")) | length > 100 and all(.probability == 1)' "$work/out/detail.json" >/dev/null ||
  complain "collectives of the healthy job were sampled, or are missing"
healthy_job_is_complete "single calls of a flood"
all_held
