/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Load for the REST interface, and what to compare it with.
 *
 *	rest_load bare               a libmicrohttpd as the aggregator's; "/N" has N bytes of JSON. Prints its port.
 *	rest_load ask PORT RATE SECONDS TOKEN <MIX
 *
 * MIX has lines "WEIGHT NAME PATH". The load is open: requests come at random times, RATE a second on
 * average, whether or not earlier ones were answered. A latency runs from the time at which its
 * request was to be sent, so that a server that stalls also pays for those that queued meanwhile.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <microhttpd.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/base/hash.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"

enum {
	BARE_THREADS = 4, /* as common/http/httpd.c */
	BARE_BYTES = 4 << 20,
	CONNECTIONS = 32, /* kept alive; further requests queue until one is free */
	KINDS = 32,
	HEAD_BYTES = 8192,
	READ_BYTES = 64 << 10,
	PORTS = 65535,
};

#define LINGER_NS (5 * NT_SECOND) /* then what is not answered is an error */

/* ---- the bare server ------------------------------------------------------------------------- */

static char bare_text[BARE_BYTES];

static enum MHD_Result on_bare(void *data, struct MHD_Connection *connection, const char *url,
			       const char *method, const char *version, const char *body,
			       size_t *body_len, void **context)
{
	struct MHD_Response *response;
	enum MHD_Result sent;
	uint64_t bytes;

	(void)data;
	(void)method;
	(void)version;
	(void)body;
	(void)body_len;
	if (!*context) {
		*context = bare_text; /* the header has come */
		return MHD_YES;
	}
	if (nt_parse_u64(url + 1, strlen(url + 1), 2, BARE_BYTES, &bytes) < 0)
		return MHD_NO;
	/* Valid JSON: blanks, and an empty object. */
	response = MHD_create_response_from_buffer(bytes, bare_text + BARE_BYTES - bytes,
						   MHD_RESPMEM_PERSISTENT);
	if (!response)
		return MHD_NO;
	(void)MHD_add_response_header(response, "Content-Type", "application/json");
	sent = MHD_queue_response(connection, 200, response);
	MHD_destroy_response(response);
	return sent;
}

static int run_bare(void)
{
	const union MHD_DaemonInfo *info;
	struct MHD_Daemon *daemon;

	memset(bare_text, ' ', sizeof(bare_text));
	bare_text[BARE_BYTES - 2] = '{';
	bare_text[BARE_BYTES - 1] = '}';
	daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC, 0, NULL, NULL,
				  on_bare, NULL, MHD_OPTION_THREAD_POOL_SIZE,
				  (unsigned int)BARE_THREADS, MHD_OPTION_END);
	info = daemon ? MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
	if (!info)
		return 1;
	(void)printf("%u\n", (unsigned int)info->port);
	(void)fflush(stdout);
	(void)pause();
	MHD_stop_daemon(daemon);
	return 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

struct load_kind {
	char name[64], path[512];
	uint64_t weight;
	uint64_t sent, answered, errors, bytes;
};

struct load_request {
	uint64_t due_ns; /* monotonic */
	uint64_t latency_ns; /* 0: not answered */
	uint8_t kind;
};

struct load_connection {
	int fd; /* -1: none */
	struct load_request *request; /* in flight; NULL: free */
	char head[HEAD_BYTES];
	size_t head_len;
	uint64_t body_left;
	bool has_head;
	unsigned int status;
};

struct load_run {
	uint16_t port;
	const char *token;
	struct load_kind kind[KINDS];
	size_t kinds;
	uint64_t weights;
	struct load_request *request;
	size_t requests, next_due, next_sent; /* due: those before it have come */
	struct load_connection connection[CONNECTIONS];
	int epoll;
	uint64_t open; /* sent and not answered */
};

static void die(const char *what)
{
	(void)fprintf(stderr, "rest_load: %s: %s\n", what, strerrordesc_np(errno));
	exit(1);
}

