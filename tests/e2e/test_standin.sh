#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Tests the stand-in libraries themselves.
exec build/sim/selftest
