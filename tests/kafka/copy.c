/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Copies the records of single calls from one bus to another, until there are no more: of a machine
 * without a network to Kafka. Prints their number.
 *
 *   copy FROM TO
 */
#include <inttypes.h>
#include <stdio.h>

#include "common/bus/bus.h"

enum {
	PATIENCE_MS = 2000, /* without a record */
};

static int copy(const char *from, const char *to, uint64_t *ret_records)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	struct nt_bus_record record;
	int r;

	*ret_records = 0;
	r = nt_bus_reader_open(from, 1U << NT_TOPIC_DETAIL, &reader);
	if (r < 0)
		return r;
	r = nt_bus_open(to, NULL, &bus);
	if (r < 0)
		return r;
	while ((r = nt_bus_reader_next(reader, PATIENCE_MS, &record)) > 0) {
		r = nt_bus_publish(bus, &record);
		if (r < 0)
			return r;
		++*ret_records;
	}
	return r < 0 ? r : nt_bus_flush(bus);
}

int main(int argc, char **argv)
{
	uint64_t records;
	int r;

	if (argc != 3) {
		(void)fprintf(stderr, "usage: copy FROM TO\n");
		return 2;
	}
	r = copy(argv[1], argv[2], &records);
	printf("%" PRIu64 "\n", records);
	if (r < 0)
		(void)fprintf(stderr, "copy: error %d\n", -r);
	return r < 0;
}
