/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Plays every case on every layout with several seeds, and prints how often the right one was named:
 * plain counts, never adjusted. With --large the layouts are those of 512 to 16,384 ranks, each case
 * with one kind of hosts in turn: hours instead of minutes. With --wrong it prints the command that
 * plays each run that went wrong. With --list it prints every run and what was said, and no table.
 * With --one-in N it plays one run of N, of each case and each layout. With --fabric the network of
 * jobs whose hosts run ahead has its healthy moods, and with --proxies NCCL's proxies report what they
 * send, too.
 *
 *	accuracy [--seeds FIRST,LAST] [--case NAME] [--layout NAME] [--mode NAME] [--large] [--wrong]
 *		 [--list] [--one-in N] [--measures] [--fabric] [--proxies]
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/parse_number.h"
#include "tests/sim/cluster/case.h"
#include "tests/sim/cluster/cluster.h"
#include "tests/sim/cluster/command.h"
#include "tests/sim/cluster/parallelism.h"
#include "tests/sim/cluster/rate.h"
#include "tests/sim/cluster/truth/sight.h"
#include "tests/sim/cluster/truth/truth.h"

enum {
	MAX_SECONDS = 4096,
	EVALUATION = 4, /* steps of it */
	EQUAL_BUCKETS = 12,
};

static const struct layout {
	const char *name;
	uint32_t tp, dp, pp, ep, microbatches;
	bool sharded;
	uint32_t node_ranks; /* 0: the usual */
	bool is_large;
	uint32_t layers; /* 0: the usual */
} layouts[] = {
	{"dp8", 1, 8, 1, 1, 1},
	{"dp64", 1, 64, 1, 1, 1},
	{"fsdp32", 1, 32, 1, 1, 1, true},
	{"tp2-dp8", 2, 8, 1, 1, 1},
	{"tp8-dp8", 8, 8, 1, 1, 1},
	{"pp4-dp8", 1, 8, 4, 1, 4},
	{"tp2-pp2-dp8", 2, 8, 2, 1, 4},
	/* Too few of a role to be peers. */
	{"dp2", 1, 2, 1, 1, 1},
	{"dp3", 1, 3, 1, 1, 1},
	{"pp4-dp2", 1, 2, 4, 1, 4},
	{"tp4-dp2", 4, 2, 1, 1, 1},
	{"ep4-dp16", 1, 16, 1, 4, 1},
	/* A tensor group is on two nodes: communicators share NICs. */
	{"tp4-dp8-split", 4, 8, 1, 1, 1, false, 2},
	{"dp512", 1, 512, 1, 1, 1, .is_large = true},
	{"fsdp1024", 1, 1024, 1, 1, 1, true, .is_large = true},
	{"ep8-dp1024", 1, 1024, 1, 8, 1, .is_large = true},
	{"tp8-pp4-dp64", 8, 64, 4, 1, 4, .is_large = true},
	{"tp8-pp4-dp512", 8, 512, 4, 1, 4, .is_large = true, .layers = 2},
};

/* Largest relative error of GPU hours, and of the slowdown, that counts as right. */
static const double close_enough = 0.05;

struct options {
	uint64_t first, last, one_in;
	const char *kind, *layout, *mode;
	bool large, wrong, list;
	bool measures; /* devices, as the agent schedules it */
	bool fabric, proxies; /* of jobs that can have them: struct cl_scenario */
};

struct sums {
	uint32_t runs, bad_runs;
	struct cl_score score;
	double second[MAX_SECONDS], cost[MAX_SECONDS];
	size_t seconds, costs;
	uint32_t priced, close,
		unpriced; /* runs whose GPU hours were told, were so rightly; were not */
	uint32_t slowed, slowed_close; /* the same for the slowdown */
};

static uint32_t draw(uint64_t *state, uint32_t below)
{
	*state = nt_hash_mix(*state + 0x9e3779b97f4a7c15ULL);
	return (uint32_t)((*state >> 32) * below >> 32);
}

/* "compute R 1.3 from 30" with numbers in the place of letters. */
static int draw_fault(struct cl_scenario *s, const char *text, uint64_t *random)
{
	char filled[128];
	uint32_t node = UINT32_MAX;
	size_t n = 0;
	const char *why;

	for (const char *c = text; *c && n < sizeof(filled) - 16; c++) {
		uint32_t number;

		if (!strchr("RNMS", *c)) {
			filled[n++] = *c;
			continue;
		}
		number = draw(random, *c == 'R'   ? cl_scenario_ranks(s)
				      : *c == 'S' ? s->pp
						  : cl_scenario_nodes(s));
		if (*c == 'N')
			node = number;
		if (*c == 'M' && number == node)
			number = (number + 1) % cl_scenario_nodes(s);
		if (*c == 'R' && s->faults && number == s->fault[0].target)
			number = (number + 1) % cl_scenario_ranks(s);
		n += (size_t)snprintf(filled + n, sizeof(filled) - n, "%u", number);
	}
	filled[n] = '\0';
	return cl_fault_parse(filled, &s->fault[s->faults++], &why);
}

