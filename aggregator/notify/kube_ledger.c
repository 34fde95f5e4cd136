/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/kube_ledger.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base/parse_number.h"

/* Ids of ours alone: what others may have written never gets any further. */
static bool is_id(const char *text, size_t len)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";

	return len && len < NT_KUBE_LEDGER_ID && strspn(text, allowed) >= len;
}

/* "ID@BEGIN:END" */
static void read_entry(const char *text, size_t len, struct nt_kube_ledger *ledger)
{
	const char *at = memchr(text, '@', len);
	const char *colon = at ? memchr(at, ':', len - (size_t)(at - text)) : NULL;
	uint64_t begin_s, end_s;

	if (!colon || ledger->entries == NT_KUBE_LEDGER_ENTRIES ||
	    !is_id(text, (size_t)(at - text)) ||
	    nt_parse_u64(at + 1, (size_t)(colon - at - 1), 0, INT64_MAX, &begin_s) < 0 ||
	    nt_parse_u64(colon + 1, len - (size_t)(colon + 1 - text), 0, INT64_MAX, &end_s) < 0)
		return;
	ledger->entry[ledger->entries].begin_s = begin_s;
	ledger->entry[ledger->entries].end_s = end_s;
	memset(ledger->entry[ledger->entries].id, 0, NT_KUBE_LEDGER_ID);
	memcpy(ledger->entry[ledger->entries++].id, text, (size_t)(at - text));
}

void nt_kube_ledger_read(const char *text, struct nt_kube_ledger *ret_ledger)
{
	ret_ledger->entries = 0;
	while (*text) {
		size_t len = strcspn(text, ",");

		read_entry(text, len, ret_ledger);
		text += len + (text[len] == ',');
	}
}

int nt_kube_ledger_write(const struct nt_kube_ledger *ledger, struct nt_buf *buf)
{
	int r = nt_buf_printf(buf, "%s", "");

	for (size_t i = 0; r == 0 && i < ledger->entries; i++)
		r = nt_buf_printf(buf, "%s%s@%" PRIu64 ":%" PRIu64, i ? "," : "",
				  ledger->entry[i].id, ledger->entry[i].begin_s,
				  ledger->entry[i].end_s);
	return r < 0 ? -ENOMEM : 0;
}

static void drop(struct nt_kube_ledger *ledger, size_t i)
{
	memmove(&ledger->entry[i], &ledger->entry[i + 1],
		(ledger->entries - i - 1) * sizeof(ledger->entry[0]));
	ledger->entries--;
}

bool nt_kube_ledger_note(struct nt_kube_ledger *ledger, const char *id, bool is_end, uint64_t now_s)
{
	size_t len = strlen(id);

	for (size_t i = 0; i < ledger->entries; i++) {
		if (strcmp(ledger->entry[i].id, id) != 0)
			continue;
		if (!is_end || ledger->entry[i].end_s)
			return false;
		ledger->entry[i].end_s = now_s;
		return true;
	}
	if (is_end || !is_id(id, len))
		return false;
	if (ledger->entries == NT_KUBE_LEDGER_ENTRIES)
		drop(ledger, 0);
	memset(&ledger->entry[ledger->entries], 0, sizeof(ledger->entry[0]));
	memcpy(ledger->entry[ledger->entries].id, id, len);
	ledger->entry[ledger->entries++].begin_s = now_s;
	return true;
}

static bool is_within(uint64_t time_s, uint64_t now_s, uint64_t span_s)
{
	return time_s + span_s > now_s;
}

/* One whose end was never noted does not stay open for good. */
static bool is_open(const struct nt_kube_ledger *ledger, size_t i, uint64_t now_s)
{
	return !ledger->entry[i].end_s &&
	       is_within(ledger->entry[i].begin_s, now_s, NT_KUBE_LEDGER_OPEN_S);
}

void nt_kube_ledger_forget(struct nt_kube_ledger *ledger, uint64_t now_s, uint64_t span_s)
{
	for (size_t i = ledger->entries; i-- > 0;)
		if (!is_open(ledger, i, now_s) &&
		    !is_within(ledger->entry[i].end_s, now_s, span_s) &&
		    !is_within(ledger->entry[i].begin_s, now_s, span_s))
			drop(ledger, i);
}

size_t nt_kube_ledger_count(const struct nt_kube_ledger *ledger, uint64_t now_s, uint64_t span_s)
{
	size_t count = 0;

	for (size_t i = 0; i < ledger->entries; i++)
		count += is_within(ledger->entry[i].begin_s, now_s, span_s);
	return count;
}

bool nt_kube_ledger_is_quiet(const struct nt_kube_ledger *ledger, uint64_t now_s, uint64_t span_s)
{
	for (size_t i = 0; i < ledger->entries; i++)
		if (is_open(ledger, i, now_s) ||
		    is_within(ledger->entry[i].begin_s, now_s, span_s) ||
		    is_within(ledger->entry[i].end_s, now_s, span_s))
			return false;
	return true;
}
