#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A slow rank of an MPI job is named, class compute, and nobody else. How soon: bench/verdict.sh.
exec tests/e2e/runs.sh --job mpi --fault compute --runs 1
