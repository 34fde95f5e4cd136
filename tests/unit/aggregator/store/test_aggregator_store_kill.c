/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An aggregator that is killed at each write to its store in turn, and started again: every message
 * is sent, an end only after its beginning, and at most one message of a kill is sent twice. The
 * requests are those to Alertmanager, with its repeats, and to PagerDuty, with its key.
 */
#include <fcntl.h>
#include <unistd.h>

#include "aggregator/notify/format/format.h"
#include "aggregator/notify/notice.h"
#include "proto/json.h"
#include "tests/unit/aggregator/killing_file.h"
#include "tests/unit/aggregator/store.h"

enum {
	MAX_WRITES = 5000,
	LOG_BYTES = 4096,
};

/* ---- the life of incidents ------------------------------------------------------------------- */

static char log_path[SCRATCH_BYTES + 16];

static const char *const names[] = {"am", "pager"};
static const enum nt_receiver_kind kinds[] = {NT_RECEIVER_ALERTMANAGER, NT_RECEIVER_PAGERDUTY};

enum {
	KINDS = 2,
};

/* "am firing a0" by what is in the request: the label, or the key by which PagerDuty knows it. */
static void describe(size_t kind, const json_t *body, uint64_t now_ns, char *line, size_t size)
{
	const json_t *alert = json_array_get(body, 0), *labels = json_object_get(alert, "labels");
	const char *ends = nt_json_get_text(alert, "endsAt", "");
	uint64_t ends_ns = 0;

	if (kinds[kind] == NT_RECEIVER_PAGERDUTY) {
		bool is_end = !strcmp(nt_json_get_text(body, "event_action", ""), "resolve");

		(void)snprintf(line, size, "%s %s %s\n", names[kind],
			       is_end ? "resolved" : "firing",
			       nt_json_get_text(body, "dedup_key", ""));
		return;
	}
	assert_int_equal(json_array_size(body), 1);
	assert_int_equal(nt_clock_parse(ends, strlen(ends), &ends_ns), 0);
	(void)snprintf(line, size, "%s %s %s\n", names[kind],
		       ends_ns > now_ns ? "firing" : "resolved",
		       nt_json_get_text(labels, "incident", ""));
}

/* What a receiver gets, of an outbox message or as a reminder: a line of the log. */
static void send_it(size_t kind, const char *text, size_t len, unsigned int severities,
		    bool is_reminder)
{
	struct nt_notice *notice = calloc(1, sizeof(*notice));
	const struct nt_notice *list[] = {notice};
	const struct nt_format_input input = {
		.notice = list,
		.notices = 1,
		.url = "https://receiver",
		.secret = "key",
		.now_ns = nt_clock_real_ns(),
		.alive_ns = 4 * NT_MINUTE,
	};
	nt_autoformatpost struct nt_format_post post = {0};
	nt_autojson json_t *body = NULL;
	char line[256] = "repeat ";
	size_t head = is_reminder ? strlen(line) : 0;
	int fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_non_null(notice);
	assert_int_equal(nt_notice_read(text, len, NULL, is_reminder, notice), 0);
	notice->severities = severities;
	assert_int_equal(nt_receiver_format_of(kinds[kind])->write(&input, &post), 0);
	body = json_loads((const char *)post.body.data, 0, NULL);
	describe(kind, body, input.now_ns, line + head, sizeof(line) - head);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, line, strlen(line)), strlen(line));
	(void)close(fd);
	free(notice);
}

static void deliver_to(size_t kind)
{
	struct nt_outbox_message message = {0};
	uint64_t next_ns;

	while (nt_store_outbox_next(store, names[kind], UINT64_MAX / 4, &message, &next_ns) > 0) {
		send_it(kind, message.body, message.body_len, message.severities, false);
		assert_int_equal(nt_store_outbox_done(store, message.number, NT_OUTBOX_SENT,
						      NT_TEST_TIME_NS, 0),
				 0);
		nt_outbox_message_release(&message);
	}
}

static void deliver(void)
{
	for (size_t i = 0; i < KINDS; i++)
		deliver_to(i);
}

/* Alertmanager gets what is open again; what has ended must not come back. */
static void repeat(void)
{
	struct nt_store_firing firing[4];
	int count = nt_store_list_firing(store, names[0], 0, 4, firing);

	assert_true(count >= 0);
	for (int i = 0; i < count; i++)
		send_it(0, firing[i].body, firing[i].body_len, firing[i].severities, true);
	nt_store_firing_release(firing, (size_t)count);
}

