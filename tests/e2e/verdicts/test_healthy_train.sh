#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Forty healthy seconds of the training job make no incident; nor does its end. Minutes: bench/verdict.sh.
exec tests/e2e/runs.sh --job train --fault none --runs 1 --seconds 40
