#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Tests how the stand-in libnccl loads and calls profiler plugins.
exec build/sim/selftest_profiler
