/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Plays one scenario and prints the incidents that the product makes of it, as `neutracer analyze`
 * would; with --out it also leaves the recording that `neutracer analyze DIR` reads.
 *
 *	cluster --dp 64 --tp 4 --mode local-sync --fault 'compute 17 1.3 from 30'
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/report.h"
#include "common/base/parse_number.h"
#include "tests/sim/cluster/cluster.h"

struct options {
	struct cl_scenario scenario;
	const char *out;
	bool json;
};

/* Options with a number, and where it goes. */
static const struct {
	const char *name;
	size_t offset;
	bool whole; /* a uint32_t, else a double */
} numbers[] = {
	{"tp", offsetof(struct cl_scenario, tp), true},
	{"dp", offsetof(struct cl_scenario, dp), true},
	{"pp", offsetof(struct cl_scenario, pp), true},
	{"ep", offsetof(struct cl_scenario, ep), true},
	{"node-ranks", offsetof(struct cl_scenario, node_ranks), true},
	{"stride", offsetof(struct cl_scenario, stride), true},
	{"late-agents", offsetof(struct cl_scenario, late_agents), true},
	{"evaluate-every", offsetof(struct cl_scenario, evaluate_every), true},
	{"evaluation", offsetof(struct cl_scenario, evaluation), true},
	{"resize", offsetof(struct cl_scenario, resize), true},
	{"dp-before", offsetof(struct cl_scenario, dp_before), true},
	{"dp-after", offsetof(struct cl_scenario, dp_after), true},
	{"ahead", offsetof(struct cl_scenario, structure.ahead), true},
	{"save-every", offsetof(struct cl_scenario, structure.save_every), true},
	{"save", offsetof(struct cl_scenario, structure.save_s), false},
	{"shares", offsetof(struct cl_scenario, structure.shares), false},
	{"warmup", offsetof(struct cl_scenario, structure.warmup), true},
	{"phase", offsetof(struct cl_scenario, structure.phase), true},
	{"phase-factor", offsetof(struct cl_scenario, structure.phase_factor), false},
	{"fleet", offsetof(struct cl_scenario, structure.fleet), false},
	{"bare", offsetof(struct cl_scenario, bare), false},
	{"start", offsetof(struct cl_scenario, start_s), false},
	{"steps", offsetof(struct cl_scenario, steps), true},
	{"layers", offsetof(struct cl_scenario, layers), true},
	{"microbatches", offsetof(struct cl_scenario, microbatches), true},
	{"buckets", offsetof(struct cl_scenario, buckets), true},
	{"step", offsetof(struct cl_scenario, step_s), false},
	{"jitter", offsetof(struct cl_scenario, jitter), false},
	{"spread", offsetof(struct cl_scenario, spread), false},
	{"hiccups", offsetof(struct cl_scenario, hiccups), false},
	{"window", offsetof(struct cl_scenario, window_s), false},
	{"lost", offsetof(struct cl_scenario, weather.lost), false},
	{"doubled", offsetof(struct cl_scenario, weather.doubled), false},
	{"late", offsetof(struct cl_scenario, weather.late), false},
	{"intervals-lost", offsetof(struct cl_scenario, weather.intervals_lost), false},
	{"clock-offset", offsetof(struct cl_scenario, weather.clock_offset_s), false},
	{"clock-drift", offsetof(struct cl_scenario, weather.clock_drift), false},
};

enum {
	NUMBERS = sizeof(numbers) / sizeof(numbers[0]),
	FIRST_NUMBER = 256,
};

static int usage(FILE *out, int code)
{
	(void)fprintf(
		out,
		"usage: cluster [--tp N] [--dp N] [--pp N] [--ep N] [--sharded] [--free-end]\n"
		"  --prefetch      weights are gathered beside the kernels before\n"
		"  --rendezvous    a blocking send lasts until it is received\n"
		"  --ring          gradients go around by blocking send-receives\n"
		"  --counters      ports count what is sent again\n"
		"  --fabric        with --mode plugin or async: links of rings, and their moods\n"
		"  --proxies       with --fabric: NCCL's proxies report what they send\n"
		"  --mode MODE     blocking, local-sync, async or plugin\n"
		"  --fault FAULT   repeated: 'NAME TARGET[,PEER] FACTOR from STEP [until STEP]\n"
		"                  [ramp STEPS] [on N of M]'\n"
		"  --seed N        --json          --out DIR (of a spool)\n");
	for (int i = 0; i < NUMBERS; i++)
		(void)fprintf(out, "  --%s N\n", numbers[i].name);
	return code;
}

static int take_number(struct cl_scenario *scenario, int which, const char *text)
{
	void *at = (char *)scenario + numbers[which].offset;
	double value;

	if (nt_parse_double(text, strlen(text), 0, UINT32_MAX, &value) < 0)
		return -EINVAL;
	if (numbers[which].whole)
		*(uint32_t *)at = (uint32_t)value;
	else
		*(double *)at = value;
	return 0;
}