static void connect_one(struct load_run *load, struct load_connection *connection)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(load->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
	const int one = 1;

	connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connection->fd < 0 ||
	    connect(connection->fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		die("connect");
	(void)setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (fcntl(connection->fd, F_SETFL, O_NONBLOCK) < 0 ||
	    epoll_ctl(load->epoll, EPOLL_CTL_ADD, connection->fd, &event) < 0)
		die("epoll");
}

static void finish(struct load_run *load, struct load_connection *connection, bool is_answered)
{
	struct load_request *request = connection->request;
	struct load_kind *kind = &load->kind[request->kind];

	request->latency_ns = nt_clock_mono_ns() - request->due_ns;
	if (is_answered && connection->status == 200)
		kind->answered++;
	else
		kind->errors++;
	connection->request = NULL;
	connection->has_head = false;
	connection->head_len = 0;
	load->open--;
	if (is_answered)
		return;
	(void)close(connection->fd);
	connect_one(load, connection);
}

static void send_one(struct load_run *load, struct load_connection *connection,
		     struct load_request *request)
{
	char text[1024];
	int len = snprintf(text, sizeof(text),
			   "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n",
			   load->kind[request->kind].path, load->token);

	connection->request = request;
	connection->status = 0;
	load->kind[request->kind].sent++;
	load->open++;
	if (len < 0 || (size_t)len >= sizeof(text) ||
	    send(connection->fd, text, (size_t)len, MSG_NOSIGNAL) != len)
		finish(load, connection, false);
}

/* Those that are due, as far as connections are free. */
static void send_due(struct load_run *load)
{
	for (size_t i = 0; i < CONNECTIONS && load->next_sent < load->next_due; i++)
		if (!load->connection[i].request)
			send_one(load, &load->connection[i], &load->request[load->next_sent++]);
}

/* ---- replies --------------------------------------------------------------------------------- */

/* Takes the header at the beginning of what has come. Returns the bytes of the body behind it, -1: incomplete. */
static ssize_t read_head(struct load_run *load, struct load_connection *connection)
{
	char *end = memmem(connection->head, connection->head_len, "\r\n\r\n", 4);
	const char *length;
	uint64_t status;
	size_t body;

	if (!end)
		return -1;
	*end = '\0';
	length = strcasestr(connection->head, "\r\nContent-Length: ");
	if (strlen(connection->head) < 12 || !length) {
		finish(load, connection, false);
		return -1;
	}
	length += strlen("\r\nContent-Length: ");
	if (nt_parse_u64(connection->head + 9, 3, 100, 599, &status) < 0 ||
	    nt_parse_u64(length, strspn(length, "0123456789"), 0, UINT32_MAX,
			 &connection->body_left) < 0) {
		finish(load, connection, false);
		return -1;
	}
	connection->status = (unsigned int)status;
	load->kind[connection->request->kind].bytes += connection->body_left;
	connection->has_head = true;
	body = connection->head_len - (size_t)(end + 4 - connection->head);
	return (ssize_t)body;
}

static void take(struct load_run *load, struct load_connection *connection)
{
	static char text[READ_BYTES];
	size_t room = HEAD_BYTES - 1 - connection->head_len;
	bool in_body = connection->has_head;
	ssize_t n = recv(connection->fd, in_body ? text : connection->head + connection->head_len,
			 in_body ? sizeof(text) : room, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (!connection->request) { /* closed while idle, or bytes that nobody asked for */
		(void)close(connection->fd);
		connect_one(load, connection);
		return;
	}
	if (n <= 0) {
		finish(load, connection, false);
		return;
	}
	if (!in_body) {
		connection->head_len += (size_t)n;
		connection->head[connection->head_len] = '\0';
		n = read_head(load, connection);
		if (n < 0)
			return;
	}
	if ((uint64_t)n > connection->body_left)
		finish(load, connection, false);
	else if ((connection->body_left -= (uint64_t)n) == 0)
		finish(load, connection, true);
}

/* ---- the run --------------------------------------------------------------------------------- */

static double random_part(uint64_t *state)
{
	*state = nt_hash_mix(*state + 1);
	return ((double)(*state >> 11) + 0.5) / (double)(1ULL << 53);
}

static void plan(struct load_run *load, uint64_t rate, uint64_t seconds)
{
	double at_ns = (double)(nt_clock_mono_ns() + 100 * NT_MILLISECOND);
	uint64_t state = 1;

	load->requests = rate * seconds;
	load->request = calloc(load->requests, sizeof(*load->request));
	if (!load->request)
		die("plan");
	for (size_t i = 0; i < load->requests; i++) {
		uint64_t draw = (uint64_t)(random_part(&state) * (double)load->weights);
		uint8_t kind = 0;

		at_ns += -log(random_part(&state)) * 1e9 / (double)rate;
		while (draw >= load->kind[kind].weight)
			draw -= load->kind[kind++].weight;
		load->request[i].kind = kind;
		load->request[i].due_ns = (uint64_t)at_ns;
	}
}

/* The next word of a line, and moves behind it. False: there is none, or it is too long. */
static bool take_word(const char **at, char *word, size_t size)
{
	const char *from = *at + strspn(*at, " \n");
	const size_t len = strcspn(from, " \n");

	if (!len || len >= size)
		return false;
	memcpy(word, from, len);
	word[len] = '\0';
	*at = from + len;
	return true;
}

static void read_mix(struct load_run *load)
{
	char line[1024], weight[16];

	while (load->kinds < KINDS && fgets(line, sizeof(line), stdin)) {
		struct load_kind *kind = &load->kind[load->kinds];
		const char *at = line;

		if (!take_word(&at, weight, sizeof(weight)) ||
		    !take_word(&at, kind->name, sizeof(kind->name)) ||
		    !take_word(&at, kind->path, sizeof(kind->path)) ||
		    nt_parse_u64(weight, strlen(weight), 1, 1000, &kind->weight) < 0) {
			(void)fprintf(stderr, "rest_load: not WEIGHT NAME PATH: %s", line);
			exit(2);
		}
		load->weights += kind->weight;
		load->kinds++;
	}
	if (!load->kinds)
		exit(2);
}

static void run(struct load_run *load)
{
	struct epoll_event event[CONNECTIONS];
	uint64_t now_ns = nt_clock_mono_ns();
	const uint64_t end_ns = load->request[load->requests - 1].due_ns + LINGER_NS;

	while ((load->open || load->next_sent < load->requests) && now_ns < end_ns) {
		uint64_t until_ns = end_ns;
		struct timespec wait = {0};
		int n;

		if (load->next_due < load->requests)
			until_ns = load->request[load->next_due].due_ns;
		if (until_ns > now_ns)
			wait = (struct timespec){
				.tv_sec = (time_t)((until_ns - now_ns) / NT_SECOND),
				.tv_nsec = (long)((until_ns - now_ns) % NT_SECOND),
			};
		n = epoll_pwait2(load->epoll, event, CONNECTIONS, &wait, NULL);
		for (int i = 0; i < n; i++)
			take(load, event[i].data.ptr);
		now_ns = nt_clock_mono_ns();
		while (load->next_due < load->requests &&
		       load->request[load->next_due].due_ns <= now_ns)
			load->next_due++;
		send_due(load);
	}
	for (size_t i = 0; i < load->requests; i++) {
		if (load->request[i].latency_ns)
			continue;
		load->kind[load->request[i].kind].errors++;
		load->request[i].latency_ns = now_ns - load->request[i].due_ns;
	}
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* kind: KINDS for all. */
static void print_row(const struct load_run *load, size_t kind, const char *name, uint64_t errors,
		      uint64_t bytes, uint64_t *latency)
{
	static const double parts[] = {0.5, 0.99, 0.999, 1};
	size_t count = 0;

	for (size_t i = 0; i < load->requests; i++)
		if (kind == KINDS || load->request[i].kind == kind)
			latency[count++] = load->request[i].latency_ns;
	if (!count)
		return;
	qsort(latency, count, sizeof(*latency), compare);
	(void)printf("%s %zu %" PRIu64 " %" PRIu64, name, count, errors, bytes / count);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		(void)printf(" %.3f",
			     (double)latency[(size_t)((double)(count - 1) * parts[i])] / 1e6);
	(void)printf("\n");
}

static void print(const struct load_run *load)
{
	uint64_t *latency = calloc(load->requests, sizeof(*latency));
	uint64_t errors = 0, bytes = 0;

	if (!latency)
		die("print");
	for (size_t i = 0; i < load->kinds; i++) {
		const struct load_kind *kind = &load->kind[i];

		print_row(load, i, kind->name, kind->errors, kind->bytes, latency);
		errors += kind->errors;
		bytes += kind->bytes;
	}
	print_row(load, KINDS, "all", errors, bytes, latency);
	free(latency);
}

int main(int argc, char **argv)
{
	static struct load_run load;
	uint64_t port, rate, seconds;

	if (argc == 2 && strcmp(argv[1], "bare") == 0)
		return run_bare();
	if (argc != 6 || strcmp(argv[1], "ask") != 0 ||
	    nt_parse_u64(argv[2], strlen(argv[2]), 1, PORTS, &port) < 0 ||
	    nt_parse_u64(argv[3], strlen(argv[3]), 1, 100000, &rate) < 0 ||
	    nt_parse_u64(argv[4], strlen(argv[4]), 1, 3600, &seconds) < 0)
		return 2;
	load.port = (uint16_t)port;
	load.token = argv[5];
	read_mix(&load);
	load.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (load.epoll < 0)
		die("epoll");
	for (size_t i = 0; i < CONNECTIONS; i++)
		connect_one(&load, &load.connection[i]);
	plan(&load, rate, seconds);
	run(&load);
	print(&load);
	free(load.request);
	return 0;
}
