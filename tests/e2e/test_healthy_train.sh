#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A healthy minute of the training job, twice, makes no incident; nor does its end.
exec tests/e2e/runs.sh --job train --fault none --runs 2 --seconds 60