static void change(const char *id, bool resolved, uint64_t minute)
{
	struct nt_wire_incident incident =
		nt_test_incident(id, resolved ? "resolved" : "firing", &nt_test_rank_5, 1);

	incident.seen_real_ns = NT_TEST_TIME_NS + minute * NT_MINUTE;
	incident.until_real_ns = resolved ? incident.seen_real_ns : 0;
	assert_int_equal(put(&incident), 0);
	deliver();
	repeat();
}

/* One incident ends as usual, one is announced as flapping, and one is held and stays open. */
static void live(void)
{
	assert_int_equal(
		open_with(&(struct nt_store_options){
			.path = path,
			.receiver = names,
			.receivers = KINDS,
			.flap = {.changes = 2, .window_ns = NT_HOUR, .quiet_ns = 30 * NT_MINUTE}}),
		0);
	deliver();
	for (unsigned int i = 0; i < 2; i++) {
		char id[16];

		(void)snprintf(id, sizeof(id), "a%u", i);
		change(id, false, 2 * (uint64_t)i);
		change(id, true, 2 * (uint64_t)i + 1);
	}
	change("a2", false, 4);
	nt_store_tick(store, NT_TEST_TIME_NS + NT_HOUR);
	deliver();
	repeat();
	nt_store_close(store);
	store = NULL;
}

/* ---- what was sent --------------------------------------------------------------------------- */

static size_t count(const char *log, const char *id, size_t *ret_first)
{
	size_t found = 0, len = strlen(id), line = 0;

	for (const char *at = log; *at; at = strchr(at, '\n') + 1, line++)
		if (!strncmp(at, id, len) && at[len] == '\n' && !found++)
			*ret_first = line;
	return found;
}

/* Of one receiver. Returns its lines. */
static size_t check_receiver(const char *log, size_t kind, unsigned int write_number)
{
	static const char *const sent[] = {"firing a0", "resolved a0", "firing a1", "resolved a1",
					   "firing a2"};
	size_t place[5] = {0}, lines = 0;

	for (size_t i = 0; i < 5; i++) {
		char line[64];
		size_t found;

		(void)snprintf(line, sizeof(line), "%s %s", names[kind], sent[i]);
		found = count(log, line, &place[i]);
		if (!found)
			fail_msg("killed at write %u: %s was lost:\n%s", write_number, line, log);
		lines += found;
	}
	if (place[0] > place[1] || place[2] > place[3])
		fail_msg("killed at write %u:\n%s", write_number, log);
	return lines;
}

static void check_log(unsigned int write_number)
{
	char log[LOG_BYTES] = "";
	FILE *file = fopen(log_path, "re");
	size_t lines = 0, sent = 0, place = 0;

	assert_non_null(file);
	log[fread(log, 1, sizeof(log) - 1, file)] = '\0';
	(void)fclose(file);
	for (const char *at = log; *at; at = strchr(at, '\n') + 1)
		lines += strncmp(at, "repeat ", 7) != 0;
	for (size_t i = 0; i < KINDS; i++)
		sent += check_receiver(log, i, write_number);
	/* The second time of a message has the same key, so the receiver recognises it. */
	if (lines != sent || lines > KINDS * 5 + 1)
		fail_msg("killed at write %u:\n%s", write_number, log);
	if (!count(log, "repeat am firing a2", &place))
		fail_msg("killed at write %u: an open alert is not repeated:\n%s", write_number,
			 log);
	for (unsigned int i = 0; i < 2; i++) {
		char line[32];
		const char *last = log, *at;

		(void)snprintf(line, sizeof(line), "am resolved a%u\n", i);
		for (at = strstr(log, line); at; at = strstr(at + 1, line))
			last = at;
		(void)snprintf(line, sizeof(line), "am firing a%u\n", i);
		if (strstr(last, line))
			fail_msg("killed at write %u: it came back after its end:\n%s",
				 write_number, log);
	}
}

static void nothing_is_lost_or_out_of_order_whatever_write_it_is_killed_at(void **state)
{
	unsigned int at = 0;
	bool was_killed = true;

	(void)state;
	killing_install();
	while (was_killed && ++at < MAX_WRITES) {
		assert_int_equal(scratch_make_in_memory(dir), 0);
		(void)snprintf(path, sizeof(path), "%s/store.db", dir);
		(void)snprintf(log_path, sizeof(log_path), "%s/log", dir);
		was_killed = killing_run(live, at);
		if (was_killed)
			assert_false(killing_run(live, 0));
		check_log(at);
		scratch_remove(dir);
	}
	print_message("killed at each of %u writes\n", at - 1);
	assert_true(at > 100 && at < MAX_WRITES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost_or_out_of_order_whatever_write_it_is_killed_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
