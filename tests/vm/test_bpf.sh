#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Probes and samples on a stock kernel: 6.1 has perf links alone, 6.12 multi links. There, too, every row
# of the table must record exactly what it records here. PART=short: without what hardly depends on the
# kernel.
set -euo pipefail

tests='test_rows test_calls test_process_counters test_shares test_discover'
tests+=' test_gpu_batch test_event_query test_capture test_rdma test_rdma_detail'
# More than half of the time: places of probes, how the ring fills, what Python programs map, multiplications and
# their times, collections of Python, single calls, files of libraries.
[ "${PART:-}" = short ] || tests+=' test_attach test_ring test_python test_gemm test_gemm_time test_gc_probe test_detail test_discover_files'

# shellcheck disable=SC2086 # words
exec tests/vm/programs.sh $tests
