/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Saved and loaded, a detector goes on as if nothing had happened; damaged bytes are refused. */
#include "tests/unit/detect/detect_frames.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/codec.h"
#include "common/base/hash.h"
#include "detect/model/detector_state.h"

enum {
	FRAMES = 260,
	HASHES = FRAMES,
	PINNED_EMPTY = 82, /* bytes */
	PINNED_SLOW_RANK = 13182,
};

static uint64_t mix_finding(uint64_t hash, const struct nt_finding *finding)
{
	const uint64_t words[] = {finding->id,       finding->state,    finding->class,
				  finding->severity, finding->since_ns, finding->until_ns,
				  finding->seen_ns,  finding->tier,     finding->version,
				  finding->culprits, finding->evidences};
	const double reals[] = {finding->slowdown, finding->gpu_hours, finding->confidence,
				finding->completeness};

	hash = nt_hash_bytes(hash, words, sizeof(words));
	hash = nt_hash_bytes(hash, reals, sizeof(reals));
	if (finding->cause)
		hash = nt_hash_bytes(hash, finding->cause, strlen(finding->cause));
	for (size_t i = 0; i < finding->culprits; i++) {
		const struct nt_finding_culprit *culprit = &finding->culprit[i];

		hash = nt_hash_bytes(hash, &culprit->kind, sizeof(culprit->kind));
		hash = nt_hash_bytes(hash, &culprit->rank, sizeof(culprit->rank));
		hash = nt_hash_bytes(hash, &culprit->node, sizeof(culprit->node));
		hash = nt_hash_bytes(hash, &culprit->comm, sizeof(culprit->comm));
		hash = nt_hash_bytes(hash, culprit->peers, culprit->peer_count * sizeof(uint32_t));
		hash = nt_hash_bytes(hash, culprit->ranks, culprit->rank_count * sizeof(uint32_t));
	}
	for (size_t i = 0; i < finding->evidences; i++) {
		const struct nt_finding_evidence *row = &finding->evidence[i];

		hash = nt_hash_bytes(hash, row->what, strlen(row->what));
		hash = nt_hash_bytes(hash, row->unit, strlen(row->unit));
		hash = nt_hash_bytes(hash, row->method, strlen(row->method));
		hash = nt_hash_bytes(hash, &row->value, sizeof(row->value));
		hash = nt_hash_bytes(hash, &row->peers, sizeof(row->peers));
		hash = nt_hash_bytes(hash, &row->width, sizeof(row->width));
		hash = nt_hash_bytes(hash, &row->windows, sizeof(row->windows));
	}
	return hash;
}

static struct nt_detect *reload(struct nt_detect *detect)
{
	const struct nt_rules rules = nt_rules_default();
	struct nt_detect *loaded = NULL;
	uint8_t *data = NULL;
	size_t size = 0;

	assert_int_equal(nt_detect_save(detect, &data, &size), 0);
	assert_int_equal(nt_detect_load(&rules, data, size, &loaded), 0);
	free(data);
	nt_detect_free(detect);
	return loaded;
}

