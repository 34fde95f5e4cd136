/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/http/httpd_slots.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/system/clock.h"

enum {
	MANY = 32,
};

static const struct nt_slots_limits limits = {
	.ordinary = 4,
	.ordinary_per_address = 3,
	.reserved = 3,
	.header_ns = 5 * NT_SECOND,
	.request_ns = 15 * NT_SECOND,
	.idle_ns = 10 * NT_SECOND,
	.reserved_ns = 2 * NT_SECOND,
	.answer_bytes = 100,
	.answer_bytes_per_address = 50,
};

/* A connection as its client has it. */
struct client {
	int fd[2]; /* the server's end, the client's */
	struct nt_slot *slot;
};

static struct nt_slots slots;
static struct client clients[MANY];
static size_t count;

static int set_up(void **state)
{
	(void)state;
	nt_slots_init(&slots, &limits);
	count = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < count; i++) {
		nt_slots_leave(&slots, clients[i].slot);
		(void)close(clients[i].fd[0]);
		(void)close(clients[i].fd[1]);
	}
	nt_slots_destroy(&slots);
	return 0;
}

static struct client *enter(const char *address, uint64_t now_ns)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	struct client *client = &clients[count];
	bool is_v6 = inet_pton(AF_INET, address, &v4.sin_addr) != 1;

	assert_true(count < MANY);
	if (is_v6)
		assert_int_equal(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, client->fd), 0);
	count++;
	assert_int_equal(nt_slots_enter(&slots, client->fd[0],
					is_v6 ? (const void *)&v6 : (const void *)&v4, now_ns,
					&client->slot),
			 0);
	return client;
}

/* Has the other side shut it down? */
static bool is_cut(const struct client *client)
{
	char byte;
	ssize_t n = recv(client->fd[1], &byte, 1, MSG_DONTWAIT);

	assert_true(n == 0 || (n < 0 && errno == EAGAIN));
	return n == 0;
}

static struct nt_slots_stats stats(void)
{
	struct nt_slots_stats now;

	nt_slots_stats(&slots, &now);
	return now;
}

static void beyond_the_ordinary_slots_a_connection_gets_a_reserved_one(void **state)
{
	static const char *const addresses[] = {"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"};

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_false(enter(addresses[i], 0)->slot->is_reserved);
	assert_true(enter("10.0.0.5", 0)->slot->is_reserved);
	assert_int_equal(stats().ordinary, 4);
	assert_int_equal(stats().reserved, 1);
	assert_int_equal(stats().over_limit, 1);
}

static void beyond_its_share_an_address_gets_a_reserved_one(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_false(enter("10.0.0.1", 0)->slot->is_reserved);
	assert_true(enter("10.0.0.1", 0)->slot->is_reserved);
	assert_false(enter("10.0.0.2", 0)->slot->is_reserved);
}

static void an_ipv6_address_counts_by_its_64_bits_and_a_mapped_one_whole(void **state)
{
	(void)state;
	assert_false(enter("2001:db8::1", 0)->slot->is_reserved);
	assert_false(enter("2001:db8::2", 0)->slot->is_reserved);
	assert_false(enter("2001:db8::3:4", 0)->slot->is_reserved);
	assert_true(enter("2001:db8::5", 0)->slot->is_reserved);
	assert_false(enter("::ffff:10.0.0.1", 0)->slot->is_reserved);
	assert_int_equal(stats().ordinary, 4);
}

static void mapped_addresses_are_not_one(void **state)
{
	(void)state;
	assert_false(enter("::ffff:10.0.0.1", 0)->slot->is_reserved);
	assert_false(enter("::ffff:10.0.0.2", 0)->slot->is_reserved);
	assert_false(enter("::ffff:10.0.0.3", 0)->slot->is_reserved);
	assert_false(enter("::ffff:10.0.0.4", 0)->slot->is_reserved);
}

static void when_the_reserved_are_taken_the_address_with_most_loses_its_oldest(void **state)
{
	struct client *honest, *first, *second, *third;

	(void)state;
	for (int i = 0; i < 3; i++)
		(void)enter("10.0.0.1", 0);
	(void)enter("10.0.0.2", 0);
	honest = enter("10.0.0.3", 1);
	first = enter("10.0.0.1", 2);
	second = enter("10.0.0.1", 3);
	third = enter("10.0.0.1", 4);
	assert_true(is_cut(first));
	assert_false(is_cut(honest));
	assert_false(is_cut(second));
	assert_false(is_cut(third));
	(void)enter("10.0.0.4", 5);
	assert_true(is_cut(second));
	assert_false(is_cut(honest));
	assert_int_equal(stats().reserved, 3);
	assert_int_equal(stats().evicted, 2);
	assert_int_equal(stats().over_limit, 5);
}

