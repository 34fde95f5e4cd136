#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Hangs in point-to-point code: a rank that makes no further call while its neighbours wait in sends,
# receives and waits, and one whose process is stopped, wherever it is.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
start_aggregator --resolve-after 10s
start_agent here
# Steps long enough for the budget of the probes: of calls seen in slices a hang has no culprit.
start_job halo 4 --compute-ms 20
seen 4
quiet 6
rank=$(draw 4)
fault "hang $rank"
expect 60 "a rank that makes no further call" hang "$rank"
open_incidents | jq -e '.[0].summary | contains("does not make the call that others wait for")' >/dev/null ||
  fail "the summary is wrong: $(open_incidents)"
heal
quiet 4

rank=$(draw 4)
stopped=$(ranks | jq ".[] | select(.rank == $rank) | .pid")
kill -STOP "$stopped"
expect 60 "a rank that is stopped" hang "$rank"
open_incidents | jq -e '.[0].summary | contains("is stopped while others wait for it")' >/dev/null ||
  fail "the summary is wrong: $(open_incidents)"
kill -CONT "$stopped"
heal
end_job || fail "the job failed"