/* A job that has seen everything: what it answers after each frame. */
static void live(uint32_t reload_every, uint64_t *ret_hash, uint8_t **ret_data, size_t *ret_size)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	sim_init_layout(&sim, 2, 2, 4, 91);
	sim.jitter = 0.02;
	sim.outliers = 0.002;
	sim.comm[20].timed = true;
	for (uint32_t i = 0; i < FRAMES; i++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;
		uint64_t hash = NT_HASH_SEED;

		sim.completeness = i % 13 ? 1.0 : 0.9;
		if (i == 10)
			sim.rank[3].device *= 1.5;
		if (i == 40)
			sim.rank[9].host += 40.0 * SIM_MS;
		if (i == 70)
			sim.rank[3].device /= 1.5;
		if (i == 100)
			for (uint32_t j = 12; j < 16; j++)
				sim.rank[j].device *= 1.5;
		if (i == 150) {
			sim_stick(&sim, 0xd000, 4);
			sim.rank[4].behind = 1;
		}
		if (i == 200)
			sim_unstick(&sim);
		if (i == 220) {
			sim.rank[15].ended = true;
			sim.rank[15].ended_ns = sim.now_ns;
		}
		if (reload_every && i % reload_every == 0)
			detect = reload(detect);
		assert_int_equal(nt_detect_step(detect, sim_next(&sim), &finding, &findings), 0);
		for (size_t j = 0; j < findings; j++)
			hash = mix_finding(hash, &finding[j]);
		if (reload_every && i % reload_every == 1)
			detect = reload(detect);
		nt_detect_open(detect, &finding, &findings);
		for (size_t j = 0; j < findings; j++)
			hash = mix_finding(hash, &finding[j]);
		ret_hash[i] = hash;
	}
	assert_int_equal(nt_detect_save(detect, ret_data, ret_size), 0);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_loaded_state_goes_on_to_the_byte(void **state)
{
	static uint64_t plain[HASHES], again[HASHES];
	static const uint32_t every[] = {1, 2, 7, 50};
	uint8_t *data[2];
	size_t size[2];

	(void)state;
	live(0, plain, &data[0], &size[0]);
	for (size_t i = 0; i < sizeof(every) / sizeof(every[0]); i++) {
		live(every[i], again, &data[1], &size[1]);
		for (uint32_t j = 0; j < FRAMES; j++)
			assert_true(plain[j] == again[j]);
		assert_int_equal(size[0], size[1]);
		assert_memory_equal(data[0], data[1], size[0]);
		free(data[1]);
	}
	free(data[0]);
}

static void the_same_frames_give_the_same_bytes(void **state)
{
	static uint64_t hash[HASHES];
	uint8_t *data[2];
	size_t size[2];

	(void)state;
	live(0, hash, &data[0], &size[0]);
	live(0, hash, &data[1], &size[1]);
	assert_int_equal(size[0], size[1]);
	assert_memory_equal(data[0], data[1], size[0]);
	free(data[0]);
	free(data[1]);
}

static void saved(uint8_t **ret_data, size_t *ret_size)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	sim_init_layout(&sim, 2, 1, 4, 92);
	sim.jitter = 0.02;
	sim_pass(&sim, detect, 10);
	sim.rank[1].device *= 2.0;
	sim_pass(&sim, detect, 20);
	assert_non_null(sim_firing(detect, 0));
	assert_int_equal(nt_detect_save(detect, ret_data, ret_size), 0);
	nt_detect_free(detect);
	sim_free(&sim);
}

static int load(const uint8_t *data, size_t size)
{
	const struct nt_rules rules = nt_rules_default();
	struct nt_detect *detect = NULL;
	const int r = nt_detect_load(&rules, data, size, &detect);

	assert_int_equal(r == 0, detect != NULL);
	nt_detect_free(detect);
	return r;
}

static void every_truncation_and_every_flipped_byte_is_refused(void **state)
{
	uint8_t *data;
	size_t size;

	(void)state;
	saved(&data, &size);
	assert_int_equal(load(data, size), 0);
	for (size_t i = 0; i < size; i++) {
		assert_int_equal(load(data, i), -EBADMSG);
		data[i] ^= 0x41;
		assert_int_equal(load(data, size), -EBADMSG);
		data[i] ^= 0x41;
	}
	free(data);
}

/* Puts the sum right again, as whoever forges it would. */
static void sign(uint8_t *data, size_t size)
{
	const uint64_t sum = nt_hash_bytes(NT_HASH_SEED, data, size - 8);

	for (int i = 0; i < 8; i++)
		data[size - 8 + (size_t)i] = (uint8_t)(sum >> (8 * i));
}

