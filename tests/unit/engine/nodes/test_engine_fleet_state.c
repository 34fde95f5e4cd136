/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/nodes/fleet.h"

#include <errno.h>

#include "fleet_feed.h"

enum {
	LEARNED = FEED_LEARN + 60, /* minutes */
};

struct saved {
	struct nt_buf shared, portion[NT_FLEET_PORTIONS];
	int nodes;
};

static void save(const struct nt_fleet *fleet, struct saved *saved)
{
	memset(saved, 0, sizeof(*saved));
	assert_int_equal(nt_fleet_save(fleet, 0, &saved->shared), 0);
	for (uint32_t i = 0; i < NT_FLEET_PORTIONS; i++) {
		int nodes = nt_fleet_save_portion(fleet, 0, i, &saved->portion[i]);

		assert_true(nodes >= 0);
		saved->nodes += nodes;
	}
}

static void load(struct nt_fleet *fleet, const struct saved *saved)
{
	assert_int_equal(nt_fleet_load(fleet, 0, saved->shared.data, saved->shared.len), 0);
	for (uint32_t i = 0; i < NT_FLEET_PORTIONS; i++)
		assert_int_equal(nt_fleet_load_portion(fleet, 0, saved->portion[i].data,
						       saved->portion[i].len),
				 0);
}

static void release(struct saved *saved)
{
	nt_buf_release(&saved->shared);
	for (uint32_t i = 0; i < NT_FLEET_PORTIONS; i++)
		nt_buf_release(&saved->portion[i]);
}

/* The aggregator is killed, and another one goes on from what was saved. */
static void replace_fleet(struct feed *feed)
{
	struct saved saved;

	save(feed->fleet, &saved);
	assert_int_equal(saved.nodes, feed->nodes);
	nt_fleet_free(feed->fleet);
	feed->fleet = feed_fleet(feed);
	load(feed->fleet, &saved);
	release(&saved);
}

static void a_restart_goes_on_without_learning_anew(void **state)
{
	struct feed feed;
	double threshold;

	(void)state;
	feed_open(&feed, FEED_NODES);
	feed_run(&feed, LEARNED);
	threshold = nt_fleet_threshold(feed.fleet);
	replace_fleet(&feed);
	assert_true(fabs(nt_fleet_threshold(feed.fleet) - threshold) < 1e-9);
	feed_run(&feed, 20);
	for (size_t i = 0; i < FEED_NODES; i++) {
		assert_int_equal(nt_fleet_node_state(feed_find(&feed, i)), NT_FLEET_QUIET);
		assert_int_equal(feed_find(&feed, i)->learning_since_ns,
				 FEED_START_NS + FEED_VECTOR_NS);
	}
	feed_break(&feed.node[3], true);
	feed_run(&feed, 4);
	assert_int_equal(feed.events, 1);
	assert_string_equal(feed.event[0].node, "node-3");
	nt_fleet_free(feed.fleet);
}

static void an_open_alarm_survives_and_ends_once(void **state)
{
	struct feed feed;
	struct saved early;
	uint64_t id;

	(void)state;
	feed_open(&feed, FEED_NODES);
	feed_run(&feed, LEARNED);
	save(feed.fleet, &early);
	feed_break(&feed.node[3], true);
	feed_run(&feed, 5);
	assert_int_equal(feed.events, 1);
	id = feed.event[0].id;
	replace_fleet(&feed);
	assert_int_equal(feed_find(&feed, 3)->incident_id, id);
	assert_int_equal(feed_find(&feed, 3)->incident_parts, NT_FLEET_TOLD);
	feed_run(&feed, 8);
	for (size_t i = 1; i < feed.events; i++)
		assert_int_equal(feed.event[i].change, NT_FLEET_ALARM_CHANGED);
	/* The portions may be older than the shared part: the alarm is found again meanwhile. */
	{
		struct saved now;

		save(feed.fleet, &now);
		nt_fleet_free(feed.fleet);
		feed.fleet = feed_fleet(&feed);
		assert_int_equal(nt_fleet_load(feed.fleet, 0, now.shared.data, now.shared.len), 0);
		for (uint32_t i = 0; i < NT_FLEET_PORTIONS; i++)
			assert_int_equal(nt_fleet_load_portion(feed.fleet, 0, early.portion[i].data,
							       early.portion[i].len),
					 0);
		release(&now);
	}
	release(&early);
	feed_run(&feed, 12);
	for (size_t i = 1; i < feed.events; i++)
		assert_int_equal(feed.event[i].change, NT_FLEET_ALARM_CHANGED);
	feed_break(&feed.node[3], false);
	feed_run(&feed, 240);
	assert_int_equal(feed.event[feed.events - 1].change, NT_FLEET_ALARM_ENDED);
	assert_int_equal(feed.event[feed.events - 1].id, id);
	nt_fleet_free(feed.fleet);
}