static int take_fault(struct cl_scenario *scenario, const char *text)
{
	const char *why;

	if (scenario->faults == CL_MAX_FAULTS)
		return -EINVAL;
	if (cl_fault_parse(text, &scenario->fault[scenario->faults], &why) < 0) {
		(void)fprintf(stderr, "cluster: fault '%s': %s\n", text, why);
		return -EINVAL;
	}
	scenario->faults++;
	return 0;
}

/* 1: help was asked for. */
static int parse(int argc, char **argv, struct options *opt)
{
	enum {
		FLAGS = 14,
	};
	struct option known[NUMBERS + FLAGS + 1] = {
		{"sharded", no_argument, NULL, 's'},    {"free-end", no_argument, NULL, 'e'},
		{"mode", required_argument, NULL, 'm'}, {"fault", required_argument, NULL, 'f'},
		{"seed", required_argument, NULL, 'r'}, {"json", no_argument, NULL, 'j'},
		{"out", required_argument, NULL, 'o'},  {"help", no_argument, NULL, 'h'},
		{"rendezvous", no_argument, NULL, 'v'}, {"ring", no_argument, NULL, 'i'},
		{"counters", no_argument, NULL, 'c'},   {"prefetch", no_argument, NULL, 'p'},
		{"fabric", no_argument, NULL, 'F'},     {"proxies", no_argument, NULL, 'P'},
	};
	int key, r = 0;

	for (int i = 0; i < NUMBERS; i++)
		known[FLAGS + i] =
			(struct option){numbers[i].name, required_argument, NULL, FIRST_NUMBER + i};
	while (r == 0 && (key = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (key) {
		case 's':
			opt->scenario.sharded = true;
			break;
		case 'e':
			opt->scenario.aligned_end = false;
			break;
		case 'v':
			opt->scenario.rendezvous = true;
			break;
		case 'i':
			opt->scenario.ring = true;
			break;
		case 'p':
			opt->scenario.structure.prefetch = true;
			break;
		case 'c':
			opt->scenario.counters = true;
			break;
		case 'F':
			opt->scenario.fabric = true;
			break;
		case 'P':
			opt->scenario.proxies = true;
			break;
		case 'm':
			r = cl_mode_parse(optarg, &opt->scenario.mode);
			break;
		case 'f':
			r = take_fault(&opt->scenario, optarg);
			break;
		case 'r':
			r = nt_parse_u64(optarg, strlen(optarg), 0, UINT64_MAX,
					 &opt->scenario.seed);
			break;
		case 'j':
			opt->json = true;
			break;
		case 'o':
			opt->out = optarg;
			break;
		case 'h':
			return 1;
		default:
			r = key >= FIRST_NUMBER
				    ? take_number(&opt->scenario, key - FIRST_NUMBER, optarg)
				    : -EINVAL;
		}
	}
	return r < 0 || optind < argc ? -EINVAL : 0;
}

static int print(const struct options *opt, const struct nt_judgement *judgement,
		 const struct cl_outcome *outcome)
{
	const struct nt_report report = {
		.source = "cluster",
		.ranks = cl_scenario_ranks(&opt->scenario),
		.frames = outcome->frames,
		.start_ns = (uint64_t)outcome->start_ns,
		.end_ns = (uint64_t)outcome->end_ns,
		.skipped = outcome->refused + outcome->missing,
		.judgement = judgement,
	};
	nt_autobuf struct nt_buf buf = {0};
	int r = opt->json ? nt_report_json(&report, &buf) : nt_report_text(&report, &buf);

	if (r < 0)
		return r;
	(void)fwrite(buf.data, 1, buf.len, stdout);
	(void)fprintf(stderr, "%llu calls, %llu messages, %llu frames, %u of them incomplete\n",
		      (unsigned long long)outcome->calls, (unsigned long long)outcome->messages,
		      (unsigned long long)outcome->frames, outcome->incomplete);
	return 0;
}

int main(int argc, char **argv)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct options opt = {.scenario = cl_scenario_default()};
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	struct cl_outcome outcome;
	const char *wrong;
	char url[4096];
	int r = parse(argc, argv, &opt);

	if (r != 0)
		return r > 0 ? usage(stdout, 0) : usage(stderr, 2);
	wrong = cl_scenario_check(&opt.scenario);
	if (wrong) {
		(void)fprintf(stderr, "cluster: %s\n", wrong);
		return 2;
	}
	if (opt.out) {
		(void)snprintf(url, sizeof(url), "spool:%s", opt.out);
		r = nt_bus_open(url, NULL, &bus);
	}
	r = r ?: nt_judgement_new(&judgement);
	r = r ?: cl_run(&opt.scenario, bus, judgement, &outcome);
	r = r ?: print(&opt, judgement, &outcome);
	if (r < 0)
		(void)fprintf(stderr, "cluster: %s\n", strerrordesc_np(-r));
	return r < 0;
}