static int make_scenario(const struct cl_case *kind, const struct layout *layout, enum cl_mode mode,
			 uint64_t seed, struct cl_scenario *ret_scenario)
{
	struct cl_scenario s = cl_scenario_default();
	uint64_t random = nt_hash_u64(nt_hash_text(NT_HASH_SEED, kind->name), seed);
	int r = 0;

	s.seed = seed;
	s.tp = layout->tp;
	s.dp = layout->dp;
	s.pp = layout->pp;
	s.ep = layout->ep;
	s.microbatches = layout->microbatches;
	s.sharded = layout->sharded;
	s.layers = layout->layers ? layout->layers : s.layers;
	s.mode = mode;
	s.jitter = seed % 2 ? 0.002 : 0.02;
	s.aligned_end = seed / 2 % 2 == 0;
	s.spread = kind->spread;
	s.hiccups = kind->hiccups;
	s.structure = kind->structure;
	s.evaluate_every = kind->evaluate_every;
	s.evaluation = kind->evaluate_every ? EVALUATION : 0;
	if (kind->equal_buckets) {
		s.buckets = EQUAL_BUCKETS;
		s.aligned_end = false;
	}
	s.weather = kind->weather;
	s.weather.intervals_lost = mode == CL_PLUGIN ? kind->weather.lost / 10 : 0;
	/* Neighbours of a group are on other nodes, as they are where nodes are many. */
	s.node_ranks = cl_scenario_ranks(&s) <= 16 ? 4 : 8;
	if (layout->node_ranks)
		s.node_ranks = layout->node_ranks;
	s.rendezvous = s.ring = kind->peers;
	s.counters = kind->counters;
	s.steps = kind->steps ? kind->steps : s.steps;
	for (size_t i = 0; i < 2 && kind->fault[i] && r == 0; i++)
		r = draw_fault(&s, kind->fault[i], &random);
	*ret_scenario = s;
	return r;
}

static bool fits(const struct cl_case *kind, const struct layout *layout)
{
	/* Who sends to whom is to be seen. */
	if (kind->peers && layout->pp < 2 && (layout->sharded || layout->dp < 2))
		return false;
	if (kind->structure.prefetch && !layout->sharded)
		return false;
	if (kind->needs_stages && layout->pp < 2)
		return false;
	return !kind->needs_nodes || layout->tp * layout->dp * layout->pp >= 16;
}

static bool is_close(double cost)
{
	return fabs(cost - 1) <= close_enough;
}

static void add(struct sums *sums, const struct cl_score *score)
{
	sums->runs++;
	sums->bad_runs += score->found < score->wanted || score->wrong || score->needless;
	sums->score.wanted += score->wanted;
	sums->score.found += score->found;
	sums->score.classed += score->classed;
	sums->score.accused += score->accused;
	sums->score.wrong += score->wrong;
	sums->score.needless += score->needless;
	if (score->seconds >= 0 && sums->seconds < MAX_SECONDS)
		sums->second[sums->seconds++] = score->seconds;
	sums->slowed += score->slowdown >= 0;
	sums->slowed_close += is_close(score->slowdown);
	if (isnan(score->cost)) {
		sums->unpriced++;
	} else if (score->cost >= 0) {
		sums->priced++;
		sums->close += is_close(score->cost);
		if (sums->costs < MAX_SECONDS)
			sums->cost[sums->costs++] = score->cost;
	}
}

static int run_one(const struct options *opt, const struct cl_scenario *s,
		   struct sums sums[NT_TIER_END], struct sums all[NT_TIER_END + 1])
{
	const enum nt_tier tier = cl_sight_tier(s);
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct cl_outcome outcome;
	struct cl_score score;
	int r = nt_judgement_new(&judgement);

