/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /api/v1/audit: which requests changed something or were refused. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "aggregator/api/api_impl.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "common/system/log.h"
#include "proto/json.h"

void nt_api_note_write(void *data, const struct nt_httpd_write *write)
{
	const struct nt_api *api = data;

	struct nt_httpd_write own = *write;

	if (!strcmp(write->path, NT_AUDIT_SESSION))
		own.body_len = 0; /* it has no body, but clients may send a token in it */
	nt_audit_add(api->audit, &own, nt_clock_real_ns());
	nt_info("audit: status=%u token='%s' by_cookie=%s certificate='%s' address=%s method=%s path='%s' "
		"request=%s",
		write->status, write->identity->name, write->identity->by_cookie ? "yes" : "no",
		write->certificate, write->address, write->method, write->path, write->request_id);
}

int nt_api_audit(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	nt_autofree struct nt_audit_entry *entry = NULL;
	nt_autojson json_t *items = json_array();
	const struct nt_api *api = data;
	uint64_t before = UINT64_MAX;
	struct nt_api_query query;
	char next[24] = "";
	size_t count;
	int r = nt_api_query_read(request, "", reply, &query);

	if (r)
		return r < 0 ? r : 0;
	if (query.cursor &&
	    (query.cursor[0] != 'a' || nt_parse_u64(query.cursor + 1, strlen(query.cursor + 1), 1,
						    NT_AUDIT_MAX_NUMBER, &before) < 0))
		return nt_api_bad_cursor(request, reply);
	entry = calloc(query.limit + 1, sizeof(*entry));
	if (!entry || !items)
		return -ENOMEM;
	count = nt_audit_list(api->audit, before, query.limit + 1, entry);
	for (size_t i = 0; i < count && i < query.limit; i++) {
		if (json_array_append_new(items, nt_audit_entry_json(&entry[i])))
			return -ENOMEM;
	}
	if (count > query.limit)
		(void)snprintf(next, sizeof(next), "a%" PRIu64, entry[query.limit - 1].number);
	return nt_api_reply_list(reply, nt_take(items), next);
}
