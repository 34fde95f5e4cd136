/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The agent's HTTP server with the agent's table of metrics, for tests that scrape it: prints its port
 * and serves until its standard input ends. Every counter is above zero and grows each second.
 */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/publish/health_server.h"
#include "agent/publish/self_metrics.h"

/* The table reads each field that it has as one of 64 bits. */
static void set_all(struct nt_metrics *metrics, uint64_t value)
{
	static union {
		struct nt_self_metrics_reading reading;
		uint64_t word[sizeof(struct nt_self_metrics_reading) / sizeof(uint64_t)];
	} all;

	for (size_t i = 0; i < sizeof(all.word) / sizeof(all.word[0]); i++)
		all.word[i] = value + i;
	nt_self_metrics_set(metrics, &all.reading);
}

int main(void)
{
	nt_auto(nt_metrics) struct nt_metrics *metrics = NULL;
	nt_auto(nt_health_server) struct nt_health_server *server = NULL;
	struct nt_httpd_error error;

	if (nt_self_metrics_new(&metrics) < 0)
		return 1;
	set_all(metrics, 1);
	if (nt_health_server_start("127.0.0.1:0", metrics, &server, &error) < 0) {
		(void)fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	(void)printf("%u\n", nt_health_server_port(server));
	(void)fflush(stdout);
	for (uint64_t value = 1;; value += 10) {
		struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

		set_all(metrics, value);
		if (poll(&input, 1, 1000) != 0)
			return 0;
	}
}
