#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A healthy minute of the MPI job, twice, makes no incident; nor does its end.
exec tests/e2e/runs.sh --job mpi --fault none --runs 2 --seconds 60
