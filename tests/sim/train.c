/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A training job over the stand-in libraries, one process a rank; `launch` starts them. Rank and
 * size come from RANK and WORLD_SIZE, or from --rank and --size where these are left out. With
 * --threads each process is that many ranks, each of which is a thread with a device of its own.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/sim/gemm.h"
#include "tests/sim/training.h"

struct options {
	double steps, seconds, host_ms, barrier_every, rank, size, local_rank;
	double tp, dp, pp, threads, weights_mb;
	double layers, kernels, microbatches, buckets, gemms, gemm_graph;
	double poll_ms;
	enum sim_watchdog_kind watchdog;
	struct sim_model_options model;
	enum sim_making making;
	const char *faults, *out, *id;
};

struct job {
	struct options opt;
	struct sim_world world;
	struct sim_training *training;
	struct sim_gemm *gemm; /* NULL: it makes none */
	ncclUniqueId id;
	pthread_t thread;
	uint64_t start_ns, checkpoint_ns;
	int result;
};

enum {
	MAX_THREADS = 8, /* devices of a node */
	TEXT_CHECK = 1,
	TEXT_COMMS,
	TEXT_FAULTS,
	TEXT_OUT,
	TEXT_ID,
	TEXT_WATCHDOG,
	FLAG_SHARD,
	FLAG_GRAPH,
	HELP,
	NUMBERS = 100,
};

struct number {
	const char *name;
	size_t at;
	const char *help;
};

#define AT(member) offsetof(struct options, member)

static const struct number numbers[] = {
	{"steps", AT(steps), "end after N steps (default: run for --seconds)"},
	{"seconds", AT(seconds), "end after N seconds (default 10)"},
	{"tp", AT(tp), "tensor-parallel ranks (default 1)"},
	{"dp", AT(dp), "data-parallel ranks (default: what remains)"},
	{"pp", AT(pp), "pipeline stages (default 1)"},
	{"compute-ms", AT(model.compute_ms), "kernel time of a rank's step (default 40)"},
	{"jitter", AT(model.jitter), "relative jitter of each kernel (default 0.01)"},
	{"host-ms", AT(host_ms), "host work before a step (default 1)"},
	{"layers", AT(layers), "layers of a stage (default 4)"},
	{"kernels", AT(kernels), "launches of a layer's pass (default 10)"},
	{"microbatches", AT(microbatches), "of a step (default 1, with pipeline 4)"},
	{"buckets", AT(buckets), "gradient reductions of a step (default 4)"},
	{"gemms", AT(gemms), "multiplications of a step through cuBLAS (default 0)"},
	{"gemm-graph", AT(gemm_graph),
	 "1: after some steps these are a captured graph (default 0)"},
	{"gradient-mb", AT(model.gradient_mb), "MiB reduced in a step (default 64)"},
	{"activation-kb", AT(model.activation_kb),
	 "KiB of a tensor reduction or send (default 512)"},
	{"weights-mb", AT(weights_mb), "MiB of device memory allocated before the first step"},
	{"barrier-every", AT(barrier_every), "steps (default 20, 0: none)"},
	{"poll-ms", AT(poll_ms), "of the watchdog (default 1000, legacy 100)"},
	{"threads", AT(threads), "ranks of a process (default 1, at most 8)"},
	{"rank", AT(rank), "where RANK is not set"},
	{"size", AT(size), "where WORLD_SIZE is not set"},
	{"local-rank", AT(local_rank), "where LOCAL_RANK is not set"},
};

static int usage(FILE *out, int code)
{
	(void)fprintf(out, "usage: train --id HEX [options]\n");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		(void)fprintf(out, "  --%-18s %s\n", numbers[i].name, numbers[i].help);
	(void)fprintf(
		out,
		"  --check bucket|step|none  await own work before reductions (default bucket)\n"
		"  --comms init|split   how groups are made (default init)\n"
		"  --shard              reduce-scatter and all-gather in place of all-reduce\n"
		"  --graph              layers and gradient reductions are captured graphs\n"
		"  --watchdog nccl2|legacy  events around collectives, on one stream, are polled\n"
		"  --faults FILE        read once a step: tests/sim/fault.h\n"
		"  --out DIR            write the exact counts to DIR/rank-N.json\n"
		"  --id HEX             the unique id of the job\n");
	return code;
}

