#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A slow rank of the training job is named, class compute, within ten seconds, and nobody else.
exec tests/e2e/runs.sh --job train --fault compute --runs 2
