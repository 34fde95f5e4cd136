#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""hold.py PID HELD_MS PERIOD_MS: stops a process for a part of each period, until either one ends."""
import os
import signal
import sys
import time

pid, held, period = int(sys.argv[1]), float(sys.argv[2]) / 1e3, float(sys.argv[3]) / 1e3
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
try:
    while True:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(held)
        os.kill(pid, signal.SIGCONT)
        time.sleep(period - held)
except ProcessLookupError:
    pass
finally:
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass
