/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * JSON both ways: any bytes are read or refused; an incident out of any bytes of the wire becomes a
 * document that is read again, whatever its texts and numbers are.
 *
 * A line of the file of the audit log is refused, or is an entry whose own line is the same entry again.
 *
 * Alerts: such an incident, or any JSON as a message, becomes a request of each kind of receiver,
 * which is JSON and keeps the limits that can be read from its size.
 */
#include "proto/json.h"

#include <assert.h>
#include <string.h>

#include "aggregator/api/audit_line.h"
#include "aggregator/notify/format/format.h"
#include "common/base/utf8.h"
#include "common/system/clock.h"
#include "tests/fuzz/lib/cost.h"

static void write_and_read(json_t *object)
{
	nt_autojson json_t *own = object, *again = NULL;
	nt_autobuf struct nt_buf text = {0};
	nt_autofree char *expected =
		json_dumps(own, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));

	assert(own && expected);
	assert(nt_json_dump(own, false, &text) == 0);
	/* And a line feed: the text is jansson's. */
	assert(text.len == strlen(expected) + 1);
	assert(memcmp(text.data, expected, text.len - 1) == 0);
	assert(nt_json_load(text.data, text.len, &again) == 0);
}

/* ---- the audit log ------------------------------------------------------------------------------ */

static void read_audit_line(const char *text, size_t len)
{
	struct nt_audit_entry entry, again;
	nt_autobuf struct nt_buf line = {0};

	if (!nt_audit_line_parse(text, len, &entry))
		return;
	assert(entry.number && entry.number <= NT_AUDIT_MAX_NUMBER);
	assert(entry.status >= 100 && entry.status <= 599);
	assert(nt_audit_line_append(&entry, &line) == 0);
	assert(line.len && line.len <= NT_AUDIT_LINE_BYTES + 1);
	assert(line.data[line.len - 1] == '\n');
	assert(!memchr(line.data, '\n', line.len - 1));
	assert(nt_audit_line_parse((const char *)line.data, line.len - 1, &again));
	/* The time is written in milliseconds. */
	assert(again.real_ns / 1000000 == entry.real_ns / 1000000);
	assert(again.number == entry.number && again.status == entry.status);
	assert(again.by_cookie == entry.by_cookie);
	assert(strcmp(again.token, entry.token) == 0);
	assert(strcmp(again.certificate, entry.certificate) == 0);
	assert(strcmp(again.address, entry.address) == 0);
	assert(strcmp(again.method, entry.method) == 0);
	assert(strcmp(again.path, entry.path) == 0);
	assert(strcmp(again.body, entry.body) == 0);
	assert(strcmp(again.request_id, entry.request_id) == 0);
}

static void read_audit_file(const char *text, size_t size)
{
	const char *end = text + size;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = newline ? newline : end;

		read_audit_line(text, (size_t)(line_end - text));
		text = line_end + 1;
	}
}

static int run(const uint8_t *data, size_t size)
{
	nt_auto(nt_message) struct nt_message *message = NULL;
	nt_autojson json_t *json = NULL;

	read_audit_file((const char *)data, size);
	if (nt_json_load(data, size, &json) == 0)
		write_and_read(json_incref(json));
	if (nt_message_decode(data, size, &message) < 0 || message->body != NT_BODY_INCIDENT)
		return 0;
	write_and_read(nt_json_incident(&message->incident));
	for (size_t i = 0; i < message->incident.culprits && i < 4; i++)
		write_and_read(
			nt_json_slow_rank(&message->incident, &message->incident.culprit[i]));
	return 0;
}

/* ---- alerts ---------------------------------------------------------------------------------- */

static const size_t most[NT_RECEIVER_KINDS] = {
	[NT_RECEIVER_ALERTMANAGER] = 64 << 10,
	[NT_RECEIVER_SLACK] = 64 << 10,
	[NT_RECEIVER_FEISHU] = 20000,
	[NT_RECEIVER_DINGTALK] = 20000,
	/* 4,096 bytes, of which some need two in JSON. */
	[NT_RECEIVER_WECOM] = 2 * 4096 + 64,
	[NT_RECEIVER_TEAMS] = 28 << 10,
	[NT_RECEIVER_PAGERDUTY] = 512000,
	[NT_RECEIVER_OPSGENIE] = 64 << 10,
};

static void write_all(const struct nt_notice *notice)
{
	for (int kind = NT_RECEIVER_ALERTMANAGER; kind < NT_RECEIVER_NVSENTINEL; kind++) {
		nt_autoformatpost struct nt_format_post post = {0};
		nt_autojson json_t *again = NULL;
		const struct nt_format_input input = {
			.notice = &notice,
			.notices = 1,
			.url = "https://host/path",
			.secret = "secret",
			.now_ns = NT_HOUR,
			.alive_ns = NT_MINUTE,
		};

		assert(nt_receiver_format_of((enum nt_receiver_kind)kind)->write(&input, &post) ==
		       0);
		assert(post.body.len <= most[kind]);
		assert(nt_utf8_is_valid((const char *)post.body.data, post.body.len));
		assert(nt_json_load(post.body.data, post.body.len, &again) == 0);
	}
}

static void read_and_write(const void *body, size_t len)
{
	struct nt_notice notice, digest;
	const struct nt_notice *list[] = {&notice, &notice, &notice};

	if (nt_notice_read(body, len, "https://n.example/i/", false, &notice) < 0)
		return;
	write_all(&notice);
	nt_notice_digest(list, 3, &digest);
	write_all(&digest);
}

static int run_alerts(const uint8_t *data, size_t size)
{
	nt_auto(nt_message) struct nt_message *message = NULL;
	nt_autojson json_t *document = NULL;
	nt_autobuf struct nt_buf body = {0};

	read_and_write(data, size);
	if (nt_message_decode(data, size, &message) < 0 || message->body != NT_BODY_INCIDENT)
		return 0;
	document = json_pack("{s:s, s:o}", "type", "incident.firing", "data",
			     nt_json_incident(&message->incident));
	assert(document && nt_json_dump(document, false, &body) == 0);
	read_and_write(body.data, body.len);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fuzz_cost json = {
		.peak = {64 << 10, 128},
		.steps = {20000, 100},
	};
	static const struct fuzz_cost alerts = {
		.peak = {512 << 10, 256},
		.total = {16 << 20, 4096},
		.steps = {4000000, 1000},
	};

	(void)fuzz_run(&alerts, run_alerts, data, size);
	return fuzz_run(&json, run, data, size);
}