	r = r ?: cl_run(s, NULL, judgement, &outcome);
	if (r < 0)
		return r;
	score = cl_truth_score(s, judgement, &outcome);
	add(&sums[tier], &score);
	add(&all[tier], &score);
	add(&all[NT_TIER_END], &score);
	if (opt->list)
		(void)printf("run wanted %u found %u class %u wrong %u needless %u seconds %.1f "
			     "cost %.3f:\n",
			     score.wanted, score.found, score.classed, score.wrong, score.needless,
			     score.seconds, score.cost);
	else if (!opt->wrong ||
		 (score.found == score.wanted && score.classed == score.wanted && !score.wrong &&
		  !score.needless && (!(score.cost >= 0) || is_close(score.cost)) &&
		  (score.slowdown < 0 || is_close(score.slowdown))))
		return 0;
	(void)printf("    ");
	cl_command_print(s);
	if (score.cost >= 0)
		(void)printf("      GPU hours told / lost: %.3f\n", score.cost);
	if (score.slowdown >= 0)
		(void)printf("      slowdown told / true: %.3f\n", score.slowdown);
	for (size_t i = 0; i < judgement->incidents; i++)
		(void)printf("      said: %s\n", judgement->judged[i].incident.summary);
	if (!judgement->incidents)
		(void)printf("      said: nothing\n");
	return 0;
}

static int by_value(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static void print_sums(const char *name, const char *mode, const char *tier, struct sums *sums)
{
	const struct cl_score *s = &sums->score;

	qsort(sums->second, sums->seconds, sizeof(double), by_value);
	(void)printf("%-28s %-10s %-4s %5u %7u %6u %6u %8u %6u %8u", name, mode, tier, sums->runs,
		     s->wanted, s->found, s->classed, s->accused, s->wrong, s->needless);
	if (sums->seconds)
		(void)printf(" %7.1f %7.1f", sums->second[sums->seconds / 2],
			     sums->second[sums->seconds - 1]);
	else
		(void)printf(" %7s %7s", "-", "-");
	qsort(sums->cost, sums->costs, sizeof(double), by_value);
	if (sums->costs)
		(void)printf("  %5.2f %5.2f %5.2f", sums->cost[0], sums->cost[sums->costs / 2],
			     sums->cost[sums->costs - 1]);
	else
		(void)printf("  %5s %5s %5s", "-", "-", "-");
	(void)printf(" %5u %6u %5u\n", sums->priced, sums->close, sums->unpriced);
}

static bool is_chosen(const char *wanted, const char *name)
{
	return !wanted || strcmp(wanted, name) == 0;
}

/* One kind of hosts for each run of a large layout, the next one for the next seed. */
static bool is_its_turn(const struct options *opt, const struct cl_case *kind, size_t layout,
			enum cl_mode mode, uint64_t seed)
{
	const size_t turn = (size_t)(kind - cl_case_get(0)) + layout + seed;

	if ((turn + (size_t)mode) % opt->one_in)
		return false;
	return !layouts[layout].is_large || kind->peers || turn % CL_MODE_END == (size_t)mode;
}

static int run_kind(const struct options *opt, const struct cl_case *kind, enum cl_mode mode,
		    struct sums *all)
{
	struct sums *sums = calloc(NT_TIER_END, sizeof(*sums));
	int r = sums ? 0 : -ENOMEM;

	/* Calls that block have the times of their peers; of others nothing is played. */
	if ((kind->peers && mode != CL_BLOCKING) ||
	    (kind->needs_fabric && !opt->fabric && !opt->proxies)) {
		free(sums);
		return r;
	}
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].is_large != opt->large || !fits(kind, &layouts[i]) ||
		    !is_chosen(opt->layout, layouts[i].name))
			continue;
		for (uint64_t seed = opt->first; seed <= opt->last && r == 0; seed++) {
			struct cl_scenario s;

			if (!is_its_turn(opt, kind, i, mode, seed))
				continue;
			r = make_scenario(kind, &layouts[i], mode, seed, &s);
			if (kind->needs_fabric && !cl_scenario_can_have_proxies(&s))
				continue;
			s.measures = opt->measures;
			s.fabric =
				cl_scenario_can_have_proxies(&s) && (opt->fabric || opt->proxies);
			s.proxies = s.fabric && opt->proxies;
			r = r ?: run_one(opt, &s, sums, all);
		}
	}
	for (int i = 0; i < NT_TIER_END && r == 0; i++) {
		if (sums[i].runs && !opt->list)
			print_sums(kind->name, cl_mode_name(mode), nt_tier_name((enum nt_tier)i),
				   &sums[i]);
	}
	(void)fflush(stdout);
	free(sums);
	return r;
}

