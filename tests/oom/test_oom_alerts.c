/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Alerts without memory: the file of receivers, the formats, digests, the store's lists. */
#include <errno.h>
#include <string.h>

#include "aggregator/notify/receiver_config.h"
#include "common/system/file.h"
#include "tests/oom/oom.h"
#include "tests/unit/aggregator/notify/format/format_case.h"
#include "tests/unit/scratch.h"

static char dir[SCRATCH_BYTES], path[SCRATCH_BYTES + 16];

static int set_up(void **state)
{
	(void)state;
	if (scratch_make(dir))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/file", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_remove(dir);
	return 0;
}

static int read_configs(void *data)
{
	nt_auto(nt_receiver_configs) struct nt_receiver_configs *configs = NULL;
	struct nt_opt_error error = {0};

	(void)data;
	return nt_receiver_configs_read(path, &configs, &error);
}

static void receivers_survive_failed_allocations(void **state)
{
	static const char text[] =
		"incident-url: https://n.example/i/\n"
		"receivers:\n"
		"- {name: am, kind: alertmanager, urls: ['http://a:1', 'http://b:2']}\n"
		"- {name: a, kind: webhook, url: 'http://x/', routes: [{job: a*, class: hang}]}\n";

	(void)state;
	assert_int_equal(nt_file_create(path, 0600, text, sizeof(text) - 1), 0);
	assert_true(nt_oom_sweep(read_configs, NULL) > 4);
}

struct one_kind {
	enum nt_receiver_kind kind;
	const struct nt_buf *body;
};

static int write_one(void *data)
{
	const struct one_kind *one = data;
	nt_autoformatpost struct nt_format_post post = {0};
	static struct nt_notice notice;
	const struct nt_notice *list = &notice;
	int r = nt_notice_read((const char *)one->body->data, one->body->len,
			       "https://n.example/i/", false, &notice);

	if (r < 0)
		return r;
	return nt_receiver_format_of(one->kind)->write(
		&(struct nt_format_input){
			.notice = &list,
			.notices = 1,
			.url = "https://host/path?x=y",
			.secret = "secret",
			.now_ns = CASE_NOW_NS,
			.alive_ns = NT_MINUTE,
		},
		&post);
}

static void formats_survive_failed_allocations(void **state)
{
	static const char *const states[] = {"firing", "resolved"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct nt_wire_incident incident = case_incident(states[i]);
		nt_autobuf struct nt_buf body = {0};

		case_body(&incident, &body);
		for (int kind = NT_RECEIVER_ALERTMANAGER; kind < NT_RECEIVER_KINDS; kind++) {
			struct one_kind one = {(enum nt_receiver_kind)kind, &body};

			assert_true(nt_oom_sweep(write_one, &one) >= 2);
		}
	}
}

static const char *const receivers[] = {"chat"};

static int use_outbox(void *data)
{
	struct nt_outbox_message first = {0}, more[4];
	struct nt_store *store = data;
	size_t count = 0;
	uint64_t next_ns;
	int r = nt_store_outbox_next(store, receivers[0], NT_MINUTE, &first, &next_ns);

	if (r > 0)
		r = nt_store_outbox_more(store, receivers[0], NT_MINUTE, 4, more, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		nt_outbox_message_release(&more[i]);
	nt_outbox_message_release(&first);
	return r < 0 ? r : 0;
}

static int list_firing(void *data)
{
	struct nt_store_firing firing[4];
	int r = nt_store_list_firing(data, receivers[0], 0, 4, firing);

	if (r > 0)
		nt_store_firing_release(firing, (size_t)r);
	return r < 0 ? r : 0;
}

static void the_stores_lists_survive_failed_allocations(void **state)
{
	nt_auto(nt_store) struct nt_store *store = NULL;
	struct nt_store_error error;
	struct nt_sink sink;

	(void)state;
	assert_int_equal(nt_store_open(&(struct nt_store_options){.path = path,
								  .receiver = receivers,
								  .receivers = 1},
				       &store, &error),
			 0);
	sink = nt_store_sink(store);
	for (unsigned int i = 0; i < 3; i++) {
		struct nt_wire_incident incident = case_incident("firing");
		char id[8];

		(void)snprintf(id, sizeof(id), "a%u", i);
		incident.id = id;
		assert_int_equal(sink.incident(sink.data, &incident), 0);
	}
	assert_true(nt_oom_sweep_lenient(use_outbox, store) >= 1);
	for (uint64_t number = 1; number < 4; number++)
		assert_int_equal(nt_store_outbox_done(store, number, NT_OUTBOX_SENT, NT_MINUTE, 0),
				 0);
	assert_true(nt_oom_sweep_lenient(list_firing, store) >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(receivers_survive_failed_allocations, set_up,
						tear_down),
		cmocka_unit_test(formats_survive_failed_allocations),
		cmocka_unit_test_setup_teardown(the_stores_lists_survive_failed_allocations, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
