/* SPDX-License-Identifier: GPL-3.0-or-later */
/* State sets on a bus that may end between any two records. */
#include "aggregator/group/state_log.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/buf.h"

enum {
	SHARD = 4,
	MAX_KEYS = 4096,
	BIG = 3 * NT_STATE_LOG_CHUNK_BYTES + 17, /* bytes: four chunks */
};

/* ---- a compacted topic ---------------------------------------------------------------------------- */

static struct entry {
	char key[NT_STATE_LOG_MAX_KEY];
	struct nt_buf value;
} entries[MAX_KEYS];

static size_t keys, written, flushes;
static size_t budget = SIZE_MAX; /* records until the crash */
static int flush_result;
static uint64_t boot = 1;

static struct entry *find_entry(const char *key)
{
	for (size_t i = 0; i < keys; i++)
		if (!strcmp(entries[i].key, key))
			return &entries[i];
	assert_true(keys < MAX_KEYS);
	(void)snprintf(entries[keys].key, sizeof(entries[keys].key), "%s", key);
	return &entries[keys++];
}

static int publish(void *data, const struct nt_message *message)
{
	struct nt_message sent = *message;
	struct entry *entry;

	(void)data;
	if (written >= budget)
		return -EIO;
	written++;
	sent.agent = "a";
	sent.boot = boot;
	entry = find_entry(message->key);
	nt_buf_clear(&entry->value);
	return nt_message_encode(&sent, &entry->value);
}

static int remove_entry(void *data, const char *key)
{
	(void)data;
	if (written >= budget)
		return -EIO;
	written++;
	nt_buf_clear(&find_entry(key)->value);
	return 0;
}

static int flush(void *data)
{
	(void)data;
	flushes++;
	return flush_result;
}

static const struct nt_state_log_port port = {
	.publish = publish, .remove = remove_entry, .flush = flush};

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < keys; i++)
		nt_buf_release(&entries[i].value);
	keys = written = flushes = 0;
	budget = SIZE_MAX;
	flush_result = 0;
	boot = 1;
	return 0;
}

static struct nt_bus_record record_of(const struct entry *entry)
{
	return (struct nt_bus_record){
		.topic = NT_TOPIC_STATE,
		.key = entry->key,
		.key_len = strlen(entry->key),
		.value = entry->value.data,
		.value_len = entry->value.len,
	};
}

static struct nt_state_log *read_all(uint32_t shard)
{
	struct nt_state_log *state_log = NULL;

	assert_int_equal(nt_state_log_new(shard, &state_log), 0);
	for (size_t i = 0; i < keys; i++) {
		const struct nt_bus_record record = record_of(&entries[i]);

		assert_int_equal(nt_state_log_take(state_log, &record), 0);
	}
	return state_log;
}

/* ---- sets ---------------------------------------------------------------------------------------- */

static uint8_t big[BIG];

/* As the aggregator does, for all of its shards between two flushes. */
static int publish_all(const struct nt_state_log_port *to, const char *owner,
		       const struct nt_state_set *set, struct nt_state_log_mark *mark)
{
	struct nt_state_log_draft draft;
	int r = nt_state_log_begin(to, set, mark, &draft);

	/* Keys go by different ways: the manifest must not overtake. */
	if (r == 0)
		r = to->flush(to->data);
	if (r == 0)
		r = nt_state_log_end(to, owner, &draft);
	if (r == 0)
		r = to->flush(to->data);
	if (r == 0)
		nt_state_log_commit(&draft, mark);
	return r;
}

/* Number `n` of a series: each differs in all its parts. */
static int publish_set(struct nt_state_log_mark *mark, unsigned int n, size_t size)
{
	const struct nt_bus_position position[] = {
		{NT_TOPIC_NODE, 0, n},
		{NT_TOPIC_WINDOW, SHARD - 1, 1000 + n},
	};
	const struct nt_state_item item[] = {{"ingest", big, size}, {"places", "", 0}};
	const struct nt_state_set set = {
		.real_ns = n,
		.item = item,
		.items = 2,
		.position = position,
		.positions = 2,
		.shard = SHARD,
	};

	for (size_t i = 0; i < size; i++)
		big[i] = (uint8_t)(n * 31 + i / 1000);
	return publish_all(&port, "http://a", &set, mark);
}