static void forged_bytes_are_refused_or_harmless(void **state)
{
	static const uint8_t forged[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
	const struct nt_rules rules = nt_rules_default();
	uint32_t accepted = 0, refused = 0;
	uint8_t *data;
	size_t size;

	(void)state;
	saved(&data, &size);
	for (size_t i = 0; i < size - 8; i++) {
		const uint8_t was = data[i];

		for (size_t j = 0; j < sizeof(forged); j++) {
			struct nt_detect *detect = NULL;
			struct sim sim;
			int r;

			data[i] = forged[j];
			sign(data, size);
			r = nt_detect_load(&rules, data, size, &detect);
			assert_true(r == 0 || r == -EBADMSG);
			accepted += r == 0;
			refused += r != 0;
			if (r < 0)
				continue;
			if (i % 16) {
				nt_detect_free(detect);
				continue;
			}
			sim_init_layout(&sim, 2, 1, 4, 92);
			for (int k = 0; k < 3; k++) {
				const struct nt_finding *finding;
				size_t findings;

				(void)!nt_detect_step(detect, sim_next(&sim), &finding, &findings);
			}
			sim_free(&sim);
			nt_detect_free(detect);
		}
		data[i] = was;
	}
	assert_true(accepted > 0 && refused > 0);
	free(data);
}

static void another_version_is_refused(void **state)
{
	uint8_t *data;
	size_t size;

	(void)state;
	saved(&data, &size);
	assert_int_equal(data[8], 29);
	data[8] = 13;
	sign(data, size);
	assert_int_equal(load(data, size), -EBADMSG);
	free(data);
}

static void nothing_is_saved_and_loaded_too(void **state)
{
	struct nt_detect *detect = reload(sim_detect());

	(void)state;
	assert_int_equal(sim_open(detect), 0);
	nt_detect_free(detect);
}

static void the_state_of_a_healthy_rank_is_small(void **state)
{
	struct nt_detect *detect = sim_detect();
	uint8_t *data = NULL;
	size_t size = 0;
	struct sim sim;

	(void)state;
	sim_init(&sim, 64, 93);
	sim.jitter = 0.02;
	sim_pass(&sim, detect, 100);
	assert_int_equal(nt_detect_save(detect, &data, &size), 0);
	assert_in_range(size, 64, 64 * 600);
	free(data);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void numbers_survive_and_lies_do_not(void **state)
{
	static const uint64_t numbers[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX};
	static const uint8_t too_long[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					   0xff, 0xff, 0xff, 0x7f, 0x00};
	static const uint8_t infinite[] = {1, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f};
	nt_autobuf struct nt_buf buf = {0};
	struct nt_codec out = {.out = &buf}, in = {.loads = true};
	double real = -1.5;
	uint32_t count = 0;
	uint64_t number;

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		number = numbers[i];
		nt_code_u64(&out, &number);
	}
	nt_code_real(&out, &real);
	in.in = buf.data;
	in.in_size = buf.len;
	for (size_t i = 0; i < 8; i++) {
		nt_code_u64(&in, &number);
		assert_true(number == numbers[i]);
	}
	real = 0.0;
	nt_code_real(&in, &real);
	assert_true(real == -1.5);
	assert_int_equal(in.error, 0);
	nt_code_u64(&in, &number);
	assert_int_equal(in.error, -EBADMSG);
	assert_true(number == 0);

	in = (struct nt_codec){.loads = true, .in = too_long, .in_size = sizeof(too_long)};
	nt_code_u64(&in, &number);
	assert_int_equal(in.error, -EBADMSG);
	in = (struct nt_codec){.loads = true, .in = infinite, .in_size = sizeof(infinite)};
	nt_code_real(&in, &real);
	assert_int_equal(in.error, -EBADMSG);
	assert_true(real == 0.0);
	/* A hundred elements in no bytes. */
	in = (struct nt_codec){.loads = true, .in = (const uint8_t[]){100}, .in_size = 1};
	nt_code_count(&in, &count, 1000);
	assert_int_equal(in.error, -EBADMSG);
	assert_int_equal(count, 0);
}

/*
 * tests/golden/detect/format-27.state: eight ranks after 42 windows, of which rank 5 is 1.3 times as slow
 * since two. The loaded detector names it, and writes the present format.
 */
static void a_state_of_an_older_format_goes_on(void **state)
{
	static uint8_t old[16384];
	struct nt_detect *detect = NULL, *before = sim_detect();
	const struct nt_rules rules = nt_rules_default();
	FILE *file = fopen("tests/golden/detect/format-27.state", "rb");
	uint8_t *data = NULL;
	size_t size;
	struct sim sim;

	(void)state;
	assert_non_null(file);
	size = fread(old, 1, sizeof(old), file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(old[8], 27);
	assert_int_equal(nt_detect_load(&rules, old, size, &detect), 0);
	/* The frames that it was made of. */
	sim_init(&sim, 8, 91);
	sim.jitter = 0.02;
	sim_pass(&sim, before, 40);
	sim.rank[5].device *= 1.3;
	sim_pass(&sim, before, 2);
	assert_int_equal(detect->end_ns, before->end_ns);
	/* Its far windows were counted by other widths. */
	assert_true(before->roles.group[0].far_rate[NT_SERIES_OWN].windows > 0.0);
	assert_true(detect->roles.group[0].far_rate[NT_SERIES_OWN].windows == 0.0);
	assert_in_range(sim_run(&sim, detect, 20), 2, 10);
	assert_names_rank(sim_firing(detect, 0), 5);
	assert_int_equal(nt_detect_save(detect, &data, &size), 0);
	assert_int_equal(data[8], 29);
	free(data);
	nt_detect_free(before);
	nt_detect_free(detect);
	sim_free(&sim);
}

/*
 * What is not saved is forgotten at a restart, and what is saved must be read by the next release: a
 * change of the size is a change of the format, and of its version. Read the difference, then pin it.
 */
static void the_size_of_a_saved_state_is_pinned(void **state)
{
	struct nt_detect *detect = sim_detect();
	uint8_t *data = NULL;
	size_t size = 0;
	struct sim sim;

	(void)state;
	assert_int_equal(nt_detect_save(detect, &data, &size), 0);
	assert_int_equal(size, PINNED_EMPTY);
	free(data);
	data = NULL;
	sim_init_layout(&sim, 2, 2, 2, 77);
	sim.jitter = 0.02;
	sim_pass(&sim, detect, 40);
	sim.rank[3].device *= 1.6;
	sim_pass(&sim, detect, 20);
	assert_non_null(sim_firing(detect, 0));
	assert_int_equal(nt_detect_save(detect, &data, &size), 0);
	assert_int_equal(size, PINNED_SLOW_RANK);
	free(data);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* It is not in the bytes: its members' links tell it. */
static void when_a_communicator_last_moved_is_known_again(void **state)
{
	const struct nt_rules rules = nt_rules_default();
	struct nt_detect *detect = sim_detect(), *loaded = NULL;
	struct sim sim;
	uint8_t *data = NULL;
	size_t size = 0;

	(void)state;
	sim_init(&sim, 8, 1);
	sim_pass(&sim, detect, 3);
	assert_int_equal(nt_detect_save(detect, &data, &size), 0);
	assert_int_equal(nt_detect_load(&rules, data, size, &loaded), 0);
	assert_true(detect->comm_count > 0);
	assert_int_equal(loaded->comm_count, detect->comm_count);
	for (uint32_t i = 0; i < detect->comm_count; i++) {
		assert_true(detect->comm[i]->moved_ns == detect->end_ns);
		assert_true(loaded->comm[i]->moved_ns == detect->comm[i]->moved_ns);
	}
	free(data);
	nt_detect_free(loaded);
	nt_detect_free(detect);
	sim_free(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_state_of_an_older_format_goes_on),
		cmocka_unit_test(the_size_of_a_saved_state_is_pinned),
		cmocka_unit_test(a_loaded_state_goes_on_to_the_byte),
		cmocka_unit_test(when_a_communicator_last_moved_is_known_again),
		cmocka_unit_test(the_same_frames_give_the_same_bytes),
		cmocka_unit_test(every_truncation_and_every_flipped_byte_is_refused),
		cmocka_unit_test(forged_bytes_are_refused_or_harmless),
		cmocka_unit_test(another_version_is_refused),
		cmocka_unit_test(nothing_is_saved_and_loaded_too),
		cmocka_unit_test(the_state_of_a_healthy_rank_is_small),
		cmocka_unit_test(numbers_survive_and_lies_do_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
