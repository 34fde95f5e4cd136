/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The requests of each kind, held to files under tests/golden/alerts. Where a format changes on
 * purpose, NT_GOLDEN_UPDATE=1 writes them anew: read the difference.
 */
#include "common/system/file.h"
#include "tests/unit/aggregator/notify/format/format_case.h"

static void compare_golden(const char *name, const struct nt_buf *text)
{
	nt_autobuf struct nt_buf want = {0};
	char path[128];

	(void)snprintf(path, sizeof(path), "tests/golden/alerts/%s.json", name);
	if (getenv("NT_GOLDEN_UPDATE")) {
		FILE *file = fopen(path, "w");

		assert_non_null(file);
		assert_int_equal(fwrite(text->data, 1, text->len, file), text->len);
		assert_int_equal(fclose(file), 0);
	}
	assert_int_equal(nt_file_read(path, 1 << 20, &want), 0);
	if (want.len != text->len || memcmp(want.data, text->data, text->len) != 0)
		fail_msg("%s is not:\n%.*s", path, (int)text->len, (const char *)text->data);
}

/* URL, authorization and body in one document. */
static void compare_post(const char *name, const struct nt_format_post *post)
{
	const char *authorization =
		post->authorization.data ? (const char *)post->authorization.data : "";
	nt_autojson json_t *whole =
		json_pack("{s:s, s:s, s:o}", "url", (const char *)post->url.data, "authorization",
			  authorization, "body", case_json(post));
	nt_autobuf struct nt_buf text = {0};

	assert_non_null(whole);
	assert_int_equal(nt_json_dump(whole, true, &text), 0);
	compare_golden(name, &text);
}

static void compare_kinds(const char *name, const struct nt_notice *notice)
{
	for (int kind = NT_RECEIVER_ALERTMANAGER; kind < NT_RECEIVER_NVSENTINEL; kind++) {
		nt_autoformatpost struct nt_format_post post = {0};
		char file[64];

		(void)snprintf(file, sizeof(file), "%s-%s",
			       nt_receiver_format_of((enum nt_receiver_kind)kind)->name, name);
		case_write((enum nt_receiver_kind)kind, notice, &post);
		compare_post(file, &post);
	}
}

static void a_firing_incident_is_as_in_the_files(void **state)
{
	struct nt_wire_incident incident = case_incident("firing");
	struct nt_notice notice;

	(void)state;
	case_notice(&incident, &notice);
	compare_kinds("firing", &notice);
}

static void a_resolved_incident_is_as_in_the_files(void **state)
{
	struct nt_wire_incident incident = case_incident("resolved");
	struct nt_notice notice;

	(void)state;
	case_notice(&incident, &notice);
	compare_kinds("resolved", &notice);
}

/* What ends links, mentions, tags and fields in one of the formats, and what forges lines. */
static void a_hostile_name_is_as_in_the_files(void **state)
{
	static struct nt_culprit culprit;
	struct nt_wire_incident incident = case_incident("firing");
	struct nt_notice notice;

	(void)state;
	culprit = nt_test_rank_5;
	culprit.pod = "<!channel> <@all> @all *b* _i_ `c` ~s~";
	culprit.node = "n\"\\\n[x](http://evil/)\r# head";
	culprit.gpu = "</font>&lt;\xe2\x80\xae$(id)";
	incident.culprit = &culprit;
	incident.job = "{{ .Job }} </at>\x01\xff";
	incident.namespace = "a\",\"severity\":\"none";
	case_notice(&incident, &notice);
	compare_kinds("hostile", &notice);
}

static void a_digest_lists_eight_and_counts_the_rest(void **state)
{
	struct nt_wire_incident firing = case_incident("firing"), over = case_incident("resolved");
	static struct nt_notice notice[22], digest;
	const struct nt_notice *list[22];

	(void)state;
	for (size_t i = 0; i < 22; i++) {
		case_notice(i % 3 ? &firing : &over, &notice[i]);
		list[i] = &notice[i];
	}
	nt_notice_digest(list, 22, &digest);
	assert_string_equal(digest.title, "DIGEST: 14 firing, 8 resolved");
	assert_int_equal(digest.fields, NT_NOTICE_DIGEST_LINES + 1);
	assert_string_equal(digest.field[8].name, "And");
	assert_string_equal(digest.field[8].value, "14 others: neutracer incidents");
	for (int kind = NT_RECEIVER_SLACK; kind <= NT_RECEIVER_TEAMS; kind++) {
		nt_autoformatpost struct nt_format_post post = {0};
		char file[64];

		(void)snprintf(file, sizeof(file), "%s-digest",
			       nt_receiver_format_of((enum nt_receiver_kind)kind)->name);
		case_write((enum nt_receiver_kind)kind, &digest, &post);
		compare_post(file, &post);
	}
}