static void print_rates(const char *tier, const struct sums *sums)
{
	const struct cl_score *s = &sums->score;

	(void)printf("%s:", tier);
	cl_rate_print(" precision ", s->accused - s->wrong, s->accused);
	cl_rate_print(", recall ", s->found, s->wanted);
	cl_rate_print(", class ", s->classed, s->found);
	cl_rate_print(", runs without a flaw ", sums->runs - sums->bad_runs, sums->runs);
	cl_rate_print(", GPU hours within 5 % ", sums->close, sums->priced);
	(void)printf(" of %u, null in %u", sums->priced, sums->unpriced);
	cl_rate_print(", slowdown within 5 % ", sums->slowed_close, sums->slowed);
	(void)printf(" of %u\n", sums->slowed);
}

static int run_all(const struct options *opt)
{
	struct sums *all = calloc(NT_TIER_END + 1, sizeof(*all)); /* by tier, and of all */
	int r = all ? 0 : -ENOMEM;

	if (!opt->list)
		(void)printf("%-28s %-10s %-4s %5s %7s %6s %6s %8s %6s %8s %7s %7s  %s\n", "case",
			     "hosts", "tier", "runs", "wanted", "found", "class", "accused",
			     "wrong", "needless", "median", "most s",
			     "GPU hours told / lost,  runs within  null");
	for (size_t i = 0; i < cl_case_count(); i++) {
		for (int j = 0; j < CL_MODE_END && r == 0; j++) {
			if (is_chosen(opt->kind, cl_case_get(i)->name) &&
			    is_chosen(opt->mode, cl_mode_name((enum cl_mode)j)))
				r = run_kind(opt, cl_case_get(i), (enum cl_mode)j, all);
		}
	}
	for (int i = 0; i <= NT_TIER_END && r == 0; i++) {
		if (all[i].runs)
			print_sums("all", "", i < NT_TIER_END ? nt_tier_name((enum nt_tier)i) : "",
				   &all[i]);
	}
	for (int i = 0; i <= NT_TIER_END && r == 0; i++) {
		if (all[i].runs)
			print_rates(i < NT_TIER_END ? nt_tier_name((enum nt_tier)i) : "all",
				    &all[i]);
	}
	free(all);
	return r;
}

static int take_seeds(const char *text, struct options *opt)
{
	const char *comma = strchrnul(text, ',');
	int r = nt_parse_u64(text, (size_t)(comma - text), 0, UINT32_MAX, &opt->first);

	opt->last = opt->first;
	if (r == 0 && *comma)
		r = nt_parse_u64(comma + 1, strlen(comma + 1), opt->first, UINT32_MAX, &opt->last);
	return r;
}

static int usage(FILE *out, int code)
{
	(void)fprintf(out,
		      "usage: accuracy [--seeds FIRST,LAST] [--case NAME] [--layout NAME]\n"
		      "                [--mode NAME] [--large] [--wrong] [--list] [--one-in N]\n"
		      "                [--measures] [--fabric] [--proxies]\n");
	return code;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{"seeds", required_argument, NULL, 's'}, /* FIRST,LAST */
		{"case", required_argument, NULL, 'c'},
		{"layout", required_argument, NULL, 'l'},
		{"mode", required_argument, NULL, 'm'},
		{"large", no_argument, NULL, 'L'},
		{"wrong", no_argument, NULL, 'w'},
		{"list", no_argument, NULL, 'i'},
		{"measures", no_argument, NULL, 'M'}, /* devices in windows, with --mode plugin */
		{"fabric", no_argument, NULL, 'F'},
		{"proxies", no_argument, NULL, 'P'},
		{"one-in", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct options opt = {.first = 1, .last = 4, .one_in = 1};
	int key, r;

	while ((key = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (key) {
		case 's':
			if (take_seeds(optarg, &opt) < 0)
				return usage(stderr, 2);
			break;
		case 'c':
			opt.kind = optarg;
			break;
		case 'l':
			opt.layout = optarg;
			break;
		case 'm':
			opt.mode = optarg;
			break;
		case 'L':
			opt.large = true;
			break;
		case 'w':
			opt.wrong = true;
			break;
		case 'i':
			opt.list = true;
			break;
		case 'M':
			opt.measures = true;
			break;
		case 'F':
			opt.fabric = true;
			break;
		case 'P':
			opt.proxies = true;
			break;
		case 'o':
			if (nt_parse_u64(optarg, strlen(optarg), 1, 1000, &opt.one_in) < 0)
				return usage(stderr, 2);
			break;
		case 'h':
			return usage(stdout, 0);
		default:
			return usage(stderr, 2);
		}
	}
	r = run_all(&opt);
	if (r < 0)
		(void)fprintf(stderr, "accuracy: %s\n", strerrordesc_np(-r));
	return r < 0;
}
