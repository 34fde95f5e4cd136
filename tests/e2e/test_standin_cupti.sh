#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Tests the stand-in libcupti itself, and that libcuda loads a library that the environment names.
exec build/sim/selftest_cupti
