/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ibv_rc_pingpong over soft-RoCE: the real libibverbs and its provider, as agent/rdma/ observes them
 * at level 1. Needs a device, which tests/vm/test_rdma.sh makes.
 *
 * The client connects through a relay that holds it until both sides are attached: then every post is
 * counted, and not only those that come late enough.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include "agent/host/port_address.h"
#include "agent/host/proc.h"
#include "agent/host/root_path.h"
#include "agent/rdma/provider_file.h"
#include "agent/rdma/rdma.h"
#include "agent/rdma/traffic_map.h"
#include "tests/bpf/harness.h"

#define DEVICE     "rxe0"
#define DELAY_NS   (300ULL * NT_MILLISECOND)
#define INFINIBAND "/sys/class/infiniband"

enum {
	SERVER_PORT = 18515,
	RELAY_PORT = 18516,
	ITERATIONS = 1000,
	FEW = 50,
	BYTES = 4096,
	PENDING = 16,
	TRIES = 3000, /* of 10 ms */
};

/* What a hook was asked for, done after the tick: results never come from within it. */
struct pending {
	int library; /* 0: a search */
	uint32_t pid;
	uint64_t start_ns, post, poll, offset;
	int fd;
};

static struct run {
	struct harness h;
	struct nt_rdma *rdma;
	struct pending pending[PENDING];
	size_t pendings;
} run;

struct side {
	pid_t pid;
	uint64_t start_ns;
	struct nt_rdma_pair sum; /* of its queue pair */
	char local[64], remote[64];
	uint64_t posted_ns, polled_ns;
};

/* ---- hooks ----------------------------------------------------------------------------------- */

static int find(void *data, uint32_t pid, uint64_t start_ns, uint64_t post, uint64_t poll)
{
	(void)data;
	if (run.pendings == PENDING)
		return -EAGAIN;
	run.pending[run.pendings++] =
		(struct pending){.pid = pid, .start_ns = start_ns, .post = post, .poll = poll};
	return 0;
}

static int attach(void *data, int library, uint32_t pid, uint64_t start_ns, int fd, uint64_t offset)
{
	(void)data;
	if (run.pendings == PENDING)
		return -EAGAIN;
	run.pending[run.pendings++] = (struct pending){
		.library = library, .pid = pid, .start_ns = start_ns, .offset = offset, .fd = fd};
	return 0;
}

static void detach(void *data, struct nt_rank_probe *probe)
{
	(void)data;
	nt_rank_probe_free(probe);
}

static bool traffic(void *data, const struct nt_rdma_key *key, struct nt_rdma_traffic *ret_traffic)
{
	(void)data;
	return nt_traffic_map_read(run.h.attach, key, ret_traffic);
}

static bool forget(void *data, const struct nt_rdma_key *key, bool is_destroyed)
{
	(void)data;
	return nt_traffic_map_forget(run.h.attach, key, is_destroyed);
}

static void watch(void *data, uint32_t pid, const struct nt_rdma_watch *watch)
{
	(void)data;
	nt_traffic_map_watch(run.h.attach, pid, watch);
}

static bool totals(void *data, uint32_t pid, struct nt_verbs_totals *ret_totals)
{
	(void)data;
	return nt_attach_verbs(run.h.attach, pid, ret_totals);
}

static bool address(void *data, const char *device, uint32_t port, uint32_t index,
		    uint8_t ret_gid[NT_VERBS_GID], uint32_t *ret_lid)
{
	(void)data;
	return nt_port_address_read(INFINIBAND, device, port, index, ret_gid, ret_lid);
}

static void on_verbs(void *data, const struct nt_event_verbs *verbs)
{
	(void)data;
	nt_rdma_event(run.rdma, verbs);
}

