#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# LAMMPS as a distribution ships it: its steps, a rank that is stopped, and one that is killed.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

for program in lmp mpirun; do
  command -v "$program" >/dev/null || skip "mpi: $program is not installed"
done
setup
start_aggregator --resolve-after 10s
start_agent here

# A liquid of 16,384 atoms: several sends and receives a step, whose bytes change every 20 steps.
cat >"$work/in.lj" <<'END'
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 16 0 16 0 16
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo_style custom step cpu
thermo 100
run 10000000
END
job_log=$work/log/lammps.log
env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
  mpirun --oversubscribe --bind-to none --quiet -np 2 lmp -in "$work/in.lj" -log none >"$job_log" 2>&1 </dev/null &
job_pid=$!
seen 2

# Of the last 500 steps, by its own clock.
true_step() { awk '$1 ~ /^[0-9]+$/ && NF == 2 { n++; step[n % 6] = $1; at[n % 6] = $2 }
  END { if (n > 6) print (at[n % 6] - at[(n + 1) % 6]) / (step[n % 6] - step[(n + 1) % 6]) }' "$job_log"; }
step_is_right() {
  local truth reported
  truth=$(true_step)
  reported=$(api "/api/v1/jobs/$job_id" | jq '.step_seconds')
  [ -n "$truth" ] && [ "$reported" != null ] && jq -en "$reported / $truth | . > 0.6 and . < 1.7" >/dev/null
}
wait_until 60 "the step of LAMMPS" step_is_right ||
  fail "the step is $(true_step) s, $(api "/api/v1/jobs/$job_id" | jq '.step_seconds') were reported"
echo "a step of $(true_step) s, $(api "/api/v1/jobs/$job_id" | jq '.step_seconds') s reported"
quiet 4

rank=$(draw 2)
pid=$(ranks | jq ".[] | select(.rank == $rank) | .pid")
kill -STOP "$pid"
expect 60 "a rank that is stopped" hang "$rank"
kill -CONT "$pid"
heal
kill -KILL "$pid"
expect 60 "a rank that is killed" missing "$rank"
wait "$job_pid" || :
job_pid=
