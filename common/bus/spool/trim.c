/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/spool/trim.h"

#include <errno.h>
#include <sys/stat.h>

#include "common/bus/spool/dir.h"
#include "common/bus/spool/scan.h"
#include "common/system/clock.h"

/* A removable segment. */
struct candidate {
	uint32_t partition;
	uint64_t base, bytes, records, newest_real_ns;
};

struct survey {
	struct candidate *candidate;
	size_t count, cap;
	uint64_t bytes; /* of the topic */
	uint64_t oldest_ns; /* older segments are removed; 0: regardless of age */
	uint64_t newest_ns; /* in the surveyed partition, up to here */
	/* Partitions whose newest segment could go if retired, and those in which it is too old: */
	uint64_t retirable, aged;
};

static void release_survey(struct survey *survey)
{
	free(survey->candidate);
}
#define nt_autosurvey __attribute__((cleanup(release_survey)))

static int add_candidate(struct survey *survey, const struct candidate *candidate)
{
	if (survey->count == survey->cap) {
		size_t cap = survey->cap ? survey->cap * 2 : 64;
		struct candidate *more = reallocarray(survey->candidate, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		survey->candidate = more;
		survey->cap = cap;
	}
	survey->candidate[survey->count++] = *candidate;
	return 0;
}

/* next_base: of the following segment, or 0 for the newest one. */
static int survey_segment(struct survey *survey, int dirfd, uint32_t partition, uint64_t base,
			  uint64_t next_base)
{
	struct candidate candidate = {.partition = partition, .base = base};
	nt_autoclose int fd = -1;
	struct nt_spool_seal seal;
	uint64_t modified_ns;
	struct stat st;
	int r = nt_spool_open_segment(dirfd, base, &fd);

	if (r < 0 || fstat(fd, &st) < 0)
		return 0; /* removed by another writer, or no segment */
	candidate.bytes = (uint64_t)st.st_size;
	survey->bytes += candidate.bytes;
	modified_ns = (uint64_t)st.st_mtim.tv_sec * NT_SECOND + (uint64_t)st.st_mtim.tv_nsec;
	if (!next_base) {
		if (candidate.bytes > NT_SPOOL_HEADER_BYTES)
			survey->retirable |= 1ULL << partition;
		if (candidate.bytes > NT_SPOOL_HEADER_BYTES && modified_ns < survey->oldest_ns)
			survey->aged |= 1ULL << partition;
		return 0;
	}
	if (nt_spool_read_seal(fd, &seal) == 0) {
		candidate.newest_real_ns = seal.newest_real_ns;
		candidate.records = seal.records;
	} else {
		candidate.newest_real_ns = modified_ns;
		candidate.records = next_base - base;
	}
	/* So that segments are removed in order. */
	if (candidate.newest_real_ns < survey->newest_ns)
		candidate.newest_real_ns = survey->newest_ns;
	survey->newest_ns = candidate.newest_real_ns;
	return add_candidate(survey, &candidate);
}

static int compare_age(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->newest_real_ns != y->newest_real_ns)
		return x->newest_real_ns < y->newest_real_ns ? -1 : 1;
	if (x->partition != y->partition)
		return x->partition < y->partition ? -1 : 1;
	return (x->base > y->base) - (x->base < y->base);
}

static int open_partition(int topic, uint32_t partition, int *ret_fd)
{
	char name[NT_SPOOL_NAME_BYTES];

	nt_spool_partition_name(partition, name);
	return nt_spool_open_dir(topic, name, ret_fd);
}

/* The candidates of the whole topic, the oldest first. */
static int survey_topic(int topic, struct survey *survey)
{
	uint64_t mask;
	int r = nt_spool_list_partitions(topic, &mask);

	for (uint32_t i = 0; i < NT_SPOOL_MAX_PARTITIONS && r == 0; i++) {
		nt_autosegments struct nt_spool_segments segments = {0};
		nt_autoclose int fd = -1;

		if (!(mask >> i & 1) || open_partition(topic, i, &fd) < 0)
			continue;
		r = nt_spool_list_segments(fd, &segments);
		survey->newest_ns = 0;
		for (size_t j = 0; j < segments.count && r == 0; j++)
			r = survey_segment(survey, fd, i, segments.base[j],
					   j + 1 < segments.count ? segments.base[j + 1] : 0);
	}
	if (r == 0 && survey->count)
		qsort(survey->candidate, survey->count, sizeof(*survey->candidate), compare_age);
	return r;
}

static bool fits(const struct survey *survey, const struct nt_spool_limits *limits)
{
	return survey->bytes + limits->segment_bytes <= limits->max_bytes;
}

static void remove_candidate(int topic, const struct candidate *candidate, struct survey *survey,
			     struct nt_bus_stats *stats)
{
	char name[NT_SPOOL_NAME_BYTES];
	nt_autoclose int fd = -1;

	nt_spool_segment_name(candidate->base, name);
	if (open_partition(topic, candidate->partition, &fd) < 0 || unlinkat(fd, name, 0) < 0)
		return;
	survey->bytes -= candidate->bytes;
	stats->evicted_records += candidate->records;
}

static void remove_candidates(int topic, const struct nt_spool_partition *own,
			      struct survey *survey)
{
	for (size_t i = 0; i < survey->count; i++) {
		const struct candidate *candidate = &survey->candidate[i];

		if (fits(survey, own->limits) && candidate->newest_real_ns >= survey->oldest_ns)
			return;
		remove_candidate(topic, candidate, survey, own->stats);
	}
}

/*
 * Closes the newest segments of partitions without a writer, which would otherwise stay forever.
 * Live writers hold their lock. True if there is something new to remove.
 */
static bool retire_partitions(int topic, const struct nt_spool_partition *own, uint64_t mask)
{
	bool has_retired = false;

	for (uint32_t i = 0; i < NT_SPOOL_MAX_PARTITIONS; i++) {
		nt_auto(nt_spool_partition) struct nt_spool_partition *other = NULL;

		if (i == own->index || !(mask >> i & 1) ||
		    nt_spool_partition_open(topic, i, own->limits, own->stats, &other) < 0)
			continue;
		has_retired |= nt_spool_partition_retire(other) == 0;
	}
	return has_retired;
}

int nt_spool_trim(int topic, const struct nt_spool_partition *own, bool by_age,
		  uint64_t now_real_ns)
{
	const struct nt_spool_limits *limits = own->limits;
	uint64_t oldest_ns = 0;

	if (by_age && limits->max_age_ns && now_real_ns > limits->max_age_ns)
		oldest_ns = now_real_ns - limits->max_age_ns;
	for (int round = 0; round < 2; round++) {
		nt_autosurvey struct survey survey = {.oldest_ns = oldest_ns};
		int r = survey_topic(topic, &survey);

		if (r < 0)
			return r;
		if (round > 0 ||
		    !retire_partitions(topic, own,
				       fits(&survey, limits) ? survey.aged : survey.retirable)) {
			remove_candidates(topic, own, &survey);
			break;
		}
	}
	return 0;
}
