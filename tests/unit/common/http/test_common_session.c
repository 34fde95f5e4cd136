/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/http/session.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/http/cookie.h"

static const unsigned char alice[NT_SESSION_SUM_BYTES] = {1}, bob[NT_SESSION_SUM_BYTES] = {2};

static struct nt_sessions sessions;

static int set_up(void **state)
{
	(void)state;
	nt_sessions_init(&sessions);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nt_sessions_destroy(&sessions);
	return 0;
}

static void begin(const unsigned char *token, uint64_t now_ns, char id[NT_SESSION_TEXT_BYTES])
{
	struct nt_session session;

	assert_int_equal(nt_sessions_begin(&sessions, token, now_ns, id, &session), 0);
	assert_memory_equal(session.token_sum, token, NT_SESSION_SUM_BYTES);
	assert_int_equal(session.expires_ns, now_ns + NT_SESSION_LIFE_NS);
	assert_int_equal(strlen(id), NT_SESSION_TEXT_BYTES - 1);
}

static bool is_open(const char *id, uint64_t now_ns)
{
	struct nt_session session;

	return nt_sessions_find(&sessions, id, strlen(id), now_ns, &session);
}

static uint64_t evicted(uint64_t now_ns)
{
	struct nt_sessions_stats stats;

	nt_sessions_stats(&sessions, now_ns, &stats);
	assert_true(stats.now <= NT_SESSION_MAX_COUNT);
	assert_int_equal(stats.begun, stats.now + stats.ended + stats.expired + stats.evicted);
	return stats.evicted;
}

static void a_session_is_found_by_its_whole_id_until_it_is_ended(void **state)
{
	char one[NT_SESSION_TEXT_BYTES], other[NT_SESSION_TEXT_BYTES], longer[80];
	struct nt_session session;

	(void)state;
	begin(alice, 1, one);
	begin(bob, 2, other);
	assert_string_not_equal(one, other);
	assert_true(nt_sessions_find(&sessions, other, strlen(other), 3, &session));
	assert_memory_equal(session.token_sum, bob, sizeof(bob));

	(void)snprintf(longer, sizeof(longer), "%s0", one);
	assert_false(is_open(longer, 3));
	longer[NT_SESSION_TEXT_BYTES - 2] = '\0';
	assert_false(is_open(longer, 3));
	assert_false(is_open("", 3));
	(void)snprintf(longer, sizeof(longer), "%s", one);
	longer[5] = longer[5] == '0' ? '1' : '0';
	assert_false(is_open(longer, 3));

	nt_sessions_end(&sessions, one, strlen(one));
	nt_sessions_end(&sessions, one, strlen(one));
	assert_false(is_open(one, 3));
	assert_true(is_open(other, 3));
	assert_int_equal(evicted(3), 0);
}

static void a_session_expires_by_age_and_when_it_is_not_used(void **state)
{
	char idle[NT_SESSION_TEXT_BYTES], used[NT_SESSION_TEXT_BYTES];
	struct nt_sessions_stats stats;
	uint64_t now_ns;

	(void)state;
	begin(alice, 1, idle);
	begin(alice, 1, used);
	assert_true(is_open(idle, NT_SESSION_IDLE_NS));
	for (now_ns = 1; now_ns < NT_SESSION_LIFE_NS; now_ns += NT_SESSION_IDLE_NS / 2)
		assert_true(is_open(used, now_ns));
	assert_false(is_open(idle, NT_SESSION_LIFE_NS));
	assert_true(is_open(used, NT_SESSION_LIFE_NS));
	assert_false(is_open(used, NT_SESSION_LIFE_NS + 1));
	nt_sessions_stats(&sessions, NT_SESSION_LIFE_NS + 1, &stats);
	assert_int_equal(stats.expired, 2);
	assert_int_equal(stats.now, 0);
}

static void an_unused_session_ends_at_its_idle_time(void **state)
{
	char id[NT_SESSION_TEXT_BYTES];

	(void)state;
	begin(alice, 1, id);
	assert_false(is_open(id, 1 + NT_SESSION_IDLE_NS));
}

/* Two threads read the clock, and the later one is first. */
static void an_earlier_time_of_another_thread_ends_no_session(void **state)
{
	char id[NT_SESSION_TEXT_BYTES];

	(void)state;
	begin(alice, 1000, id);
	assert_true(is_open(id, 2000));
	assert_true(is_open(id, 1999));
	assert_true(is_open(id, 1999 + NT_SESSION_IDLE_NS));
}

