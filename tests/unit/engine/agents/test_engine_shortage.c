/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/agents/shortage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NOW_NS (1000 * NT_SECOND)

static void take(struct nt_shortages *shortages, const char *node, uint64_t real_ns,
		 struct nt_node_limit *limit, size_t limits)
{
	struct nt_message message = {
		.body = NT_BODY_NODE,
		.real_ns = real_ns,
		.node = {.node = node, .limit = limit, .limits = limits},
	};

	assert_int_equal(nt_shortages_take(shortages, &message, 3), 0);
}

static struct nt_node_limit limit_of(const char *what)
{
	return (struct nt_node_limit){
		.what = what,
		.unit = "processes",
		.owner = "user 65534",
		.left_out = 412,
		.owner_left_out = 400,
		.cap = 1024,
	};
}

static void the_last_word_of_a_node_counts(void **state)
{
	struct nt_node_limit limit[] = {limit_of("processes"), limit_of("keys")};
	struct nt_shortages shortages = {0};

	(void)state;
	take(&shortages, "a", NOW_NS, NULL, 0);
	assert_null(shortages.node);
	take(&shortages, "a", NOW_NS + 1, limit, 2);
	assert_int_equal(shortages.node->limits, 2);
	assert_string_equal(shortages.node->limit[1].what, "keys");
	assert_string_equal(shortages.node->limit[1].owner, "user 65534");
	assert_int_equal(shortages.node->limit[1].left_out, 412);
	take(&shortages, "a", NOW_NS + 2, limit, 1);
	assert_int_equal(shortages.node->limits, 1);
	take(&shortages, "a", NOW_NS, NULL, 0); /* long on its way */
	assert_int_equal(HASH_COUNT(shortages.node), 1);
	take(&shortages, "a", NOW_NS + 3, NULL, 0);
	assert_null(shortages.node);
	nt_shortages_release(&shortages);
}

static void a_word_is_forgotten_after_half_a_minute(void **state)
{
	struct nt_node_limit limit = limit_of("processes");
	struct nt_shortages shortages = {0};

	(void)state;
	/* By the clock of other agents. */
	take(&shortages, "a", NOW_NS, &limit, 1);
	take(&shortages, "b", NOW_NS + NT_SHORTAGE_KEEP_NS - 1, NULL, 0);
	assert_true(nt_shortage_is_fresh(&shortages, shortages.node));
	take(&shortages, "b", NOW_NS + NT_SHORTAGE_KEEP_NS, NULL, 0);
	assert_false(nt_shortage_is_fresh(&shortages, shortages.node));
	nt_shortages_wait(&shortages, 0);
	assert_null(shortages.node);
	/* By ours, where nobody speaks. */
	take(&shortages, "a", NOW_NS + NT_MINUTE, &limit, 1);
	nt_shortages_wait(&shortages, NT_SHORTAGE_KEEP_NS - 1);
	assert_non_null(shortages.node);
	take(&shortages, "a", NOW_NS + NT_MINUTE, &limit, 1);
	nt_shortages_wait(&shortages, NT_SHORTAGE_KEEP_NS - 1);
	assert_non_null(shortages.node);
	nt_shortages_wait(&shortages, 1);
	assert_null(shortages.node);
	nt_shortages_release(&shortages);
}

static void nodes_limits_and_texts_have_caps(void **state)
{
	struct nt_node_limit limit[NT_SHORTAGE_LIMITS + 1];
	struct nt_shortages shortages = {0};
	char text[NT_WIRE_MAX_TEXT + 1], node[] = "0";

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[0] = '\033';
	text[sizeof(text) - 1] = '\0';
	for (size_t i = 0; i <= NT_SHORTAGE_LIMITS; i++) {
		limit[i] = limit_of(text);
		limit[i].owner = limit[i].unit = text;
	}
	for (; node[0] < '5'; node[0]++)
		take(&shortages, node, NOW_NS, limit, NT_SHORTAGE_LIMITS + 1);
	assert_int_equal(HASH_COUNT(shortages.node), 3);
	assert_int_equal(shortages.over_cap, 2);
	assert_int_equal(shortages.node->limits, NT_SHORTAGE_LIMITS);
	assert_int_equal(strlen(shortages.node->limit[0].owner), NT_SHORTAGE_OWNER - 1);
	assert_int_equal(shortages.node->limit[0].what[0], '?');
	nt_shortages_release(&shortages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_word_of_a_node_counts),
		cmocka_unit_test(a_word_is_forgotten_after_half_a_minute),
		cmocka_unit_test(nodes_limits_and_texts_have_caps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
