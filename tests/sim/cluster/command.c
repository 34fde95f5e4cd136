/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/command.h"

#include <stdio.h>
#include <stdlib.h>

/* With as few digits as read back the same. */
static void print_number(const char *before, double number)
{
	char text[32];

	for (int digits = 1; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, number);
		if (strtod(text, NULL) == number)
			break;
	}
	(void)printf("%s%s", before, text);
}

static void print_fault(const struct cl_fault *f)
{
	(void)printf(" --fault '%s %u,%u", cl_fault_name(f->kind), f->target, f->peer);
	print_number(" ", f->factor);
	(void)printf(" from %u", f->from);
	if (f->until != UINT32_MAX)
		(void)printf(" until %u", f->until);
	if (f->ramp)
		(void)printf(" ramp %u", f->ramp);
	if (f->of)
		(void)printf(" on %u of %u%s", f->on, f->of, f->random ? " at random" : "");
	(void)printf("'");
}

static void print_structure(const struct cl_structure *t)
{
	if (t->prefetch)
		(void)printf(" --prefetch");
	if (t->ahead)
		(void)printf(" --ahead %u", t->ahead);
	if (t->save_every) {
		(void)printf(" --save-every %u", t->save_every);
		print_number(" --save ", t->save_s);
	}
	if (t->shares > 0)
		print_number(" --shares ", t->shares);
	if (t->warmup)
		(void)printf(" --warmup %u", t->warmup);
	if (t->phase) {
		(void)printf(" --phase %u", t->phase);
		print_number(" --phase-factor ", t->phase_factor);
	}
	if (t->fleet > 0)
		print_number(" --fleet ", t->fleet);
}

void cl_command_print(const struct cl_scenario *scenario)
{
	const struct cl_scenario *s = scenario;

	(void)printf("cluster --tp %u --dp %u --pp %u --ep %u --microbatches %u --layers %u "
		     "--buckets %u%s%s%s%s%s --mode %s --steps %u --node-ranks %u --seed %llu",
		     s->tp, s->dp, s->pp, s->ep, s->microbatches, s->layers, s->buckets,
		     s->sharded ? " --sharded" : "", s->rendezvous ? " --rendezvous" : "",
		     s->ring ? " --ring" : "", s->counters ? " --counters" : "",
		     s->aligned_end ? "" : " --free-end", cl_mode_name(s->mode), s->steps,
		     s->node_ranks, (unsigned long long)s->seed);
	print_number(" --step ", s->step_s);
	print_number(" --jitter ", s->jitter);
	print_number(" --spread ", s->spread);
	print_number(" --hiccups ", s->hiccups);
	print_number(" --lost ", s->weather.lost);
	print_number(" --doubled ", s->weather.doubled);
	print_number(" --late ", s->weather.late);
	print_number(" --intervals-lost ", s->weather.intervals_lost);
	print_number(" --clock-offset ", s->weather.clock_offset_s);
	print_number(" --clock-drift ", s->weather.clock_drift);
	if (s->stride != 1)
		(void)printf(" --stride %u", s->stride);
	if (s->late_agents)
		(void)printf(" --late-agents %u", s->late_agents);
	if (s->evaluate_every)
		(void)printf(" --evaluate-every %u --evaluation %u", s->evaluate_every,
			     s->evaluation);
	if (s->resize)
		(void)printf(" --resize %u --dp-before %u --dp-after %u", s->resize, s->dp_before,
			     s->dp_after);
	if (s->bare > 0)
		print_number(" --bare ", s->bare);
	if (s->fabric)
		(void)printf(" --fabric%s", s->proxies ? " --proxies" : "");
	if (s->start_s > 0)
		print_number(" --start ", s->start_s);
	print_structure(&s->structure);
	for (size_t i = 0; i < s->faults; i++)
		print_fault(&s->fault[i]);
	(void)printf("\n");
}
