#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Descriptors of the real cuBLASLt of three major versions of CUDA, which are 1.4 GB to fetch.
set -euo pipefail

make --no-print-directory build/release/test-bpf/test_cublas >/dev/null
NT_LONG=1 exec build/release/test-bpf/test_cublas