static int check_set(void *loader, const struct nt_state_set *set)
{
	unsigned int *ret_n = loader;
	const uint8_t *bytes = set->item[0].bytes;

	*ret_n = (unsigned int)set->real_ns;
	assert_int_equal(set->shard, SHARD);
	assert_int_equal(set->items, 2);
	assert_string_equal(set->item[0].name, "ingest");
	assert_string_equal(set->item[1].name, "places");
	assert_int_equal(set->item[1].size, 0);
	for (size_t i = 0; i < set->item[0].size; i++)
		if (bytes[i] != (uint8_t)(*ret_n * 31 + i / 1000))
			fail_msg("byte %zu of set %u", i, *ret_n);
	assert_int_equal(set->positions, 2);
	assert_int_equal(set->position[0].topic, NT_TOPIC_NODE);
	assert_int_equal(nt_state_set_offset(set), 1000 + *ret_n);
	return 7;
}

/* Which set a new owner finds; 0: none. */
static unsigned int load(struct nt_state_log_mark *ret_mark)
{
	nt_auto(nt_state_log) struct nt_state_log *state_log = read_all(SHARD);
	unsigned int n = 0;
	int r;

	r = nt_state_log_load(state_log, check_set, &n);
	assert_true(r == 7 || r == -ENOENT);
	*ret_mark = nt_state_log_mark(state_log);
	return n;
}

/* ---- tests --------------------------------------------------------------------------------------- */

static void nothing_on_the_bus_is_enoent(void **state)
{
	struct nt_state_log_mark mark;

	(void)state;
	assert_int_equal(load(&mark), 0);
	assert_int_equal(mark.generation, 0);
}

static void a_set_comes_back_however_large(void **state)
{
	static const size_t sizes[] = {0, 1, NT_STATE_LOG_CHUNK_BYTES - 1, NT_STATE_LOG_CHUNK_BYTES,
				       BIG};
	struct nt_state_log_mark mark = {0};

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		struct nt_state_log_mark read;

		assert_int_equal(publish_set(&mark, i + 1, sizes[i]), 0);
		assert_int_equal(load(&read), i + 1);
		assert_int_equal(read.generation, mark.generation);
	}
}

static void a_crash_between_any_two_records_leaves_a_set_that_is_whole(void **state)
{
	(void)state;
	for (size_t crash = 0;; crash++) {
		struct nt_state_log_mark mark = {0}, read;
		size_t before;
		int r;

		tear_down(NULL);
		assert_int_equal(publish_set(&mark, 1, 100), 0);
		assert_int_equal(publish_set(&mark, 2, BIG), 0);
		assert_int_equal(publish_set(&mark, 3, 10), 0);
		before = written;
		budget = before + crash;
		r = publish_set(&mark, 4, 1000);
		if (r == 0) {
			assert_true(crash > 2);
			assert_int_equal(load(&read), 4);
			break;
		}
		assert_in_range(load(&read), 3, 4);
		/* The next owner, on another machine, goes on from there. */
		budget = SIZE_MAX;
		boot = 2;
		assert_int_equal(publish_set(&read, 5, BIG), 0);
		assert_int_equal(load(&mark), 5);
	}
}

static void crashes_one_after_the_other_never_cost_the_last_whole_set(void **state)
{
	struct nt_state_log_mark mark = {0};
	unsigned int whole = 1;

	(void)state;
	assert_int_equal(publish_set(&mark, 1, BIG), 0);
	for (unsigned int n = 2; n < 40; n++) {
		boot = n;
		budget = written + n % 7;
		if (publish_set(&mark, n, n % 3 ? BIG : 10) == 0)
			whole = n;
		budget = SIZE_MAX;
		assert_in_range(load(&mark), whole, n);
		whole = load(&mark);
	}
	assert_true(whole > 30);
}

static void a_manifest_waits_until_its_chunks_are_safe(void **state)
{
	struct nt_state_log_mark mark = {0}, read;

	(void)state;
	flush_result = -ETIMEDOUT;
	assert_int_equal(publish_set(&mark, 1, 10), -ETIMEDOUT);
	assert_int_equal(written, 1);
	assert_int_equal(mark.generation, 0);
	assert_int_equal(load(&read), 0);
	flush_result = 0;
	assert_int_equal(publish_set(&mark, 2, 10), 0);
	assert_int_equal(flushes, 3);
	assert_int_equal(load(&read), 2);
}

