/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Runs the detectors for compare.py. Reads cases from standard input until its end and writes the
 * result of each; all numbers are doubles in the machine's byte order. By the argument, a case is
 *
 *	dbscan    dimensions n eps min_samples, n × dimensions coordinates: n labels, -1 noise
 *	sorted    the same, one dimension, ascending
 *	ksigma    window warm_up n_sigma bias abs_bias low high min_width direction mean n, n values:
 *	          for each value ready abnormal centre width z
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "detect/math/dbscan.h"
#include "detect/math/ksigma.h"

enum {
	MOST = 1 << 16,
	DBSCAN_HEAD = 4,
	KSIGMA_HEAD = 11,
	RESULT = 5,
};

struct room {
	double given[MOST], answer[MOST];
	uint32_t label[MOST], queue[MOST];
};

static bool take(double *value, size_t n)
{
	return n <= MOST && fread(value, sizeof(*value), n, stdin) == n;
}

static bool give(const double *value, size_t n)
{
	return fwrite(value, sizeof(*value), n, stdout) == n;
}

static bool answer_dbscan(const double *head, bool sorted, struct room *room)
{
	const size_t dimensions = (size_t)head[0], n = (size_t)head[1];
	const double eps = head[2];
	const size_t min_samples = (size_t)head[3];

	if (!take(room->given, n * dimensions))
		return false;
	if (sorted)
		(void)nt_dbscan_sorted(room->given, n, eps, min_samples, room->label);
	else
		(void)nt_dbscan_points(room->given, n, dimensions, eps, min_samples, room->label,
				       room->queue);
	for (size_t i = 0; i < n; i++)
		room->answer[i] = room->label[i] == NT_DBSCAN_NOISE ? -1.0 : room->label[i];
	return give(room->answer, n);
}

static bool answer_ksigma(const double *head, struct room *room)
{
	const struct nt_ksigma_rules rules = {
		.window = (uint32_t)head[0],
		.warm_up = (uint32_t)head[1],
		.n_sigma = head[2],
		.bias = head[3],
		.abs_bias = head[4],
		.low = head[5],
		.high = head[6],
		.min_width = head[7],
		.direction = (enum nt_ksigma_direction)head[8],
		.mean = head[9] != 0.0,
	};
	const size_t n = (size_t)head[10];
	struct nt_ksigma ksigma = {.count = 0};

	if (n > MOST / RESULT || !take(room->given, n))
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct nt_ksigma_answer answer =
			nt_ksigma_add(&ksigma, &rules, room->given[i]);
		const double row[RESULT] = {answer.ready, answer.abnormal, answer.centre,
					    answer.width, answer.z};

		memcpy(&room->answer[i * RESULT], row, sizeof(row));
	}
	return give(room->answer, n * RESULT);
}

int main(int argc, char **argv)
{
	struct room *room = malloc(sizeof(*room));
	const char *what = argc == 2 ? argv[1] : "";
	const bool sorted = strcmp(what, "sorted") == 0;
	double head[KSIGMA_HEAD];
	bool right = room != NULL;

	if (sorted || strcmp(what, "dbscan") == 0) {
		while (right && take(head, DBSCAN_HEAD))
			right = answer_dbscan(head, sorted, room);
	} else if (strcmp(what, "ksigma") == 0) {
		while (right && take(head, KSIGMA_HEAD))
			right = answer_ksigma(head, room);
	} else {
		(void)fprintf(stderr, "usage: detector_output dbscan|sorted|ksigma\n");
		right = false;
	}
	free(room);
	return right ? 0 : 1;
}
