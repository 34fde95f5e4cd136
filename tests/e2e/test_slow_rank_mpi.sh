#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A slow rank of an MPI job is named, class compute, within ten seconds, and nobody else.
exec tests/e2e/runs.sh --job mpi --fault compute --runs 2
