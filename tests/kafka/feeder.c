/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Plays the agents of some jobs on a bus, in real time: each job on a node of its own, eight ranks
 * with a window every 520 ms. It has a disk queue as an agent has. Ends on SIGTERM.
 *
 *   feeder URL JOBS DIR
 *
 * DIR/faults says by how many per cent rank 5 of each job is slow, one number a job, the last one
 * for all that follow. It is looked at every round, and a job takes a change over one second after
 * the job before it. DIR/metrics is what an agent would tell; DIR/shelter is the shelter.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "common/base/parse_number.h"
#include "common/bus/bus_disk_queue.h"
#include "common/system/clock.h"
#include "common/system/file.h"
#include "tests/unit/engine/window_feed.h"

enum {
	RANKS = 8,
	SLOW = 5,
	MAX_JOBS = 64,
	MAX_PATH = 512,
	WINDOW_MS = 520,
	TURN_MS = 130, /* of the disk queue; divides WINDOW_MS */
	STAGGER = 2, /* rounds between two jobs */
	FAULTS_BYTES = 4096,
};

struct job {
	char node[32], name[32];
	struct feed_agent agent;
	uint64_t slow_percent, next_percent, change_round;
};

struct feeder {
	struct nt_bus *bus;
	struct job job[MAX_JOBS];
	size_t jobs;
	uint64_t begin_ms, published, failed;
	char faults[MAX_PATH], metrics[MAX_PATH], metrics_new[MAX_PATH + 8], disk_queue[MAX_PATH];
	bool is_away;
};

static volatile sig_atomic_t ends;

static void take_signal(int number)
{
	(void)number;
	ends = 1;
}

/* ---- faults ----------------------------------------------------------------------------------- */

static void set_fault(struct job *job, uint64_t percent, uint64_t round)
{
	if (job->next_percent == percent)
		return;
	job->next_percent = percent;
	job->change_round = round;
}

static void read_faults(struct feeder *feeder, uint64_t round)
{
	nt_autobuf struct nt_buf buf = {0};
	uint64_t percent = 0;
	size_t at = 0;

	if (nt_file_read(feeder->faults, FAULTS_BYTES, &buf) < 0)
		return;
	for (size_t i = 0; i < feeder->jobs; i++) {
		const char *text = (const char *)buf.data;
		size_t len = 0;

		while (at < buf.len && (text[at] == ' ' || text[at] == '\n'))
			at++;
		while (at + len < buf.len && text[at + len] != ' ' && text[at + len] != '\n')
			len++;
		if (len && nt_parse_u64(text + at, len, 0, 1000, &percent) < 0)
			(void)fprintf(stderr, "feeder: '%s' has no number at %zu\n", feeder->faults,
				      at);
		at += len;
		set_fault(&feeder->job[i], percent, round ? round + STAGGER * i : 0);
	}
	for (size_t i = 0; i < feeder->jobs; i++)
		if (round >= feeder->job[i].change_round)
			feeder->job[i].slow_percent = feeder->job[i].next_percent;
}

/* ---- windows ---------------------------------------------------------------------------------- */

static void publish_window(struct feeder *feeder, size_t number, uint32_t rank, uint64_t round)
{
	struct job *job = &feeder->job[number];
	const uint64_t comm = 0xabc + number, from_ms = feeder->begin_ms + round * WINDOW_MS;
	/* Nothing in the world is as even as a constant. */
	const double noise = (double)((round * 7 + rank * 13 + comm) % 17) * 0.01;
	/* Healthy ranks differ, too. */
	const double healthy_ms = 20 + 0.2 * (rank % 4);
	const double slow_ms = (double)job->slow_percent * 0.2;
	const struct feed_window window = {
		.rank = rank,
		.size = RANKS,
		.from_ms = from_ms,
		.to_ms = from_ms + WINDOW_MS,
		.process_ms = feeder->begin_ms,
		.steps = 10,
		.own_ms = healthy_ms + (rank == SLOW ? slow_ms : 0) + noise,
		.step_ms = 22 + slow_ms,
		.comm = comm,
		.last = round * 10 + 10,
	};
	nt_autobuf struct nt_buf buf = {0};
	struct nt_message *message = feed_window(&job->agent, &window);
	const struct nt_bus_record record = feed_record(message, &buf);

	if (nt_bus_publish(feeder->bus, &record) < 0)
		feeder->failed++;
	else
		feeder->published++;
	nt_message_free(message);
}

/* ---- what an agent does besides --------------------------------------------------------------- */