static void search(const struct pending *p)
{
	struct nt_provider_place provider;
	struct stat st;
	nt_autoclose int path_fd = nt_provider_file_open(p->pid, p->post, &st);
	nt_autoclose int fd = path_fd < 0 ? -1 : nt_root_path_read(path_fd, st.st_dev, st.st_ino);
	int r = fd < 0 ? -ENOENT : nt_provider_file_read(p->pid, fd, p->post, p->poll, &provider);

	nt_rdma_found(run.rdma, p->pid, p->start_ns, r, &fd, r == 0 ? &provider : NULL);
}

static void make(const struct pending *p)
{
	struct nt_rank_probe_sites sites = {.begins = 1, .begin = {{.offset = p->offset}}};
	struct nt_rank_probe *probe = NULL;
	int r;

	while ((int)nt_probe_row((uint16_t)sites.row)->library != p->library)
		sites.row++;
	r = nt_rank_probe_new_at(nt_attach_loader(run.h.attach), p->fd, p->pid, &sites, &probe);
	nt_rdma_made(run.rdma, p->library, p->pid, p->start_ns, r, probe, nt_clock_boot_ns());
}

static void turn(void)
{
	(void)harness_poll(&run.h);
	nt_rdma_tick(run.rdma, nt_clock_boot_ns(), 0);
	while (run.pendings) {
		const struct pending p = run.pending[--run.pendings];

		if (p.library)
			make(&p);
		else
			search(&p);
	}
}

/* ---- programs -------------------------------------------------------------------------------- */

static void spawn(struct side *side, const char *iterations, const char *port, bool is_client)
{
	char bytes[16];
	const char *const argv[] = {"ibv_rc_pingpong",
				    "-d",
				    DEVICE,
				    "-g",
				    "1",
				    "-n",
				    iterations,
				    "-s",
				    bytes,
				    "-p",
				    port,
				    is_client ? "127.0.0.1" : NULL,
				    NULL};

	(void)snprintf(bytes, sizeof(bytes), "%d", BYTES);
	*side = (struct side){0};
	assert_int_equal(
		posix_spawnp(&side->pid, argv[0], NULL, NULL, (char *const *)argv, environ), 0);
	assert_int_equal(nt_proc_start_ns((uint32_t)side->pid, &side->start_ns), 0);
	nt_rdma_set_level(run.rdma, (uint32_t)side->pid, side->start_ns, 1);
}

