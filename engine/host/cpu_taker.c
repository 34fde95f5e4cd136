/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/host/cpu_taker.h"

#include <stdio.h>
#include <string.h>

/* Of the sums so far, in each window: about the last five count. */
#define KEPT 0.8
#define MAIN 0.5 /* part of all */

static struct nt_cpu_taker *place_of(struct nt_cpu_takers *takers, uint32_t pid)
{
	struct nt_cpu_taker *least = &takers->taker[0];

	for (int i = 0; i < NT_CPU_TAKERS; i++) {
		struct nt_cpu_taker *taker = &takers->taker[i];

		if (taker->pid == pid)
			return taker;
		if (taker->ns < least->ns)
			least = taker;
	}
	*least = (struct nt_cpu_taker){.pid = pid};
	return least;
}

void nt_cpu_takers_add(struct nt_cpu_takers *takers, const struct nt_host_evidence *host)
{
	struct nt_cpu_taker *taker;

	takers->taken_ns *= KEPT;
	for (int i = 0; i < NT_CPU_TAKERS; i++)
		takers->taker[i].ns *= KEPT;
	takers->taken_ns += (double)host->taken_ns;
	if (!host->taker_pid || !host->taker_ns)
		return;
	taker = place_of(takers, host->taker_pid);
	taker->ns += (double)host->taker_ns;
	(void)snprintf(taker->name, sizeof(taker->name), "%s", host->taker ? host->taker : "");
}

const struct nt_cpu_taker *nt_cpu_takers_main(const struct nt_cpu_takers *takers, double *ret_part)
{
	const struct nt_cpu_taker *most = &takers->taker[0];

	for (int i = 1; i < NT_CPU_TAKERS; i++)
		if (takers->taker[i].ns > most->ns)
			most = &takers->taker[i];
	if (!most->pid || most->ns <= 0.0 || most->ns < MAIN * takers->taken_ns)
		return NULL;
	*ret_part = most->ns < takers->taken_ns ? most->ns / takers->taken_ns : 1.0;
	return most;
}