static int parse_text(int key, const char *text, struct options *opt)
{
	switch (key) {
	case TEXT_CHECK:
		if (!strcmp(text, "bucket"))
			opt->model.check = SIM_CHECK_BUCKET;
		else if (!strcmp(text, "step"))
			opt->model.check = SIM_CHECK_STEP;
		else if (!strcmp(text, "none"))
			opt->model.check = SIM_CHECK_NONE;
		else
			return -EINVAL;
		return 0;
	case TEXT_COMMS:
		if (strcmp(text, "init") != 0 && strcmp(text, "split") != 0)
			return -EINVAL;
		opt->making = text[0] == 's' ? SIM_MAKING_SPLIT : SIM_MAKING_INIT;
		return 0;
	case TEXT_WATCHDOG:
		if (strcmp(text, "nccl2") != 0 && strcmp(text, "legacy") != 0)
			return -EINVAL;
		opt->watchdog = text[0] == 'n' ? SIM_WATCHDOG_NCCL2 : SIM_WATCHDOG_LEGACY;
		opt->model.one_stream = true;
		return 0;
	case TEXT_FAULTS:
		opt->faults = text;
		return 0;
	case TEXT_OUT:
		opt->out = text;
		return 0;
	case TEXT_ID:
		opt->id = text;
		return 0;
	case FLAG_SHARD:
		opt->model.shard = true;
		return 0;
	case FLAG_GRAPH:
		opt->model.graph = true;
		return 0;
	default:
		return -EINVAL;
	}
}

static int from_environment(const char *name, double *value)
{
	const char *text = getenv(name);

	return text ? sim_number(text, value) : 0;
}

/* Numbers that count something fit a small integer. */
static bool is_count(double value)
{
	return value >= 1 && value <= 100000;
}

static int complete(struct options *opt)
{
	if (from_environment("RANK", &opt->rank) < 0 ||
	    from_environment("WORLD_SIZE", &opt->size) < 0 ||
	    from_environment("LOCAL_RANK", &opt->local_rank) < 0)
		return -EINVAL;
	if (!opt->id || !is_count(opt->size) || !is_count(opt->tp) || !is_count(opt->pp) ||
	    !is_count(opt->threads) || opt->threads > MAX_THREADS)
		return -EINVAL;
	opt->size *= opt->threads;
	opt->rank *= opt->threads;
	opt->local_rank *= opt->threads;
	if (opt->dp == 0)
		opt->dp = opt->size / (opt->tp * opt->pp);
	if (opt->microbatches == 0)
		opt->microbatches = opt->pp > 1 ? 4 : 1;
	if (opt->tp * opt->dp * opt->pp != opt->size || !is_count(opt->layers) ||
	    !is_count(opt->kernels) || !is_count(opt->buckets) || !is_count(opt->microbatches))
		return -EINVAL;
	opt->model.layers = (uint32_t)opt->layers;
	opt->model.kernels = (uint32_t)opt->kernels;
	opt->model.buckets = (uint32_t)opt->buckets;
	opt->model.microbatches = (uint32_t)opt->microbatches;
	if (opt->poll_ms == 0)
		opt->poll_ms = opt->watchdog == SIM_WATCHDOG_NCCL2 ? 1000 : 100;
	/* Its events would be part of the graphs. */
	if (opt->watchdog && opt->model.graph)
		return -EINVAL;
	if (opt->dp < 2)
		opt->model.shard = false;
	return 0;
}