static void vectors_may_come_before_the_state(void **state)
{
	struct feed feed;
	struct saved saved;

	(void)state;
	feed_open(&feed, FEED_NODES);
	feed_run(&feed, LEARNED);
	save(feed.fleet, &saved);
	nt_fleet_free(feed.fleet);
	feed.fleet = feed_fleet(&feed);
	/* One of them was booted anew meanwhile. */
	feed.node[1].boot_id = "boot-2";
	feed_send(&feed, &feed.node[0], NULL, 0);
	feed_send(&feed, &feed.node[1], NULL, 0);
	load(feed.fleet, &saved);
	release(&saved);
	feed_run(&feed, 5);
	assert_int_equal(nt_fleet_node_state(feed_find(&feed, 0)), NT_FLEET_QUIET);
	assert_int_equal(nt_fleet_node_state(feed_find(&feed, 1)), NT_FLEET_LEARNING);
	assert_int_equal(feed_find(&feed, 1)->reason, NT_FLEET_REBOOTED);
	assert_int_equal(nt_fleet_counters(feed.fleet)->late, 0);
	nt_fleet_free(feed.fleet);
}

static void damaged_state_means_to_learn_anew(void **state)
{
	struct feed feed;
	struct saved saved;
	uint32_t portion = 0;

	(void)state;
	feed_open(&feed, 4);
	feed_run(&feed, LEARNED);
	feed_break(&feed.node[3], true);
	feed_run(&feed, 5);
	save(feed.fleet, &saved);
	while (saved.portion[portion].len < 100)
		portion++;
	for (size_t i = 0; i < saved.shared.len; i++) {
		struct nt_fleet *fleet = feed_fleet(&feed);
		int r;

		saved.shared.data[i] ^= 0x81;
		r = nt_fleet_load(fleet, 0, saved.shared.data, saved.shared.len);
		assert_true(r == 0 || r == -EBADMSG);
		saved.shared.data[i] ^= 0x81;
		assert_int_equal(nt_fleet_load(fleet, 0, saved.shared.data, i), -EBADMSG);
		nt_fleet_free(fleet);
	}
	for (size_t i = 0; i < saved.portion[portion].len; i += 7) {
		struct nt_fleet *fleet = feed_fleet(&feed);
		int r;

		saved.portion[portion].data[i] ^= 0x81;
		r = nt_fleet_load_portion(fleet, 0, saved.portion[portion].data,
					  saved.portion[portion].len);
		assert_true(r == 0 || r == -EBADMSG);
		saved.portion[portion].data[i] ^= 0x81;
		nt_fleet_free(fleet);
	}
	release(&saved);
	nt_fleet_free(feed.fleet);
}

static void a_damaged_score_costs_its_node_alone(void **state)
{
	struct feed feed;
	struct saved saved;

	(void)state;
	feed_open(&feed, 4);
	feed_run(&feed, LEARNED);
	save(feed.fleet, &saved);
	nt_fleet_free(feed.fleet);
	feed.fleet = feed_fleet(&feed);
	/* The last byte of a portion is in the state of its last node's chart. */
	for (uint32_t i = 0; i < NT_FLEET_PORTIONS; i++)
		if (saved.portion[i].len > 100) {
			saved.portion[i].data[saved.portion[i].len - 1] ^= 0xff;
			break;
		}
	load(feed.fleet, &saved);
	release(&saved);
	assert_int_equal(nt_fleet_counters(feed.fleet)->states_refused, 1);
	assert_int_equal(feed.restarts, 1);
	assert_int_equal(feed.restart_reason, NT_FLEET_STATE_LOST);
	feed_run(&feed, 5);
	{
		size_t lost = 0;

		for (size_t i = 0; i < 4; i++)
			if (nt_fleet_node_state(feed_find(&feed, i)) == NT_FLEET_LEARNING) {
				assert_int_equal(feed_find(&feed, i)->reason, NT_FLEET_STATE_LOST);
				lost++;
			}
		assert_int_equal(lost, 1);
	}
	nt_fleet_free(feed.fleet);
}

static void a_released_shard_keeps_its_nodes_as_peers(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed, FEED_NODES);
	feed_run(&feed, LEARNED);
	feed_break(&feed.node[3], true);
	feed_run(&feed, 5);
	assert_int_equal(feed.events, 1);
	nt_fleet_release_shard(feed.fleet, 0);
	/* Its alarm goes on elsewhere. */
	assert_int_equal(feed.events, 1);
	assert_null(feed_find(&feed, 3)->scorer);
	nt_fleet_free(feed.fleet);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_restart_goes_on_without_learning_anew),
		cmocka_unit_test(an_open_alarm_survives_and_ends_once),
		cmocka_unit_test(vectors_may_come_before_the_state),
		cmocka_unit_test(damaged_state_means_to_learn_anew),
		cmocka_unit_test(a_damaged_score_costs_its_node_alone),
		cmocka_unit_test(a_released_shard_keeps_its_nodes_as_peers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
