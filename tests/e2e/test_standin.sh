#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The stand-in libraries behave as the tests of the product expect.
exec build/sim/selftest
