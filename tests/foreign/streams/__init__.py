# SPDX-License-Identifier: GPL-3.0-or-later
"""A generator of recordings with a model of its own: a host thread and streams for each rank.

Nothing here is shared with the modules in the folder above, nor with the detector. A host launches kernels and
collectives one after the other, up to a limit ahead of its device. The compute stream runs its kernels in order, and
a kernel waits for the collectives that it needs. Each kind of collective has a stream of its own, so that it overlaps
with computing. A collective begins on each rank by itself, and ends for all after the last has begun.
"""