static void keys_that_are_no_longer_used_are_removed(void **state)
{
	struct nt_state_log_mark mark = {0};
	size_t left = 0;

	(void)state;
	for (unsigned int n = 1; n <= 2; n++)
		assert_int_equal(publish_set(&mark, n, BIG), 0);
	for (unsigned int n = 3; n <= 4; n++)
		assert_int_equal(publish_set(&mark, n, 1), 0);
	for (size_t i = 0; i < keys; i++)
		left += entries[i].value.len > 0;
	assert_int_equal(left, 4); /* a chunk and a manifest for each slot */
	assert_int_equal(load(&mark), 4);
}

/* Two owners for a while: one does not know yet that it has lost the shard. */
static void two_that_write_at_once_leave_a_set_that_is_whole_and_make_more(void **state)
{
	struct nt_state_log_mark one = {0}, other;

	(void)state;
	assert_int_equal(publish_set(&one, 1, BIG), 0);
	assert_int_equal(load(&other), 1);
	boot = 2;
	budget = written + 2;
	assert_int_equal(publish_set(&other, 3, BIG), -EIO);
	budget = SIZE_MAX;
	boot = 1;
	assert_int_equal(publish_set(&one, 2, BIG), 0);
	assert_int_equal(load(&one), 2);
	boot = 2;
	assert_int_equal(publish_set(&other, 4, BIG), 0);
	assert_in_range(load(&other), 1, 4);
	assert_int_equal(publish_set(&other, 5, BIG), 0);
	assert_int_equal(load(&other), 5);
}

static void the_later_position_counts_not_the_later_writing(void **state)
{
	struct nt_state_log_mark mark = {0};

	(void)state;
	assert_int_equal(publish_set(&mark, 9, 10), 0);
	assert_int_equal(publish_set(&mark, 5, 10), 0);
	assert_int_equal(load(&mark), 9);
	/* The next one does not go where the one that counts is. */
	assert_int_equal(publish_set(&mark, 6, 10), 0);
	assert_int_equal(load(&mark), 9);
	assert_int_equal(publish_set(&mark, 10, 10), 0);
	assert_int_equal(load(&mark), 10);
}

static int refuse_the_newest(void *loader, const struct nt_state_set *set)
{
	unsigned int *calls = loader;

	(*calls)++;
	return set->real_ns == 2 ? -EBADMSG : 7;
}

static void a_set_that_cannot_be_used_gives_way_to_the_one_before(void **state)
{
	struct nt_state_log_mark mark = {0};
	nt_auto(nt_state_log) struct nt_state_log *state_log = NULL;
	unsigned int calls = 0;

	(void)state;
	assert_int_equal(publish_set(&mark, 1, 10), 0);
	assert_int_equal(publish_set(&mark, 2, 10), 0);
	state_log = read_all(SHARD);
	assert_int_equal(nt_state_log_load(state_log, refuse_the_newest, &calls), 7);
	assert_int_equal(calls, 2);
}

static void a_changed_byte_is_noticed(void **state)
{
	struct nt_state_log_mark mark = {0};
	struct nt_buf *value;

	(void)state;
	assert_int_equal(publish_set(&mark, 1, 10), 0);
	assert_int_equal(publish_set(&mark, 2, 1000), 0);
	value = &find_entry("state/4/0/0")->value;
	value->data[value->len - 500] ^= 1;
	assert_int_equal(load(&mark), 1);
}

static void other_shards_heads_and_nonsense_are_passed_over(void **state)
{
	static const char *const names[] = {
		"",
		"state/",
		"state/4",
		"state/4/0",
		"state/4/0/",
		"state/4/2/0",
		"state/4/0/x",
		"state/4/0/manifests",
		"job/0123456789abcdef",
		"state/-4/0/0",
		"state/04x/0/0",
	};
	nt_auto(nt_state_log) struct nt_state_log *state_log = NULL;
	struct nt_state_log_mark mark = {0};
	unsigned int n = 0;

	(void)state;
	assert_int_equal(publish_set(&mark, 1, 10), 0);
	state_log = read_all(SHARD + 1);
	assert_int_equal(nt_state_log_counters(state_log)->records, 0);
	assert_int_equal(nt_state_log_load(state_log, check_set, &n), -ENOENT);
	nt_state_log_free(state_log);
	state_log = read_all(SHARD);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct nt_bus_record record = {
			.topic = NT_TOPIC_STATE,
			.key = names[i],
			.key_len = strlen(names[i]),
			.value = "x",
			.value_len = 1,
		};

		assert_int_equal(nt_state_log_take(state_log, &record), 0);
	}
	assert_int_equal(nt_state_log_counters(state_log)->records, 2);
	assert_int_equal(nt_state_log_counters(state_log)->refused, 0);
	assert_int_equal(nt_state_log_load(state_log, check_set, &n), 7);
}

