/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/live/rank_memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base/ascii.h"
#include "proto/json.h"

enum {
	BYTES_TEXT = 32,
	NAME_TEXT = 64,
	PLACE_TEXT = 96,
};

/* "1.5G", in units of 1024. */
static const char *bytes_text(double bytes, char text[BYTES_TEXT])
{
	static const char units[] = "BKMGTPE";
	size_t i = 0;

	for (; bytes >= 1024 && units[i + 1]; i++)
		bytes /= 1024;
	(void)snprintf(text, BYTES_TEXT, i ? "%.1f%c" : "%.0f%c", bytes, units[i]);
	return text;
}

static bool has_leak(const json_t *memory)
{
	const json_t *sites = json_object_get(memory, "sites");

	for (size_t i = 0; i < json_array_size(sites); i++)
		if (json_is_true(json_object_get(json_array_get(sites, i), "leaks")))
			return true;
	return false;
}

int nt_rank_memory_add(struct nt_table *table, const json_t *rank)
{
	const json_t *memory = json_object_get(rank, "device_memory");
	const json_t *devices = json_object_get(memory, "devices");
	const bool leaks = has_leak(memory),
		   ran_out = nt_json_get_number(memory, "out_of_memory", 0) > 0;
	char text[BYTES_TEXT];
	double live = 0;

	if (!json_is_object(memory))
		return nt_table_add(table, 0, "-");
	for (size_t i = 0; i < json_array_size(devices); i++)
		live += nt_json_get_number(json_array_get(devices, i), "live_bytes", 0);
	return nt_table_add(table, leaks || ran_out ? NT_STYLE_BAD : NT_STYLE_PLAIN, "%s%s%s%s",
			    json_is_true(json_object_get(memory, "complete")) ? "" : ">=",
			    bytes_text(live, text), ran_out ? " oom" : "", leaks ? " leak" : "");
}

/* "libcache.so+0x1a2b"; an address where the file is not known. */
static const char *place_text(const json_t *object, char text[PLACE_TEXT])
{
	const double offset = nt_json_get_number(object, "offset", 0);
	char file[NAME_TEXT];

	/* Control characters would affect the terminal. */
	nt_ascii_copy_text(file, sizeof(file), nt_json_get_text(object, "file", ""));
	if (file[0])
		(void)snprintf(text, PLACE_TEXT, "%s+0x%llx", file, (unsigned long long)offset);
	else if (offset > 0)
		(void)snprintf(text, PLACE_TEXT, "address 0x%llx", (unsigned long long)offset);
	else
		(void)snprintf(text, PLACE_TEXT, "other call sites");
	return text;
}

static void print_leaks(double rank, const json_t *memory)
{
	const json_t *sites = json_object_get(memory, "sites");

	for (size_t i = 0; i < json_array_size(sites); i++) {
		const json_t *site = json_array_get(sites, i);
		char place[PLACE_TEXT], growth[BYTES_TEXT], live[BYTES_TEXT];

		if (!json_is_true(json_object_get(site, "leaks")))
			continue;
		(void)printf("rank %.0f: device memory keeps growing: by %s so far, to %s\n"
			     "  allocated at %s\n",
			     rank, bytes_text(nt_json_get_number(site, "growth_bytes", 0), growth),
			     bytes_text(nt_json_get_number(site, "live_bytes", 0), live),
			     place_text(site, place));
	}
}

static void print_holder(const json_t *holder)
{
	const json_t *rank = json_object_get(holder, "rank");
	char place[PLACE_TEXT], live[BYTES_TEXT], part[BYTES_TEXT];

	if (json_is_number(rank))
		(void)printf("  rank %.0f", json_number_value(rank));
	else
		(void)printf("  process %.0f", nt_json_get_number(holder, "pid", 0));
	(void)printf(" held the most, %s%s\n  of it %s allocated at %s\n",
		     json_is_true(json_object_get(holder, "complete")) ? "" : "at least ",
		     bytes_text(nt_json_get_number(holder, "live_bytes", 0), live),
		     bytes_text(nt_json_get_number(holder, "site_bytes", 0), part),
		     place_text(holder, place));
}

static void print_failure(double rank, const json_t *memory)
{
	const json_t *last = json_object_get(memory, "last_out_of_memory");
	char place[PLACE_TEXT], bytes[BYTES_TEXT], call[NAME_TEXT], at[NAME_TEXT];
	const double times = nt_json_get_number(memory, "out_of_memory", 0);

	if (!json_is_object(last))
		return;
	nt_ascii_copy_text(call, sizeof(call), nt_json_get_text(last, "call", "?"));
	nt_ascii_copy_text(at, sizeof(at), nt_json_get_text(last, "at", "?"));
	(void)printf("rank %.0f: out of device memory %.0f time%s, last at %s\n  %s of %s at %s\n",
		     rank, times, times == 1 ? "" : "s", at, call,
		     bytes_text(nt_json_get_number(last, "bytes", 0), bytes),
		     place_text(last, place));
	print_holder(json_object_get(last, "holder"));
}

void nt_rank_memory_print(const json_t *ranks)
{
	for (size_t i = 0; i < json_array_size(ranks); i++) {
		const json_t *rank = json_array_get(ranks, i);
		const json_t *memory = json_object_get(rank, "device_memory");
		const double number = nt_json_get_number(rank, "rank", 0);

		print_failure(number, memory);
		print_leaks(number, memory);
	}
}
