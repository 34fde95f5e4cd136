/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Members of one group that share the partitions of a real topic. */
#include <errno.h>

#include "tests/kafka/control.h"
#include "tests/kafka/topics.h"

/* ---- groups ---------------------------------------------------------------------------------- */

struct member {
	struct nt_bus_reader *reader;
	bool owns[PARTITIONS];
	unsigned int assigned, revoked, lost;
	uint64_t committed[PARTITIONS];
};

static void take(void *data, struct nt_bus_position *position)
{
	struct member *member = data;

	assert_int_equal(position->topic, NT_TOPIC_WINDOW);
	assert_true(position->partition < PARTITIONS);
	assert_false(member->owns[position->partition]);
	member->owns[position->partition] = true;
	member->committed[position->partition] = position->offset;
	member->assigned++;
}

static void give(void *data, const struct nt_bus_position *position, bool is_lost)
{
	struct member *member = data;

	assert_true(member->owns[position->partition]);
	member->owns[position->partition] = false;
	member->revoked++;
	member->lost += is_lost;
}

static unsigned int owned(const struct member *member)
{
	unsigned int count = 0;

	for (int i = 0; i < PARTITIONS; i++)
		count += member->owns[i];
	return count;
}

static void join(struct member *member, const char *url, const char *group, const char *name)
{
	const struct nt_bus_group options = {
		.name = group,
		.member = name,
		.grouped = 1U << NT_TOPIC_WINDOW,
		.session_ns = 6 * NT_SECOND,
		.assigned = take,
		.revoked = give,
		.data = member,
	};

	assert_int_equal(nt_bus_reader_join(url, 1U << NT_TOPIC_WINDOW | 1U << NT_TOPIC_NODE, NULL,
					    &options, &member->reader),
			 0);
}

/* One look of a member at what there is: true with a record. */
static bool look(struct member *member, struct nt_bus_record *ret_record)
{
	int r = nt_bus_reader_next(member->reader, LOOK_MS, ret_record);

	assert_true(r >= 0);
	return r > 0;
}

/* Until the shares are these; no record may come meanwhile. */
static void wait_for_shares(struct member *one, unsigned int of_one, struct member *other,
			    unsigned int of_other)
{
	struct nt_bus_record record;

	for (int i = 0; i < 1500; i++) {
		if (one)
			assert_false(look(one, &record));
		if (other)
			assert_false(look(other, &record));
		if ((!one || owned(one) == of_one) && (!other || owned(other) == of_other))
			return;
	}
	fail_msg("shares are %u and %u, wanted %u and %u", one ? owned(one) : 0,
		 other ? owned(other) : 0, of_one, of_other);
}

static void members_share_one_topic_and_each_read_the_other_whole(void **state)
{
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(url_of(state));
	struct member one = {0}, other = {0};
	unsigned int windows = 0, nodes_one = 0, nodes_other = 0, by_one = 0;
	bool seen[600] = {false};
	struct nt_bus_record record;

	join(&one, url_of(state), "share", NULL);
	wait_for_shares(&one, PARTITIONS, NULL, 0);
	join(&other, url_of(state), "share", NULL);
	wait_for_shares(&one, PARTITIONS / 2, &other, PARTITIONS / 2);
	for (int i = 0; i < PARTITIONS; i++)
		assert_int_not_equal(one.owns[i], other.owns[i]);

	publish_many(bus, NT_TOPIC_WINDOW, 0, 600);
	publish_many(bus, NT_TOPIC_NODE, 0, 100);
	for (int i = 0; i < 4000 && (windows < 600 || nodes_one < 100 || nodes_other < 100); i++) {
		struct member *member = i % 2 ? &one : &other;

		if (!look(member, &record))
			continue;
		if (record.topic == NT_TOPIC_NODE) {
			nodes_one += member == &one;
			nodes_other += member == &other;
			continue;
		}
		assert_true(member->owns[record.partition]);
		assert_false(seen[number_of(&record)]);
		seen[number_of(&record)] = true;
		windows++;
		by_one += member == &one;
	}
	assert_int_equal(windows, 600);
	assert_int_equal(nodes_one, 100);
	assert_int_equal(nodes_other, 100);
	assert_in_range(by_one, 1, 599);

	/* Who goes gives its share back. */
	nt_bus_reader_close(other.reader);
	assert_int_equal(owned(&other), 0);
	assert_int_equal(other.lost, 0);
	for (int i = 0; i < 1500 && owned(&one) < PARTITIONS; i++)
		(void)look(&one, &record);
	assert_int_equal(owned(&one), PARTITIONS);
	nt_bus_reader_close(one.reader);
	assert_int_equal(owned(&one), 0);
}