static void take_as(struct nt_state_log *state_log, const char *key,
		    const struct nt_message *message)
{
	nt_autobuf struct nt_buf buf = {0};
	struct nt_bus_record record = {.topic = NT_TOPIC_STATE, .key = key, .key_len = strlen(key)};

	assert_int_equal(nt_message_encode(message, &buf), 0);
	record.value = buf.data;
	record.value_len = buf.len;
	assert_int_equal(nt_state_log_take(state_log, &record), 0);
}

static void what_says_what_cannot_be_is_refused_and_counted(void **state)
{
	nt_auto(nt_state_log) struct nt_state_log *state_log = NULL;
	const struct nt_bus_record junk = {.topic = NT_TOPIC_STATE,
					   .key = "state/4/0/0",
					   .key_len = 11,
					   .value = "\xff",
					   .value_len = 1};
	struct nt_message message = {
		.agent = "a", .key = "", .body = NT_BODY_STATE, .state = {.shard = SHARD}};
	unsigned int n = 0;

	(void)state;
	assert_int_equal(nt_state_log_new(SHARD, &state_log), 0);
	assert_int_equal(nt_state_log_take(state_log, &junk), 0);
	take_as(state_log, "state/4/0/0", &message); /* no generation */
	message.state.generation = 3;
	take_as(state_log, "state/4/0/0", &message); /* of the other slot */
	message.state.shard = SHARD + 1;
	take_as(state_log, "state/4/1/0", &message); /* of another shard */
	message.state.shard = SHARD;
	assert_int_equal(nt_state_log_counters(state_log)->refused, 4);
	take_as(state_log, "state/4/1/1024", &message);
	take_as(state_log, "state/4/1/4294967294", &message);
	assert_int_equal(nt_state_log_counters(state_log)->over_cap, 2);
	/* A manifest of chunks that never came, and one that promises more than there can be. */
	message.state.chunks = 4000000000;
	take_as(state_log, "state/4/1/manifest", &message);
	assert_int_equal(nt_state_log_load(state_log, check_set, &n), -ENOENT);
	assert_int_equal(nt_state_log_counters(state_log)->torn, 1);
}

static void a_set_over_the_cap_is_efbig_and_nothing_is_written(void **state)
{
	const size_t part = 60 << 20;
	nt_autofree uint8_t *bytes = calloc(1, part);
	struct nt_state_item item[5];
	const struct nt_state_set set = {.item = item, .items = 5, .shard = SHARD};
	struct nt_state_log_mark mark = {0};

	(void)state;
	assert_non_null(bytes);
	for (size_t i = 0; i < 5; i++)
		item[i] = (struct nt_state_item){"same", bytes, part};
	assert_int_equal(publish_all(&port, "", &set, &mark), -EFBIG);
	assert_int_equal(written, 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_on_the_bus_is_enoent),
		TEST(a_set_comes_back_however_large),
		TEST(a_crash_between_any_two_records_leaves_a_set_that_is_whole),
		TEST(crashes_one_after_the_other_never_cost_the_last_whole_set),
		TEST(a_manifest_waits_until_its_chunks_are_safe),
		TEST(keys_that_are_no_longer_used_are_removed),
		TEST(two_that_write_at_once_leave_a_set_that_is_whole_and_make_more),
		TEST(the_later_position_counts_not_the_later_writing),
		TEST(a_set_that_cannot_be_used_gives_way_to_the_one_before),
		TEST(a_changed_byte_is_noticed),
		TEST(other_shards_heads_and_nonsense_are_passed_over),
		TEST(what_says_what_cannot_be_is_refused_and_counted),
		TEST(a_set_over_the_cap_is_efbig_and_nothing_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
