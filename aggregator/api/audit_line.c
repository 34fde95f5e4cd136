/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/api/audit_line.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/system/clock.h"
#include "proto/json.h"

json_t *nt_audit_entry_json(const struct nt_audit_entry *entry)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= json_object_set_new(object, "number", json_integer((json_int_t)entry->number));
	failed |= json_object_set_new(object, "time", nt_json_time(entry->real_ns));
	failed |= json_object_set_new(object, "token", nt_json_text(entry->token));
	failed |= json_object_set_new(object, "certificate", nt_json_text(entry->certificate));
	failed |= json_object_set_new(object, "by_cookie", json_boolean(entry->by_cookie));
	failed |= json_object_set_new(object, "address", nt_json_text(entry->address));
	failed |= json_object_set_new(object, "method", nt_json_text(entry->method));
	failed |= json_object_set_new(object, "path", nt_json_text(entry->path));
	failed |= json_object_set_new(object, "status", json_integer((json_int_t)entry->status));
	failed |= json_object_set_new(object, "body", nt_json_text(entry->body));
	failed |= json_object_set_new(object, "request_id", nt_json_text(entry->request_id));
	return failed ? NULL : nt_take(object);
}

int nt_audit_line_append(const struct nt_audit_entry *entry, struct nt_buf *buf)
{
	nt_autojson json_t *object = nt_audit_entry_json(entry);

	return object ? nt_json_dump(object, false, buf) : -ENOMEM;
}

static bool get_word(const json_t *object, const char *name, char *text, size_t size)
{
	const char *word = nt_json_get_text(object, name, "");

	(void)snprintf(text, size, "%s", word);
	return strlen(word) < size;
}

bool nt_audit_line_parse(const char *text, size_t len, struct nt_audit_entry *ret_entry)
{
	struct nt_audit_entry entry = {0};
	nt_autojson json_t *object = NULL;
	const char *time;
	json_int_t number, status;

	if (len > NT_AUDIT_LINE_BYTES || nt_json_load(text, len, &object) < 0)
		return false;
	number = json_integer_value(json_object_get(object, "number"));
	status = json_integer_value(json_object_get(object, "status"));
	time = nt_json_get_text(object, "time", "");
	if (number <= 0 || number > NT_AUDIT_MAX_NUMBER || status < 100 || status > 599 ||
	    nt_clock_parse(time, strlen(time), &entry.real_ns) < 0 ||
	    !get_word(object, "token", entry.token, sizeof(entry.token)) ||
	    !get_word(object, "certificate", entry.certificate, sizeof(entry.certificate)) ||
	    !get_word(object, "address", entry.address, sizeof(entry.address)) ||
	    !get_word(object, "method", entry.method, sizeof(entry.method)) ||
	    !get_word(object, "path", entry.path, sizeof(entry.path)) ||
	    !get_word(object, "body", entry.body, sizeof(entry.body)) ||
	    !get_word(object, "request_id", entry.request_id, sizeof(entry.request_id)))
		return false;
	entry.number = (uint64_t)number;
	entry.status = (unsigned int)status;
	entry.by_cookie = json_is_true(json_object_get(object, "by_cookie"));
	*ret_entry = entry;
	return true;
}
