#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Each function that an installed MPI library exports has a row in agent/probes/probe_mpi.c, or is of a
# kind that needs none. A call without a row is not seen: mpi4py 4 calls MPI_Allreduce_c alone where a
# library has it.
set -euo pipefail

# Kinds without a row, as patterns of names without "MPI_".
no_row=(
  # Local: handles, types, groups, attributes, errors, environment.
  'Type_*' 'Group_*' 'Info_*' 'Op_*' 'Attr_*' 'Errhandler_*' 'Error_*' 'Add_error_*' 'Remove_error_*' 'Status_*'
  'Get_*' 'Address' 'Aint_*' 'Alloc_mem' 'Free_mem' 'Buffer_*' 'Keyval_*' 'Pcontrol' 'Wtick' 'Wtime'
  'Initialized' 'Finalized' 'Is_thread_main' 'Query_thread' 'Register_datarep*' 'Request_*' 'Dims_create'
  'Cart_coords' 'Cart_get' 'Cart_map' 'Cart_rank' 'Cart_shift' 'Cartdim_get' 'Graph_get' 'Graph_map'
  'Graph_neighbors*' 'Graphdims_get' 'Dist_graph_neighbors*' 'Topo_test' 'Pack*' 'Unpack*' 'Reduce_local*'
  'Comm_call_errhandler' 'Comm_compare' 'Comm_create_errhandler' 'Comm_create_keyval' 'Comm_delete_attr'
  'Comm_free_keyval' 'Comm_get_*' 'Comm_set_*' 'Comm_group' 'Comm_remote_*' 'Comm_test_inter' 'Win_call_errhandler'
  'Win_create_errhandler' 'Win_create_keyval' 'Win_delete_attr' 'Win_free_keyval' 'Win_get_*' 'Win_set_*'
  'Win_shared_query*' 'Win_attach' 'Win_detach' 'Win_sync' 'Grequest_*' 'Cancel' '*_f2c' '*_c2f'
  '*2c' '*2f*'
  # Polled in loops; a completion that waits is probed.
  'Test*' 'Iprobe' 'Improbe' 'Win_test' 'Parrived'
  # Return at once: what is started completes in a call that is probed.
  '*_init' '*_init_c' 'Start' 'Startall' 'Pready*' 'Imrecv*' 'Put*' 'Get' 'Get_c' 'Get_accumulate*' 'Accumulate*'
  'Raccumulate*' 'Rget*' 'Rput*' 'Fetch_and_op' 'Compare_and_swap' 'Comm_idup*' 'Win_post' 'Win_start' 'Win_lock*'
  # Once in a program: dynamic processes, sessions, windows.
  'Close_port' 'Open_port' 'Lookup_name' 'Publish_name' 'Unpublish_name' 'Comm_accept' 'Comm_connect' 'Comm_join'
  'Comm_spawn*' 'Comm_disconnect' 'Comm_create_from_group' 'Intercomm_*' 'Session_*' 'Win_allocate*' 'Win_create*'
  'Win_free'
  # Storage: seen as I/O of the process.
  'File_*'
)

rows=$("${CC:-gcc}" -std=gnu17 -I. -Ibuild/gen -E -P agent/probes/probe_mpi.c | grep -o '\.symbol = "[^,]*' |
  tr -d ' "' | cut -d= -f2 | sort -u)
[ "$(wc -l <<<"$rows")" -ge 140 ] || {
  echo "the rows of agent/probes/probe_mpi.c cannot be read"
  exit 1
}

needs_row() { # needs_row NAME
  local pattern
  for pattern in "${no_row[@]}"; do
    # shellcheck disable=SC2254 # a pattern
    case ${1#MPI_} in $pattern) return 1 ;; esac
  done
}

bad=0 read=0
for library in /usr/lib/*/libmpi.so.[0-9]* /usr/lib/*/libmpich.so.[0-9]*; do
  if [ ! -f "$library" ] || [ -L "$library" ]; then
    continue
  fi
  read=$((read + 1))
  while IFS= read -r name; do
    needs_row "$name" || continue
    echo "$library: $name has no row in agent/probes/probe_mpi.c"
    bad=1
  done < <(comm -23 <(nm -D --defined-only "$library" | awk '$2 ~ /[TWt]/ { print $3 }' | grep '^MPI_[A-Z][a-z]' | sort -u) <(echo "$rows"))
done
[ "$read" -gt 0 ] || {
  echo "skip: mpi: no MPI library is installed"
  exit 77
}
exit $bad
