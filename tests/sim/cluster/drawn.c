/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Plays scenarios that are drawn, not written, and prints each that went wrong with the command that
 * plays it again; then how often the right one was named.
 *
 *	drawn [--seeds FIRST,LAST] [--calls N] [--mode NAME] [--list] [--fabric] [--proxies]
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/parse_number.h"
#include "tests/sim/cluster/cluster.h"
#include "tests/sim/cluster/command.h"
#include "tests/sim/cluster/draw.h"
#include "tests/sim/cluster/rate.h"
#include "tests/sim/cluster/truth/sight.h"
#include "tests/sim/cluster/truth/truth.h"

static double since(const struct cl_outcome *o, uint64_t real_ns)
{
	return ((double)real_ns - (double)o->start_ns) / 1e9;
}

static void print_said(const struct nt_judgement *judgement, const struct cl_outcome *o)
{
	for (size_t i = 0; i < judgement->incidents; i++) {
		const struct nt_wire_incident *in = &judgement->judged[i].incident;

		(void)printf("    said (%s %s; since %.1f seen %.1f until %.1f s; cost %.3f): %s\n",
			     in->state, in->class, since(o, in->since_real_ns),
			     since(o, in->seen_real_ns),
			     in->until_real_ns ? since(o, in->until_real_ns) : -1.0,
			     1 - 1 / in->slowdown, in->summary);
	}
	if (!judgement->incidents)
		(void)printf("    said: nothing\n");
}

struct options {
	double calls;
	const char *mode;
	bool list;
	bool fabric, proxies; /* of jobs that can have them: struct cl_scenario */
};

static int run_one(uint64_t seed, const struct options *opt, struct cl_score *sum, uint32_t bad[6])
{
	struct cl_scenario s = cl_draw(seed, opt->calls);
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct cl_outcome outcome = {0};
	struct cl_score score;
	char flaws[128] = "";
	int r;

	if (opt->mode && strcmp(opt->mode, cl_mode_name(s.mode)) != 0)
		return 0;
	s.fabric = cl_scenario_can_have_proxies(&s) && (opt->fabric || opt->proxies);
	s.proxies = s.fabric && opt->proxies;
	r = nt_judgement_new(&judgement);
	r = r ?: cl_run(&s, NULL, judgement, &outcome);
	if (r < 0)
		return r;
	score = cl_truth_score(&s, judgement, &outcome);
	sum->wanted += score.wanted;
	sum->found += score.found;
	sum->classed += score.classed;
	sum->accused += score.accused;
	sum->wrong += score.wrong;
	sum->needless += score.needless;
	sum->twice += score.twice;
	sum->open += score.open;
	(void)snprintf(flaws, sizeof(flaws), "%s%s%s%s%s%s", score.wrong ? " WRONG" : "",
		       score.found < score.wanted ? " MISSED" : "",
		       score.classed < score.found ? " CLASS" : "",
		       score.needless ? " NEEDLESS" : "", score.twice ? " TWICE" : "",
		       score.open ? " OPEN" : "");
	bad[0] += score.wrong > 0;
	bad[1] += score.found < score.wanted;
	bad[2] += score.classed < score.found;
	bad[3] += score.needless > 0;
	bad[4] += score.twice > 0;
	bad[5] += score.open > 0;
	if (!flaws[0] && !opt->list)
		return 0;
	(void)printf("%llu:%s [%s, wanted %u found %u, %.1f s, fault at %.1f of %.1f s; costs",
		     (unsigned long long)seed, flaws, nt_tier_name(cl_sight_tier(&s)), score.wanted,
		     score.found, score.seconds, since(&outcome, (uint64_t)outcome.fault_ns),
		     since(&outcome, (uint64_t)outcome.end_ns));
	for (size_t i = 0; i < s.faults; i++)
		(void)printf(" %.3f/%.3f", outcome.cost[i].part, outcome.cost[i].alone);
	(void)printf("]\n    ");
	cl_command_print(&s);
	print_said(judgement, &outcome);
	(void)fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{"seeds", required_argument, NULL, 's'},
		{"calls", required_argument, NULL, 'c'},
		{"mode", required_argument, NULL, 'm'},
		{"list", no_argument, NULL, 'l'},
		{"fabric", no_argument, NULL, 'F'},
		{"proxies", no_argument, NULL, 'P'},
		{0},
	};
	uint64_t first = 1, last = 100, calls = 1000000;
	struct cl_score sum = {0};
	uint32_t bad[6] = {0};
	struct options opt = {0};
	const char *comma;
	int key, r = 0;

	while ((key = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (key) {
		case 's':
			comma = strchrnul(optarg, ',');
			r = nt_parse_u64(optarg, (size_t)(comma - optarg), 0, UINT32_MAX, &first);
			last = first;
			if (r == 0 && *comma)
				r = nt_parse_u64(comma + 1, strlen(comma + 1), first, UINT32_MAX,
						 &last);
			break;
		case 'c':
			r = nt_parse_u64(optarg, strlen(optarg), 1000, UINT32_MAX, &calls);
			break;
		case 'm':
			opt.mode = optarg;
			break;
		case 'l':
			opt.list = true;
			break;
		case 'F':
			opt.fabric = true;
			break;
		case 'P':
			opt.proxies = true;
			break;
		default:
			r = -EINVAL;
		}
	}
	if (r < 0)
		return 2;
	opt.calls = (double)calls;
	for (uint64_t seed = first; seed <= last && r == 0; seed++)
		r = run_one(seed, &opt, &sum, bad);
	(void)printf(
		"%llu runs: wanted %u found %u class %u accused %u wrong %u needless %u twice %u "
		"open %u;",
		(unsigned long long)last - first + 1, sum.wanted, sum.found, sum.classed,
		sum.accused, sum.wrong, sum.needless, sum.twice, sum.open);
	cl_rate_print(" precision ", sum.accused - sum.wrong, sum.accused);
	cl_rate_print(" recall ", sum.found, sum.wanted);
	cl_rate_print(" class ", sum.classed, sum.found);
	(void)printf("\n");
	(void)printf("runs: wrong %u missed %u class %u needless %u twice %u open %u\n", bad[0],
		     bad[1], bad[2], bad[3], bad[4], bad[5]);
	return r < 0;
}
