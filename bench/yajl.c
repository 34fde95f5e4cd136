/* SPDX-License-Identifier: GPL-3.0-or-later */
/* yajl beside bench/json.c: its speed with callbacks that only count. Built by bench/analyze.sh. */
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <yajl/yajl_parse.h>
#include <zlib.h>

static unsigned long values;

static int count(void *data)
{
	(void)data;
	values++;
	return 1;
}

static int count_flag(void *data, int flag)
{
	(void)flag;
	return count(data);
}

static int count_number(void *data, const char *text, size_t len)
{
	(void)text;
	(void)len;
	return count(data);
}

static int count_text(void *data, const unsigned char *text, size_t len)
{
	(void)text;
	(void)len;
	return count(data);
}

int main(int argc, char **argv)
{
	static const yajl_callbacks callbacks = {
		.yajl_null = count,
		.yajl_boolean = count_flag,
		.yajl_number = count_number,
		.yajl_string = count_text,
		.yajl_start_map = count,
		.yajl_map_key = count_text,
		.yajl_end_map = count,
		.yajl_start_array = count,
		.yajl_end_array = count,
	};
	static unsigned char bytes[128 << 10];
	yajl_handle parser = yajl_alloc(&callbacks, NULL, NULL);
	gzFile file = argc == 2 ? gzopen(argv[1], "rb") : NULL;
	yajl_status status = yajl_status_ok;
	struct rusage usage;
	double total = 0;
	clock_t start = clock();
	int n;

	if (!file || !parser)
		return 1;
	while (status == yajl_status_ok && (n = gzread(file, bytes, sizeof(bytes))) > 0) {
		status = yajl_parse(parser, bytes, (size_t)n);
		total += n;
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("%-34s %6.0f MB/s   peak of the process %5ld MB\n", "yajl, callbacks that count",
	       total / 1e6 / ((double)(clock() - start) / CLOCKS_PER_SEC), usage.ru_maxrss / 1000);
	return status != yajl_status_ok;
}
