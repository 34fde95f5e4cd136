/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A ring of the last values of a series. */
#include "detect/math/ring.h"

#include <string.h>

#include "detect/math/stats.h"

void nt_ring_add(struct nt_ring *ring, uint32_t keep, double value)
{
	if (!keep || keep > NT_RING_MAX)
		keep = NT_RING_MAX;
	if (ring->next >= keep)
		ring->next = 0;
	ring->value[ring->next++] = value;
	if (ring->count < keep)
		ring->count++;
}

double nt_ring_last(const struct nt_ring *ring)
{
	return ring->next && ring->next <= ring->count ? ring->value[ring->next - 1] : 0.0;
}

double nt_ring_median(const struct nt_ring *ring)
{
	double copy[NT_RING_MAX];

	memcpy(copy, ring->value, sizeof(copy));
	return nt_stats_median_of(copy, ring->count);
}
