# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# For scripts that use tests/e2e/lib.sh: what the stand-in for NVML states of GPUs whose ranks compute and wait.

compute_ms=150 # long, beside what a busy machine adds to a step

# The step of the median rank; 0 before there is one.
step_ms() {
  [ -z "$job_id" ] || ranks | jq '[.[].step_seconds | select(. != null) * 1000] | sort | .[length / 2 | floor] // 0'
}

# drive [CARD FACTOR]: eight cards with a rank each, that compute for compute_ms of a step, with tensor cores for
# three eighths of that, and else wait in a kernel on 15 % of the multiprocessors. One is slower by a factor, and hot.
drive() {
  local card=0 pid step
  step=$(step_ms)
  # shellcheck disable=SC2154 # callers set it
  for pid in $(ranks_of "$job_pid"); do
    awk -v card="$card" -v pid="$pid" -v slow="${1:--1}" -v factor="${2:-1}" -v step="$step" \
      -v work="$compute_ms" 'BEGIN {
        if (card == slow) work *= factor
        tensor = 0.375 * work
        step = step < work ? work : step
        printf "%d most-clock 1980\n%d gpm 1\n%d pid %d\n", card, card, card, pid
        printf "%d gpm-2 %d\n", card, 100000 * (0.85 * work + 0.15 * (step - work)) / step
        printf "%d gpm-5 %d\n", card, 100000 * tensor / step
        printf "%d clock %d\n%d reasons %d\n", card, card == slow ? 1980 / factor : 1980, card, card == slow ? 32 : 0
      }'
    card=$((card + 1))
  done >"$SIM_NVML.new"
  mv "$SIM_NVML.new" "$SIM_NVML"
}

card_of() { # card_of RANK
  local pid
  pid=$(ranks | jq -r ".[] | select(.rank == $1) | .pid")
  awk -v pid="$pid" '$2 == "pid" && $3 == pid { print $1 }' "$SIM_NVML"
}
