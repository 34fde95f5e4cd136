#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A rank whose data come late is named with class host.
exec tests/e2e/runs.sh --job train --fault loader --runs 1