static void a_member_that_is_back_soon_moves_nothing(void **state)
{
	struct member one = {0}, other = {0};
	unsigned int revoked;

	join(&one, url_of(state), "static", "member-1");
	wait_for_shares(&one, PARTITIONS, NULL, 0);
	join(&other, url_of(state), "static", "member-2");
	wait_for_shares(&one, PARTITIONS / 2, &other, PARTITIONS / 2);
	revoked = one.revoked;
	nt_bus_reader_close(other.reader);
	other = (struct member){0};
	join(&other, url_of(state), "static", "member-2");
	wait_for_shares(&one, PARTITIONS / 2, &other, PARTITIONS / 2);
	assert_int_equal(one.revoked, revoked);
	nt_bus_reader_close(one.reader);
	nt_bus_reader_close(other.reader);
}

static void what_is_committed_comes_with_the_next_assignment(void **state)
{
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(url_of(state));
	struct nt_bus_position position[PARTITIONS] = {0};
	struct member member = {0};
	struct nt_bus_record record;
	unsigned int windows = 0;
	size_t count = 0;

	publish_many(bus, NT_TOPIC_WINDOW, 0, 300);
	join(&member, url_of(state), "commit", NULL);
	while (windows < 300) {
		assert_int_equal(nt_bus_reader_next(member.reader, PATIENCE_MS, &record), 1);
		windows++;
		position[record.partition].partition = record.partition;
		position[record.partition].offset = record.offset + 1;
	}
	for (int i = 0; i < PARTITIONS; i++) {
		assert_true(member.committed[i] == NT_BUS_OLDEST);
		if (position[i].offset)
			position[count++] = position[i];
	}
	assert_int_equal(nt_bus_reader_commit(member.reader, position, count), 0);
	nt_bus_reader_close(member.reader);

	member = (struct member){0};
	join(&member, url_of(state), "commit", NULL);
	wait_for_shares(&member, PARTITIONS, NULL, 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(member.committed[position[i].partition], position[i].offset);
	publish_many(bus, NT_TOPIC_WINDOW, 300, 301);
	assert_int_equal(nt_bus_reader_next(member.reader, PATIENCE_MS, &record), 1);
	assert_int_equal(number_of(&record), 300);
	nt_bus_reader_close(member.reader);
}

/* ---- made anew ------------------------------------------------------------------------------- */

/* For so long that the member has heard of it. */
static void a_member_whose_topics_went_gets_its_share_of_those_made_anew(void **state)
{
	const char *url = url_of(state);
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	struct member member = {0};
	struct nt_bus_record record;
	unsigned int read = 0;

	join(&member, url, strrchr(url, '/') + 1, "named");
	wait_for_shares(&member, PARTITIONS, NULL, 0);
	assert_int_equal(control("stop", "1"), 0);
	assert_int_equal(control("start", "1"), 0);
	delete_topics(url);
	for (int i = 0; i < GONE_MS / LOOK_MS; i++)
		assert_false(look(&member, &record));
	assert_true(EVENTUALLY(are_made(url, PARTITIONS)));
	bus = open_bus(url);
	publish_many(bus, NT_TOPIC_WINDOW, 1000, 1100);
	for (int i = 0; i < AGAIN_MS / LOOK_MS && read < 100; i++)
		read += look(&member, &record);
	assert_int_equal(read, 100);
	nt_bus_reader_close(member.reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KAFKA_TEST(members_share_one_topic_and_each_read_the_other_whole),
		KAFKA_TEST(a_member_that_is_back_soon_moves_nothing),
		KAFKA_TEST(what_is_committed_comes_with_the_next_assignment),
		KAFKA_TEST(a_member_whose_topics_went_gets_its_share_of_those_made_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