static void write_metrics(const struct feeder *feeder, const struct nt_disk_queue_stats *stats)
{
	FILE *file = fopen(feeder->metrics_new, "we");
	struct nt_disk_queue_counters sum = {0};
	uint64_t refused = 0;

	if (!file)
		return;
	for (int i = 0; i < NT_DISK_QUEUE_CLASS_END; i++) {
		sum.found += stats->class[i].found;
		sum.stored += stats->class[i].stored;
		sum.drained += stats->class[i].drained;
		sum.left += stats->class[i].left;
		sum.evicted += stats->class[i].evicted + stats->class[i].expired +
			       stats->class[i].corrupt + stats->class[i].dropped;
		refused += stats->refused[i];
	}
	(void)fprintf(
		file,
		"published %llu\nlost %llu\naway %llu\noutages %llu\nfound %llu\nstored %llu\n"
		"drained %llu\nleft %llu\ngiven_back %llu\n",
		(unsigned long long)feeder->published,
		(unsigned long long)(feeder->failed + refused + sum.evicted),
		(unsigned long long)stats->is_away, (unsigned long long)stats->outages,
		(unsigned long long)sum.found, (unsigned long long)sum.stored,
		(unsigned long long)sum.drained, (unsigned long long)sum.left,
		(unsigned long long)stats->given_back);
	if (fclose(file) == 0)
		(void)rename(feeder->metrics_new, feeder->metrics);
}

static void look_at_disk_queue(struct feeder *feeder)
{
	struct nt_disk_queue_stats stats;
	struct nt_bus_health health;

	nt_disk_queue_stats(feeder->bus, &stats);
	nt_bus_health(feeder->bus, &health);
	if (feeder->is_away != (stats.is_away != 0))
		(void)fprintf(stderr, "feeder: the bus is %s: %s\n",
			      stats.is_away ? "away" : "back", health.text);
	feeder->is_away = stats.is_away != 0;
	write_metrics(feeder, &stats);
}

static void sleep_until(uint64_t real_ms)
{
	const uint64_t ns = REAL_0 + real_ms * MS;
	const struct timespec until = {(time_t)(ns / SECOND), (long)(ns % SECOND)};

	(void)clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL);
}

static void run(struct feeder *feeder)
{
	feeder->begin_ms = (nt_clock_real_ns() - REAL_0) / MS;
	for (uint64_t round = 0; !ends; round++) {
		const uint64_t from_ms = feeder->begin_ms + round * WINDOW_MS;

		for (uint64_t at_ms = TURN_MS; at_ms <= WINDOW_MS && !ends; at_ms += TURN_MS) {
			sleep_until(from_ms + at_ms);
			nt_disk_queue_turn(feeder->bus, nt_clock_mono_ns(), nt_clock_real_ns());
		}
		if (ends)
			break;
		read_faults(feeder, round);
		for (size_t i = 0; i < feeder->jobs; i++)
			for (uint32_t rank = 0; rank < RANKS; rank++)
				publish_window(feeder, i, rank, round);
		if (nt_bus_flush(feeder->bus) < 0)
			feeder->failed++;
		look_at_disk_queue(feeder);
	}
}

static int open_all(struct feeder *feeder, const char *url, const char *dir)
{
	struct nt_disk_queue_options disk_queue = {
		.dir = feeder->disk_queue,
		.limits = {.max_bytes = 64 << 20},
		.least_rate = 1 << 20,
	};
	struct nt_bus_options options = {
		.client = "feeder",
		.flush_ns = MS,
		.undelivered = nt_disk_queue_undelivered,
	};
	struct nt_bus *behind = NULL;
	int r;

	(void)snprintf(feeder->disk_queue, MAX_PATH, "%s/shelter", dir);
	(void)snprintf(feeder->faults, MAX_PATH, "%s/faults", dir);
	(void)snprintf(feeder->metrics, MAX_PATH, "%s/metrics", dir);
	(void)snprintf(feeder->metrics_new, sizeof(feeder->metrics_new), "%s.new", feeder->metrics);
	r = nt_disk_queue_open(&disk_queue, &feeder->bus);
	if (r < 0)
		return r;
	options.data = feeder->bus;
	r = nt_bus_open(url, &options, &behind);
	if (r < 0)
		return r;
	nt_disk_queue_attach(feeder->bus, behind);
	for (size_t i = 0; i < feeder->jobs; i++) {
		struct job *job = &feeder->job[i];

		(void)snprintf(job->node, sizeof(job->node), "node-%zu", i);
		(void)snprintf(job->name, sizeof(job->name), "job-%zu", i);
		job->agent = feed_agent(job->node, job->name);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct feeder feeder;
	const struct sigaction stop = {.sa_handler = take_signal};
	uint64_t jobs;
	int r;

	if (argc != 4 || nt_parse_u64(argv[2], strlen(argv[2]), 1, MAX_JOBS, &jobs) < 0)
		return 2;
	feeder.jobs = jobs;
	(void)sigaction(SIGTERM, &stop, NULL);
	r = open_all(&feeder, argv[1], argv[3]);
	if (r < 0) {
		(void)fprintf(stderr, "feeder: %s\n", strerrordesc_np(-r));
		return 1;
	}
	run(&feeder);
	nt_bus_close(feeder.bus);
	return 0;
}