static int listen_at(uint16_t port)
{
	const struct sockaddr_in at = {.sin_family = AF_INET,
				       .sin_port = htons(port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int yes = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

struct pump {
	int from, to;
};

static void *pump_bytes(void *data)
{
	const struct pump *pump = data;
	char bytes[256];
	ssize_t n;

	while ((n = read(pump->from, bytes, sizeof(bytes))) > 0)
		if (write(pump->to, bytes, (size_t)n) != n)
			break;
	(void)shutdown(pump->to, SHUT_WR);
	return NULL;
}

/* The server listens only after it has made its queue pair. */
static int connect_server(void)
{
	const struct sockaddr_in at = {.sin_family = AF_INET,
				       .sin_port = htons(SERVER_PORT),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	for (int i = 0; i < TRIES; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0)
			return fd;
		(void)close(fd);
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	return -1;
}

static void take(struct side *side)
{
	const struct nt_rdma_window *w =
		nt_rdma_take_window(run.rdma, (uint32_t)side->pid, nt_clock_boot_ns());

	if (!w)
		return;
	side->posted_ns += w->observed_ns;
	side->polled_ns += w->polled_ns;
	for (size_t i = 0; i < w->pair_count; i++) {
		const struct nt_rdma_pair *p = &w->pair[i];
		struct nt_rdma_pair *sum = &side->sum;

		assert_false(p->not_visible);
		sum->qpn = p->qpn;
		if (p->remote_qpn)
			sum->remote_qpn = p->remote_qpn;
		if (p->local_gid[0])
			(void)snprintf(side->local, sizeof(side->local), "%s", p->local_gid);
		if (p->remote_gid[0])
			(void)snprintf(side->remote, sizeof(side->remote), "%s", p->remote_gid);
		sum->sends += p->sends;
		sum->send_bytes += p->send_bytes;
		sum->writes += p->writes;
		sum->completions += p->completions;
		sum->received += p->received;
		sum->received_bytes += p->received_bytes;
		sum->errors += p->errors;
		sum->timed += p->timed;
		sum->latency_ns += p->latency_ns;
	}
}

static void wait_for(struct side *side)
{
	int status = 0;

	for (int i = 0; i < TRIES && waitpid(side->pid, &status, WNOHANG) == 0; i++) {
		turn();
		take(side);
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	assert_int_equal(status, 0);
	turn();
	take(side);
	nt_rdma_end(run.rdma, (uint32_t)side->pid, side->start_ns);
}

static bool is_attached(size_t links)
{
	struct nt_rdma_stats stats;

	for (int i = 0; i < TRIES; i++) {
		turn();
		nt_rdma_stats(run.rdma, &stats);
		if (stats.attached == links)
			return true;
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	return false;
}

static void play(struct side *server, struct side *client, const char *iterations)
{
	char server_port[8], relay_port[8];
	nt_autoclose int listener = listen_at(RELAY_PORT);
	nt_autoclose int from = -1, to = -1;
	struct pump there, back;
	pthread_t threads[2];

	(void)snprintf(server_port, sizeof(server_port), "%d", SERVER_PORT);
	(void)snprintf(relay_port, sizeof(relay_port), "%d", RELAY_PORT);
	spawn(server, iterations, server_port, false);
	spawn(client, iterations, relay_port, true);
	from = accept(listener, NULL, NULL);
	assert_true(from >= 0);
	assert_true(is_attached(4)); /* posts and polls of both */
	to = connect_server();
	assert_true(to >= 0);
	there = (struct pump){from, to};
	back = (struct pump){to, from};
	assert_int_equal(pthread_create(&threads[0], NULL, pump_bytes, &there), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, pump_bytes, &back), 0);
	wait_for(client);
	wait_for(server);
	(void)shutdown(from, SHUT_RDWR);
	(void)shutdown(to, SHUT_RDWR);
	(void)pthread_join(threads[0], NULL);
	(void)pthread_join(threads[1], NULL);
	print_message(
		"# %s iterations: %llu and %llu posts, %llu and %llu completions, mean latency "
		"%llu and %llu us\n",
		iterations, (unsigned long long)client->sum.sends,
		(unsigned long long)server->sum.sends, (unsigned long long)client->sum.completions,
		(unsigned long long)server->sum.completions,
		(unsigned long long)(client->sum.latency_ns / 1000 /
				     (client->sum.timed ? client->sum.timed : 1)),
		(unsigned long long)(server->sum.latency_ns / 1000 /
				     (server->sum.timed ? server->sum.timed : 1)));
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void check_side(const struct side *side, const struct side *other)
{
	assert_int_equal(side->sum.sends, ITERATIONS);
	assert_int_equal(side->sum.send_bytes, (uint64_t)ITERATIONS * BYTES);
	assert_int_equal(side->sum.writes, 0);
	assert_int_equal(side->sum.completions, ITERATIONS);
	assert_int_equal(side->sum.received, ITERATIONS);
	assert_int_equal(side->sum.received_bytes, (uint64_t)ITERATIONS * BYTES);
	assert_int_equal(side->sum.errors, 0);
	assert_int_equal(side->sum.remote_qpn, other->sum.qpn);
	assert_true(side->local[0] != '\0');
	assert_string_equal(side->local, other->remote);
	assert_true(side->sum.timed > ITERATIONS / 2);
	assert_true(side->posted_ns > 0 && side->polled_ns > 0);
}

static void every_post_of_a_thousand_iterations_is_counted(void **state)
{
	struct side server, client;
	char iterations[16];

	(void)state;
	(void)snprintf(iterations, sizeof(iterations), "%d", ITERATIONS);
	play(&server, &client, iterations);
	check_side(&client, &server);
	check_side(&server, &client);
}

/* Two connected queue pairs of this program, on the device's own port. */
struct ends {
	void *handle;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *from, *to;
	uint8_t memory[BYTES];
};

#define VERB(e, name) ((__typeof__(&(name)))dlsym((e)->handle, #name))

static void connect_to(struct ends *e, struct ibv_qp *qp, const struct ibv_qp *peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	uint32_t lid;

	assert_int_equal(VERB(e, ibv_modify_qp)(qp, &attr,
						IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
							IBV_QP_ACCESS_FLAGS),
			 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = peer->qp_num,
				    .max_dest_rd_atomic = 1,
				    .min_rnr_timer = 1,
				    .ah_attr = {.is_global = 1,
						.port_num = 1,
						.grh = {.sgid_index = 1, .hop_limit = 1}}};
	assert_true(
		nt_port_address_read(INFINIBAND, DEVICE, 1, 1, attr.ah_attr.grh.dgid.raw, &lid));
	assert_int_equal(VERB(e, ibv_modify_qp)(qp, &attr,
						IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
							IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
							IBV_QP_MAX_DEST_RD_ATOMIC |
							IBV_QP_MIN_RNR_TIMER),
			 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 7, /* for ever */
				    .max_rd_atomic = 1};
	assert_int_equal(VERB(e, ibv_modify_qp)(qp, &attr,
						IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
							IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
							IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
}

static void open_ends(struct ends *e)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_mr *(*reg)(struct ibv_pd *, void *, size_t, int);
	struct ibv_device **devices;
	int n;

	*e = (struct ends){.handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL)};
	assert_non_null(e->handle);
	reg = (struct ibv_mr * (*)(struct ibv_pd *, void *, size_t, int))
		dlsym(e->handle, "ibv_reg_mr");
	devices = VERB(e, ibv_get_device_list)(&n);
	assert_int_equal(n, 1);
	e->context = VERB(e, ibv_open_device)(devices[0]);
	e->pd = VERB(e, ibv_alloc_pd)(e->context);
	e->cq = VERB(e, ibv_create_cq)(e->context, 32, NULL, NULL, 0);
	e->mr = reg(e->pd, e->memory, sizeof(e->memory), IBV_ACCESS_LOCAL_WRITE);
	attr.send_cq = attr.recv_cq = e->cq;
	e->from = VERB(e, ibv_create_qp)(e->pd, &attr);
	e->to = VERB(e, ibv_create_qp)(e->pd, &attr);
	assert_true(e->mr && e->from && e->to);
	connect_to(e, e->from, e->to);
	connect_to(e, e->to, e->from);
}

/* Sends once; the receiver is ready that much later. */
static void send_late(struct ends *e, uint64_t late_ns)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->memory, .length = sizeof(e->memory), .lkey = e->mr->lkey};
	struct ibv_send_wr send = {.wr_id = 1,
				   .sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad_send;
	struct ibv_recv_wr recv = {.wr_id = 2, .sg_list = &sge, .num_sge = 1}, *bad_recv;
	const uint64_t begin_ns = nt_clock_mono_ns();
	bool is_ready = late_ns == 0;
	struct ibv_wc wc;
	int found = 0;

	if (is_ready)
		assert_int_equal(ibv_post_recv(e->to, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(e->from, &send, &bad_send), 0);
	while (found < 2) {
		if (!is_ready && nt_clock_mono_ns() - begin_ns >= late_ns) {
			is_ready = true;
			assert_int_equal(ibv_post_recv(e->to, &recv, &bad_recv), 0);
		}
		found += ibv_poll_cq(e->cq, 1, &wc);
		assert_true(nt_clock_mono_ns() - begin_ns < 30 * NT_SECOND);
	}
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static uint64_t mean_latency_ns(struct side *side)
{
	side->sum = (struct nt_rdma_pair){0};
	take(side);
	assert_true(side->sum.timed > 0);
	return side->sum.latency_ns / side->sum.timed;
}

/* A receiver that is not ready answers so, and the sender tries again until it is. */
static void a_delayed_receiver_shows_in_the_latency(void **state)
{
	struct side self = {.pid = getpid()};
	static struct ends ends;
	uint64_t prompt_ns, late_ns;

	(void)state;
	assert_int_equal(nt_proc_start_ns((uint32_t)self.pid, &self.start_ns), 0);
	nt_rdma_set_level(run.rdma, (uint32_t)self.pid, self.start_ns, 1);
	open_ends(&ends);
	assert_true(is_attached(2));
	for (int i = 0; i < FEW; i++)
		send_late(&ends, 0);
	prompt_ns = mean_latency_ns(&self);
	for (int i = 0; i < 3; i++)
		send_late(&ends, DELAY_NS);
	late_ns = mean_latency_ns(&self);
	print_message("# mean latency %llu us, %llu us with a receiver that is %llu us late\n",
		      (unsigned long long)prompt_ns / 1000, (unsigned long long)late_ns / 1000,
		      DELAY_NS / 1000);
	assert_int_equal(self.sum.sends, 3);
	assert_true(late_ns >= DELAY_NS);
	assert_true(late_ns < 10 * DELAY_NS);
	assert_true(prompt_ns < late_ns / 2);
	nt_rdma_end(run.rdma, (uint32_t)self.pid, self.start_ns);
}

/* ---- all ------------------------------------------------------------------------------------- */

static uint64_t owner_of(void *data, uint32_t pid)
{
	(void)data, (void)pid;
	return 1;
}

static bool next_key(void *data, enum nt_rdma_table table, const struct nt_rdma_key *key,
		     struct nt_rdma_key *ret_key)
{
	(void)data;
	return nt_traffic_map_next(run.h.attach, table, key, ret_key);
}

static bool exists(void *data, uint32_t pid)
{
	(void)data, (void)pid;
	return true;
}

static int open_all(void **state)
{
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);
	/* All of the time, so that figures are exact. */
	const struct nt_rdma_options slices = {
		.posts = {2, 1}, .polls = {2, 1}, .raised_polls = {1, 1}};
	const struct nt_rdma_hooks hooks = {.find = find,
					    .attach = attach,
					    .detach = detach,
					    .traffic = traffic,
					    .forget = forget,
					    .next = next_key,
					    .exists = exists,
					    .watch = watch,
					    .owner = owner_of,
					    .totals = totals,
					    .address = address};
	static const char *const libraries[] = {"/usr/lib/x86_64-linux-gnu/libibverbs.so.1",
						"/usr/lib/aarch64-linux-gnu/libibverbs.so.1"};
	struct stat st;

	(void)state;
	(void)sigaction(SIGPIPE, &(const struct sigaction){.sa_handler = SIG_IGN}, NULL);
	options.verbs = on_verbs;
	assert_int_equal(nt_rdma_new(&slices, &hooks, &run.rdma), 0);
	harness_init(&run.h, &options);
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (stat(libraries[i], &st) == 0)
			assert_true(attach_file(run.h.attach, libraries[i], st.st_dev, st.st_ino,
						(enum nt_library)NT_LIBRARY_VERBS,
						1U << NT_SUBJECT_COMM) >= 8);
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	nt_rdma_free(run.rdma);
	harness_release(&run.h);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_post_of_a_thousand_iterations_is_counted),
		cmocka_unit_test(a_delayed_receiver_shows_in_the_latency),
	};

	if (stub_only())
		return 0;
	if (access(INFINIBAND "/" DEVICE, F_OK) < 0) {
		printf("skip: rdma: there is no device " DEVICE "\n");
		return EXIT_SKIP;
	}
	if (!harness_can_load())
		return EXIT_SKIP;
	return cmocka_run_group_tests(tests, open_all, close_all);
}
