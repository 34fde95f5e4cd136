/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Firing incidents: all of them, and those that a receiver knows, for reminders. */
#include <errno.h>
#include <string.h>

#include "aggregator/store/store_impl.h"
#include "common/system/clock.h"

void nt_store_firing_release(struct nt_store_firing *firing, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(firing[i].body);
}

static int read_firing(sqlite3_stmt *select, struct nt_store_firing *ret_firing)
{
	nt_auto(nt_message) struct nt_message *message = NULL;
	nt_autobuf struct nt_buf body = {0};
	int r;

	r = nt_store_decode(select, 1, &message);
	if (r == 0)
		r = nt_store_body(&message->incident, false, nt_db_column(select, 4), &body);
	if (r < 0)
		return r;
	*ret_firing = (struct nt_store_firing){
		.number = nt_db_column(select, 0),
		.severities = (unsigned int)nt_db_column(select, 2),
		.sent_real_ns = nt_db_column(select, 3),
		.body = (char *)body.data,
		.body_len = body.len,
	};
	body = (struct nt_buf){0};
	return 0;
}

static int list_firing(struct nt_store *store, const char *receiver, uint64_t after, size_t max,
		       struct nt_store_firing *firing)
{
	nt_autostmt sqlite3_stmt *select = NULL;
	size_t count = 0;
	int r;

	r = nt_db_prepare(store->db,
			  "SELECT incident.number, incident.body,"
			  " sum(DISTINCT 1 << message.severity), min(message.next_ns),"
			  " (SELECT flap.changes FROM flap_open JOIN flap USING (key)"
			  "  WHERE flap_open.incident = incident.id)"
			  " FROM incident JOIN message ON message.incident = incident.id"
			  " WHERE (incident.state = 'firing' OR incident.id IN"
			  " (SELECT incident FROM flap_open)) AND incident.number > ?1"
			  " AND message.receiver = ?2 AND message.event = 'firing'"
			  " AND message.state IN ('sent', 'expired')"
			  " AND NOT EXISTS (SELECT 1 FROM handling WHERE"
			  "  handling.incident = incident.id AND silenced_until_ns > ?5)"
			  " AND (NOT ?3 OR incident.shard IN (SELECT shard FROM owned))"
			  " GROUP BY incident.number ORDER BY incident.number LIMIT ?4",
			  &select);
	if (r < 0)
		return r;
	nt_db_bind_number(select, 1, after);
	nt_db_bind_text(select, 2, receiver);
	nt_db_bind_number(select, 3, store->options.shared);
	nt_db_bind_number(select, 4, max);
	nt_db_bind_number(select, 5, nt_clock_real_ns());
	while (count < max && (r = nt_db_step(select)) > 0) {
		r = read_firing(select, &firing[count]);
		if (r < 0)
			break;
		count++;
	}
	if (r >= 0)
		return (int)count;
	nt_store_firing_release(firing, count);
	return r;
}

int nt_store_list_firing(struct nt_store *store, const char *receiver, uint64_t after, size_t max,
			 struct nt_store_firing *ret_firing)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = list_firing(store, receiver, after, max, ret_firing);
	pthread_mutex_unlock(&store->lock);
	return r;
}

static int each_firing(struct nt_store *store,
		       int (*found)(void *data, const char *id, const char *job_key,
				    uint32_t attempt),
		       void *data)
{
	nt_autostmt sqlite3_stmt *select = NULL;
	int r;

	r = nt_db_prepare(store->reader,
			  "SELECT id, job_key, attempt FROM incident WHERE state = 'firing'"
			  " ORDER BY number DESC",
			  &select);
	while (r == 0 && (r = nt_db_step(select)) > 0)
		r = found(data, nt_db_text(select, 0), nt_db_text(select, 1),
			  (uint32_t)nt_db_column(select, 2));
	return r;
}

int nt_store_each_firing(struct nt_store *store,
			 int (*found)(void *data, const char *id, const char *job_key,
				      uint32_t attempt),
			 void *data)
{
	int r;

	nt_store_begin_read(store);
	r = each_firing(store, found, data);
	nt_store_end_read(store);
	return r;
}