static void a_digest_of_eight_leaves_none_out(void **state)
{
	struct nt_wire_incident firing = case_incident("firing");
	static struct nt_notice notice[8], digest;
	const struct nt_notice *list[8];

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		case_notice(&firing, &notice[i]);
		list[i] = &notice[i];
	}
	nt_notice_digest(list, 8, &digest);
	assert_int_equal(digest.fields, 8);
}

/* ---- Alertmanager ---------------------------------------------------------------------------- */

static json_t *alerts_of(const struct nt_notice *notice)
{
	nt_autoformatpost struct nt_format_post post = {0};

	case_write(NT_RECEIVER_ALERTMANAGER, notice, &post);
	return case_json(&post);
}

static const char *label_of(const json_t *alerts, size_t i, const char *name)
{
	return nt_json_get_text(json_object_get(json_array_get(alerts, i), "labels"), name, "");
}

static const char *end_of(const json_t *alerts, size_t i)
{
	return nt_json_get_text(json_array_get(alerts, i), "endsAt", "");
}

static void a_severity_that_rises_ends_the_alert_of_the_lower_one(void **state)
{
	struct nt_wire_incident incident = case_incident("firing");
	nt_autojson json_t *alerts = NULL;
	struct nt_notice notice;

	(void)state;
	case_notice(&incident, &notice);
	notice.severities = 1U << NT_NOTICE_WARNING | 1U << NT_NOTICE_CRITICAL;
	alerts = alerts_of(&notice);
	assert_int_equal(json_array_size(alerts), 2);
	assert_string_equal(label_of(alerts, 0, "severity"), "critical");
	assert_string_equal(end_of(alerts, 0), "2026-11-21T03:05:12Z");
	assert_string_equal(label_of(alerts, 1, "severity"), "warning");
	assert_string_equal(end_of(alerts, 1), "2026-11-21T03:01:12Z");
}

static void all_alerts_that_were_sent_end_with_the_incident(void **state)
{
	struct nt_wire_incident incident = case_incident("resolved");
	nt_autojson json_t *alerts = NULL;
	struct nt_notice notice;

	(void)state;
	incident.severity = "info"; /* it has fallen meanwhile */
	case_notice(&incident, &notice);
	notice.severities = 1U << NT_NOTICE_WARNING | 1U << NT_NOTICE_CRITICAL;
	alerts = alerts_of(&notice);
	assert_int_equal(json_array_size(alerts), 2);
	assert_string_equal(label_of(alerts, 0, "severity"), "warning");
	assert_string_equal(label_of(alerts, 1, "severity"), "critical");
	assert_string_equal(end_of(alerts, 0), "2026-11-21T03:01:12Z");
}

/* Otherwise the one that was sent expires, and another one begins. */
static void a_reminder_repeats_the_alert_that_was_sent(void **state)
{
	struct nt_wire_incident incident = case_incident("firing");
	nt_autojson json_t *alerts = NULL;
	struct nt_notice notice;

	(void)state;
	incident.severity = "warning"; /* it has fallen meanwhile */
	case_notice(&incident, &notice);
	notice.state = NT_NOTICE_STILL_FIRING;
	notice.severities = 1U << NT_NOTICE_WARNING | 1U << NT_NOTICE_CRITICAL;
	alerts = alerts_of(&notice);
	assert_int_equal(json_array_size(alerts), 1);
	assert_string_equal(label_of(alerts, 0, "severity"), "critical");
	assert_string_equal(end_of(alerts, 0), "2026-11-21T03:05:12Z");
}

static void an_alert_never_ends_before_it_begins(void **state)
{
	struct nt_wire_incident incident = case_incident("resolved");
	nt_autojson json_t *alerts = NULL;
	struct nt_notice notice;

	(void)state;
	incident.since_real_ns = CASE_NOW_NS + NT_HOUR;
	case_notice(&incident, &notice);
	alerts = alerts_of(&notice);
	assert_string_equal(nt_json_get_text(json_array_get(alerts, 0), "startsAt", ""),
			    "2026-11-21T03:01:12Z");
	assert_string_equal(end_of(alerts, 0), "2026-11-21T03:01:12Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_firing_incident_is_as_in_the_files),
		cmocka_unit_test(a_resolved_incident_is_as_in_the_files),
		cmocka_unit_test(a_hostile_name_is_as_in_the_files),
		cmocka_unit_test(a_digest_lists_eight_and_counts_the_rest),
		cmocka_unit_test(a_digest_of_eight_leaves_none_out),
		cmocka_unit_test(a_severity_that_rises_ends_the_alert_of_the_lower_one),
		cmocka_unit_test(all_alerts_that_were_sent_end_with_the_incident),
		cmocka_unit_test(a_reminder_repeats_the_alert_that_was_sent),
		cmocka_unit_test(an_alert_never_ends_before_it_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