static void a_place_is_free_when_it_is_cut_off_not_when_it_is_closed(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		(void)enter("10.0.0.1", 0);
	(void)nt_slots_reap(&slots, limits.header_ns);
	assert_int_equal(stats().ordinary, 0);
	assert_int_equal(stats().reaped, 3);
	assert_false(enter("10.0.0.1", limits.header_ns)->slot->is_reserved);
	assert_int_equal(stats().ordinary, 1);
}

static void each_phase_has_a_deadline_of_its_own(void **state)
{
	struct client *client = enter("10.0.0.1", 0);
	uint64_t now_ns = 4 * NT_SECOND;

	(void)state;
	assert_int_equal(nt_slots_reap(&slots, now_ns), limits.header_ns);
	nt_slots_request(&slots, client->slot, now_ns);
	assert_int_equal(nt_slots_reap(&slots, now_ns), now_ns + limits.request_ns);
	now_ns += limits.request_ns - 1;
	nt_slots_idle(&slots, client->slot, now_ns);
	assert_int_equal(nt_slots_reap(&slots, now_ns), now_ns + limits.idle_ns);
	assert_false(is_cut(client));
	assert_int_equal(nt_slots_reap(&slots, now_ns + limits.idle_ns), UINT64_MAX);
	assert_true(is_cut(client));
}

static void a_reserved_slot_has_one_deadline_for_all(void **state)
{
	struct client *client;

	(void)state;
	for (int i = 0; i < 3; i++)
		(void)enter("10.0.0.1", NT_SECOND);
	client = enter("10.0.0.1", NT_SECOND);
	nt_slots_request(&slots, client->slot, 2 * NT_SECOND);
	nt_slots_idle(&slots, client->slot, 2 * NT_SECOND);
	(void)nt_slots_reap(&slots, NT_SECOND + limits.reserved_ns - 1);
	assert_false(is_cut(client));
	(void)nt_slots_reap(&slots, NT_SECOND + limits.reserved_ns);
	assert_true(is_cut(client));
	assert_int_equal(stats().reaped, 1);
}

static void answers_have_a_share_of_the_memory(void **state)
{
	struct nt_slot *one = enter("10.0.0.1", 0)->slot, *other = enter("10.0.0.1", 0)->slot;
	struct nt_slot *next = enter("10.0.0.2", 0)->slot, *last = enter("10.0.0.3", 0)->slot;

	(void)state;
	assert_true(nt_slots_answer(&slots, one, 60)); /* alone */
	assert_false(nt_slots_answer(&slots, other, 1));
	assert_true(nt_slots_answer(&slots, one, 20)); /* in place of the other */
	assert_true(nt_slots_answer(&slots, other, 30));
	assert_true(nt_slots_answer(&slots, next, 50));
	assert_int_equal(stats().answer_bytes, 100);
	assert_false(nt_slots_answer(&slots, last, UINT64_MAX));
	assert_false(nt_slots_answer(&slots, last, 1));
	nt_slots_idle(&slots, other, 0);
	assert_int_equal(stats().answer_bytes, 70);
	assert_false(nt_slots_answer(&slots, last, 31));
	assert_true(nt_slots_answer(&slots, last, 30));
}

static void a_slot_that_is_left_is_free(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		(void)enter("10.0.0.1", 0);
	nt_slots_leave(&slots, clients[1].slot);
	clients[1].slot = NULL;
	assert_int_equal(stats().ordinary, 2);
	assert_false(enter("10.0.0.1", 0)->slot->is_reserved);
	assert_true(enter("10.0.0.1", 0)->slot->is_reserved);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(beyond_the_ordinary_slots_a_connection_gets_a_reserved_one),
		TEST(beyond_its_share_an_address_gets_a_reserved_one),
		TEST(an_ipv6_address_counts_by_its_64_bits_and_a_mapped_one_whole),
		TEST(mapped_addresses_are_not_one),
		TEST(when_the_reserved_are_taken_the_address_with_most_loses_its_oldest),
		TEST(a_place_is_free_when_it_is_cut_off_not_when_it_is_closed),
		TEST(each_phase_has_a_deadline_of_its_own),
		TEST(a_reserved_slot_has_one_deadline_for_all),
		TEST(answers_have_a_share_of_the_memory),
		TEST(a_slot_that_is_left_is_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