static int parse(int argc, char **argv, struct options *ret_opt)
{
	enum {
		COUNT = sizeof(numbers) / sizeof(*numbers),
	};
	static const struct option texts[] = {
		{"check", required_argument, NULL, TEXT_CHECK},
		{"comms", required_argument, NULL, TEXT_COMMS},
		{"watchdog", required_argument, NULL, TEXT_WATCHDOG},
		{"faults", required_argument, NULL, TEXT_FAULTS},
		{"out", required_argument, NULL, TEXT_OUT},
		{"id", required_argument, NULL, TEXT_ID},
		{"shard", no_argument, NULL, FLAG_SHARD},
		{"graph", no_argument, NULL, FLAG_GRAPH},
		{"help", no_argument, NULL, HELP},
		{0},
	};
	struct option known[COUNT + sizeof(texts) / sizeof(*texts)];
	struct options opt = {.seconds = 10,
			      .host_ms = 1,
			      .barrier_every = 20,
			      .rank = 0,
			      .threads = 1,
			      .tp = 1,
			      .pp = 1,
			      .layers = 4,
			      .kernels = 10,
			      .buckets = 4,
			      .model = {.compute_ms = 40,
					.jitter = 0.01,
					.gradient_mb = 64,
					.activation_kb = 512,
					.check = SIM_CHECK_BUCKET}};
	int key, r = 0;

	for (int i = 0; i < COUNT; i++)
		known[i] = (struct option){numbers[i].name, required_argument, NULL, NUMBERS + i};
	memcpy(&known[COUNT], texts, sizeof(texts));
	while (r == 0 && (key = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (key == HELP)
			return 1;
		if (key >= NUMBERS)
			r = sim_number(optarg, (double *)(void *)((char *)&opt +
								  numbers[key - NUMBERS].at));
		else
			r = parse_text(key, optarg, &opt);
	}
	if (r == 0 && optind != argc)
		r = -EINVAL;
	if (r == 0)
		r = complete(&opt);
	if (r == 0)
		*ret_opt = opt;
	return r;
}

static int parse_id(const char *hex, ncclUniqueId *ret_id)
{
	static const char digits[] = "0123456789abcdef";

	if (strlen(hex) != 2 * sizeof(ret_id->internal))
		return -EINVAL;
	for (size_t i = 0; i < sizeof(ret_id->internal); i++) {
		const char *high = strchr(digits, hex[2 * i]);
		const char *low = strchr(digits, hex[2 * i + 1]);

		if (!high || !low)
			return -EINVAL;
		ret_id->internal[i] = (char)((high - digits) << 4 | (low - digits));
	}
	return 0;
}

/* Two call sites, by their names: tests/e2e/verdicts/test_gpu_memory.sh. */
static __attribute__((noinline)) void hold_weights(size_t bytes)
{
	void *weights;

	if (bytes && cudaMalloc(&weights, bytes) != cudaSuccess)
		(void)fprintf(stderr, "train: no room for weights\n");
}

static __attribute__((noinline)) void leak_memory(size_t bytes)
{
	static bool is_full;
	void *lost;

	if (bytes && cudaMalloc(&lost, bytes) != cudaSuccess && !is_full) {
		(void)fprintf(stderr, "train: out of device memory\n");
		is_full = true;
	}
}

static void host_work(struct job *job, const struct sim_fault *fault)
{
	sim_sleep_ns((uint64_t)(job->opt.host_ms * 1e6) + fault->loader_ns);
	if (fault->gc_ns && job->world.truth.steps % 10 == 0)
		sim_burn_ns(fault->gc_ns);
	if (fault->checkpoint_ns && fault->checkpoint_ns != job->checkpoint_ns)
		sim_checkpoint_ns(job->opt.out, fault->checkpoint_ns);
	job->checkpoint_ns = fault->checkpoint_ns;
}

static bool step(struct job *job)
{
	uint64_t every = (uint64_t)job->opt.barrier_every;
	struct sim_truth *truth = &job->world.truth;
	struct sim_fault fault;
	bool wish;

	sim_fault_read(job->opt.faults, truth->rank, &fault);
	while (fault.hang) {
		sim_sleep_ns(10000000);
		sim_fault_read(job->opt.faults, truth->rank, &fault);
	}
	if (fault.exit)
		_exit(fault.exit_code);
	host_work(job, &fault);
	leak_memory(fault.leak_bytes);
	wish = fault.stop || (job->opt.steps > 0 ? (double)truth->steps + 1 >= job->opt.steps
						 : (double)(sim_now_ns() - job->start_ns) >=
							   job->opt.seconds * 1e9);
	if (job->gemm)
		sim_gemm_enqueue(job->gemm);
	wish = sim_training_step(job->training, &fault, wish);
	truth->steps++;
	if (every && truth->steps % every == 0)
		sim_training_barrier(job->training);
	return !wish;
}

static void run(struct job *job)
{
	uint64_t shown_ns = sim_now_ns(), shown_steps = 0;

	while (step(job)) {
		const struct sim_truth *truth = &job->world.truth;
		uint64_t now = sim_now_ns();

		if (truth->rank != 0 || now - shown_ns < 1000000000U)
			continue;
		printf("step %llu, %.1f ms a step\n", (unsigned long long)truth->steps,
		       (double)(now - shown_ns) / 1e6 / (double)(truth->steps - shown_steps));
		(void)fflush(stdout);
		shown_ns = now;
		shown_steps = truth->steps;
	}
}

static int rank_main(struct job *job)
{
	int r;

	if (cudaSetDevice((int)job->opt.local_rank % 8) != cudaSuccess) {
		(void)fprintf(stderr, "train: no device\n");
		return -ENODEV;
	}
	r = sim_world_open(&job->world, (uint32_t)job->opt.rank,
			   (struct sim_layout){.tp = (uint32_t)job->opt.tp,
					       .dp = (uint32_t)job->opt.dp,
					       .pp = (uint32_t)job->opt.pp},
			   &job->id, job->opt.making);
	if (r < 0) {
		(void)fprintf(stderr, "train: make communicators: %s\n", strerrordesc_np(-r));
		return r;
	}
	if (job->opt.watchdog)
		job->world.watchdog =
			sim_watchdog_new(job->opt.watchdog, (uint64_t)(job->opt.poll_ms * 1e6),
					 (int)job->opt.local_rank % 8);
	hold_weights((size_t)(job->opt.weights_mb * (1 << 20)));
	job->start_ns = sim_now_ns();
	job->training = sim_training_new(&job->world, &job->opt.model);
	job->gemm = job->opt.gemms > 0
			    ? sim_gemm_open((uint32_t)job->opt.gemms, job->opt.gemm_graph > 0)
			    : NULL;
	run(job);
	return 0;
}

static void *thread_main(void *data)
{
	struct job *job = data;

	job->result = rank_main(job);
	return NULL;
}

/* Launches are counted by process, and told of its first rank. */
static void sum_launches(struct job *jobs, int threads)
{
	for (int i = 1; i < threads; i++) {
		jobs[0].world.truth.launches += jobs[i].world.truth.launches;
		jobs[i].world.truth.launches = 0;
	}
}

static int finish(struct job *job)
{
	int r = 0;

	if (job->opt.out)
		r = sim_truth_write(&job->world.truth, job->opt.out);
	sim_watchdog_free(job->world.watchdog);
	sim_gemm_close(job->gemm);
	sim_training_free(job->training);
	sim_world_close(&job->world);
	return r;
}

int main(int argc, char **argv)
{
	static struct job jobs[MAX_THREADS];
	struct options opt = {0};
	ncclUniqueId id;
	int threads, r;

	r = parse(argc, argv, &opt);
	if (r != 0)
		return r > 0 ? usage(stdout, 0) : usage(stderr, 2);
	if (parse_id(opt.id, &id) < 0)
		return usage(stderr, 2);
	/* Sleeps end when they should; threads inherit it. */
	(void)prctl(PR_SET_TIMERSLACK, 1000);

	threads = (int)opt.threads;
	for (int i = 0; i < threads; i++) {
		jobs[i] = (struct job){.opt = opt, .id = id};
		jobs[i].opt.rank += i;
		jobs[i].opt.local_rank += i;
	}
	for (int i = 1; i < threads; i++)
		sim_must(pthread_create(&jobs[i].thread, NULL, thread_main, &jobs[i]), "a thread");
	(void)thread_main(&jobs[0]);
	for (int i = 1; i < threads; i++)
		sim_must(pthread_join(jobs[i].thread, NULL), "a thread's end");
	for (int i = 0; i < threads; i++)
		if (jobs[i].result < 0)
			return 1;
	sum_launches(jobs, threads);
	for (int i = 0; i < threads; i++)
		if (finish(&jobs[i]) < 0)
			r = -EIO;
	return r < 0;
}
