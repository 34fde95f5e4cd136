/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/store/store_delivery.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *row, *delivery;
} outcomes[NT_OUTCOME_END] = {
	{"parked", "queued"}, {"waiting", "queued"},  {"skipped", "skipped"},
	{"failed", "failed"}, {"expired", "expired"}, {"sent", "sent"},
};

static int outcome_of_row(const char *state)
{
	for (int i = 0; i < NT_OUTCOME_END; i++)
		if (!strcmp(outcomes[i].row, state))
			return i;
	return -EBADMSG;
}

/* A message waiting at another aggregator is parked here. */
static int outcome_of_delivery(const char *state)
{
	for (int i = 0; i < NT_OUTCOME_END; i++)
		if (!strcmp(outcomes[i].delivery, state))
			return i;
	return -EBADMSG;
}

int nt_delivery_read_rows(struct nt_store *store, const char *incident,
			  struct nt_delivery_rows *ret_rows)
{
	nt_autostmt sqlite3_stmt *select = NULL;
	int r;

	ret_rows->count = 0;
	r = nt_db_prepare(store->db,
			  "SELECT receiver, event, severity, state, attempts, queued_ns, next_ns"
			  " FROM message WHERE incident = ? ORDER BY number",
			  &select);
	if (r < 0)
		return r;
	nt_db_bind_text(select, 1, incident);
	while (ret_rows->count < NT_WIRE_MAX_DELIVERIES && (r = nt_db_step(select)) > 0) {
		struct nt_delivery_row *row = &ret_rows->row[ret_rows->count++];
		uint64_t severity = nt_db_column(select, 2);

		(void)snprintf(row->receiver, sizeof(row->receiver), "%s", nt_db_text(select, 0));
		row->resolved = !strcmp(nt_db_text(select, 1), "resolved");
		row->severity = severity < NT_STORE_SEVERITY_END ? (enum nt_store_severity)severity
								 : NT_STORE_SEVERITY_INFO;
		row->outcome = outcome_of_row(nt_db_text(select, 3));
		if (row->outcome < 0)
			return row->outcome;
		row->attempts = (uint32_t)nt_db_column(select, 4);
		row->real_ns = nt_db_column(select, row->outcome > NT_OUTCOME_WAITING ? 6 : 5);
	}
	return r < 0 ? r : 0;
}

int nt_delivery_read(const struct nt_delivery *delivery, struct nt_delivery_row *ret_row)
{
	const size_t len = strlen(delivery->receiver);
	struct nt_delivery_row row = {
		.resolved = !strcmp(delivery->event, "resolved"),
		.severity = nt_store_severity_of(delivery->severity),
		.outcome = outcome_of_delivery(delivery->state),
		.attempts = delivery->attempts,
		.real_ns = delivery->real_ns,
	};

	if (!len || len >= sizeof(row.receiver) || row.outcome < 0 ||
	    row.severity == NT_STORE_SEVERITY_END ||
	    (!row.resolved && strcmp(delivery->event, "firing") != 0))
		return -EINVAL;
	memcpy(row.receiver, delivery->receiver, len);
	*ret_row = row;
	return 0;
}

const struct nt_delivery_row *nt_delivery_find(const struct nt_delivery_rows *rows,
					       const struct nt_delivery_row *like)
{
	for (size_t i = 0; i < rows->count; i++) {
		const struct nt_delivery_row *row = &rows->row[i];

		if (!strcmp(row->receiver, like->receiver) && row->resolved == like->resolved &&
		    (row->resolved || row->severity == like->severity))
			return row;
	}
	return NULL;
}

int nt_delivery_write_row(struct nt_store *store, const char *incident,
			  const struct nt_delivery_row *row)
{
	nt_autostmt sqlite3_stmt *put = NULL;
	int r;

	r = nt_db_prepare(store->db,
			  "INSERT INTO message (incident, receiver, event, severity, state,"
			  " attempts, queued_ns, next_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)"
			  " ON CONFLICT (incident, receiver, event, severity) DO UPDATE SET"
			  " state = ?5, attempts = max(attempts, ?6), next_ns = ?7, body = NULL",
			  &put);
	if (r < 0)
		return r;
	nt_db_bind_text(put, 1, incident);
	nt_db_bind_text(put, 2, row->receiver);
	nt_db_bind_text(put, 3, row->resolved ? "resolved" : "firing");
	nt_db_bind_number(put, 4, row->severity);
	nt_db_bind_text(put, 5, outcomes[row->outcome].row);
	nt_db_bind_number(put, 6, row->attempts);
	nt_db_bind_number(put, 7, row->real_ns);
	return nt_db_run(put);
}

struct nt_delivery nt_delivery_of(const struct nt_delivery_row *row)
{
	return (struct nt_delivery){
		.receiver = row->receiver,
		.event = row->resolved ? "resolved" : "firing",
		.severity = nt_store_severity_name(row->severity),
		.state = outcomes[row->outcome].delivery,
		.attempts = row->attempts,
		.real_ns = row->real_ns,
	};
}