static void at_the_cap_the_token_with_most_sessions_loses_its_least_used(void **state)
{
	char of_bob[NT_SESSION_TEXT_BYTES], late[NT_SESSION_TEXT_BYTES],
		id[NT_SESSION_MAX_COUNT][NT_SESSION_TEXT_BYTES];

	(void)state;
	begin(bob, 1, of_bob); /* the oldest of all */
	for (uint64_t i = 1; i < NT_SESSION_MAX_COUNT; i++)
		begin(alice, i + 1, id[i]);
	assert_int_equal(evicted(NT_SESSION_MAX_COUNT), 0);
	assert_true(is_open(id[1], NT_SESSION_MAX_COUNT + 1)); /* the oldest of alice, in use */
	begin(alice, NT_SESSION_MAX_COUNT + 2, id[0]);
	assert_int_equal(evicted(NT_SESSION_MAX_COUNT + 2), 1);
	assert_false(is_open(id[2], NT_SESSION_MAX_COUNT + 3));
	assert_true(is_open(id[1], NT_SESSION_MAX_COUNT + 3));
	for (uint64_t i = 0; i < 2 * NT_SESSION_MAX_COUNT; i++)
		begin(alice, NT_SESSION_MAX_COUNT + 4, id[0]);
	begin(bob, NT_SESSION_MAX_COUNT + 4, late);
	begin(alice, NT_SESSION_MAX_COUNT + 4, id[0]);
	assert_true(is_open(late, NT_SESSION_MAX_COUNT + 4));
	assert_true(is_open(of_bob, NT_SESSION_MAX_COUNT + 4));
}

static void a_csrf_token_belongs_to_one_session(void **state)
{
	char one[NT_SESSION_TEXT_BYTES], other[NT_SESSION_TEXT_BYTES], csrf[NT_SESSION_TEXT_BYTES];

	(void)state;
	begin(alice, 1, one);
	begin(alice, 1, other);
	nt_session_csrf(one, csrf);
	assert_true(nt_session_csrf_matches(one, csrf));
	assert_false(nt_session_csrf_matches(other, csrf));
	assert_false(nt_session_csrf_matches(one, one));
	assert_false(nt_session_csrf_matches(one, ""));
	csrf[63] = csrf[63] == '0' ? '1' : '0';
	assert_false(nt_session_csrf_matches(one, csrf));
	csrf[63] = '\0';
	assert_false(nt_session_csrf_matches(one, csrf));
}

/* ---- the header --------------------------------------------------------------------------------- */

static int find(const char *text, const char **ret_value, size_t *ret_len)
{
	return nt_cookie_find(text, strlen(text), "id", ret_value, ret_len);
}

static void a_cookie_is_found_among_others(void **state)
{
	static const struct {
		const char *text, *value;
	} good[] = {
		{"id=abc", "abc"},
		{"a=b; id=abc", "abc"},
		{"id=abc; a=b", "abc"},
		{"a=id=x;id=abc ;", "abc"},
		{"id=", ""},
		{"id=a=b", "a=b"},
		{";;  ; \tid=abc", "abc"},
		{"id=\"abc\"", "\"abc\""},
		{"idx=1; id=abc", "abc"},
	};
	static const char *const none[] = {"", ";", "id", "ID=abc", "xid=abc", "id =abc", "=id"};
	const char *value;
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(find(good[i].text, &value, &len), 0);
		assert_int_equal(len, strlen(good[i].value));
		assert_memory_equal(value, good[i].value, len);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(find(none[i], &value, &len), -ENOENT);
}

static void two_cookies_of_one_name_are_none(void **state)
{
	const char *value = NULL;
	size_t len;

	(void)state;
	assert_int_equal(find("id=abc; id=abc", &value, &len), -EEXIST);
	assert_int_equal(find("id=abc; a=b; id=", &value, &len), -EEXIST);
	assert_null(value);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_session_is_found_by_its_whole_id_until_it_is_ended),
		TEST(a_session_expires_by_age_and_when_it_is_not_used),
		TEST(an_unused_session_ends_at_its_idle_time),
		TEST(an_earlier_time_of_another_thread_ends_no_session),
		TEST(at_the_cap_the_token_with_most_sessions_loses_its_least_used),
		TEST(a_csrf_token_belongs_to_one_session),
		cmocka_unit_test(a_cookie_is_found_among_others),
		cmocka_unit_test(two_cookies_of_one_name_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
