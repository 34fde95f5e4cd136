/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A profiler plugin of NCCL that counts events and checks what the interface promises: parents, threads,
 * the order of states, times. What it finds goes into the file of counting_plugin.h. In the environment:
 * SIM_PLUGIN_OUT      that file
 * SIM_PLUGIN_MASK     the events that init asks for
 * SIM_PLUGIN_FAIL     number of the first init that fails, from 1
 * SIM_PLUGIN_NULL     if it is set, init leaves no context
 * SIM_PLUGIN_DECLINE  a type, by its bit: such events get no handle
 * A library that is linked of it exports the table of one version, or those of all.
 */
#include "tests/sim/profiler/counting_plugin.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/lib/nccl/profiler_interface.h"

enum {
	EVENTS = 1 << 17,
	COMMS = 256,
};

struct comm {
	int rank; /* -1: init was not told, versions 1 to 3 */
	uint64_t hash;
};

struct event {
	const struct comm *comm;
	int type; /* number of its bit */
	int state; /* the last; -1: none */
	bool is_stopped, is_send, has_channels;
	unsigned int channel, channels;
	uint64_t seq, timer, started_ns, stop_timer;
	struct event *parent;
};

static struct sim_plugin_counts *counts;
static struct event event[EVENTS];
static struct comm comm[COMMS];
static size_t events, comms; /* atomic */
static int version; /* atomic: communicators are made by several threads at once */

#define ADD(member) ((void)__atomic_add_fetch(&counts->member, 1, __ATOMIC_SEQ_CST))
#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			report(__func__, __LINE__, #condition);                                    \
	} while (0)

static void report(const char *function, int line, const char *text)
{
	if (__atomic_fetch_add(&counts->errors, 1, __ATOMIC_SEQ_CST) == 0)
		(void)snprintf(counts->error, sizeof(counts->error), "%s:%d: %s", function, line,
			       text);
}

static uint64_t now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_REALTIME, &time);
	return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

static int number_in(const char *name, int otherwise)
{
	const char *text = getenv(name);
	int value = 0;

	for (const char *at = text; at && *at >= '0' && *at <= '9'; at++)
		value = 10 * value + (*at - '0');
	return text ? value : otherwise;
}

__attribute__((constructor)) static void open_counts(void)
{
	const char *path = getenv("SIM_PLUGIN_OUT");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	void *memory = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(*counts)) == 0)
		memory = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		(void)close(fd);
	if (memory == MAP_FAILED)
		memory = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		abort();
	counts = memory;
}

static uint64_t this_thread(void)
{
	char name[16] = "";

	if (syscall(SYS_gettid) == getpid())
		return SIM_PLUGIN_MAIN;
	(void)prctl(PR_GET_NAME, name);
	if (strncmp(name, "NCCL Progress", 13) == 0)
		return SIM_PLUGIN_PROGRESS;
	if (strncmp(name, "NCCL Profiler", 13) == 0)
		return SIM_PLUGIN_PROFILER;
	if (strcmp(name, "sim-device") == 0)
		return SIM_PLUGIN_DEVICE;
	return SIM_PLUGIN_OTHER;
}

/* ---- communicators ---- */

static int init(void **context, int *mask, uint64_t hash, int rank, int of_version)
{
	int fails_from = number_in("SIM_PLUGIN_FAIL", COMMS);
	size_t index = __atomic_fetch_add(&comms, 1, __ATOMIC_SEQ_CST);

	__atomic_store_n(&version, of_version, __ATOMIC_RELAXED);
	__atomic_store_n(&counts->version, (uint64_t)of_version, __ATOMIC_RELAXED);
	__atomic_store_n(&counts->mask, (uint64_t)(uintptr_t)mask, __ATOMIC_RELAXED);
	ADD(inits);
	if (index >= COMMS)
		return 1;
	comm[index] = (struct comm){.rank = rank, .hash = hash};
	__atomic_store_n(mask, number_in("SIM_PLUGIN_MASK", 0), __ATOMIC_RELAXED);
	if (!getenv("SIM_PLUGIN_NULL"))
		*context = &comm[index];
	return (int)index + 1 >= fails_from;
}

static int finalize(void *context)
{
	struct comm *ended = context;

	ADD(finalizes);
	EXPECT(ended >= comm && ended < comm + COMMS);
	return 0;
}

/* ---- events ---- */

static struct event *event_of(void *handle)
{
	struct event *found = handle;

	if (!found)
		return NULL;
	EXPECT(found >= event && found < event + EVENTS);
	return found >= event && found < event + EVENTS ? found : NULL;
}

#define TYPE(bit) __builtin_ctz(bit)

/* NULL is declined, or was not asked for. */
static struct event *parent_of(void *handle, int bit, int other_bit)
{
	struct event *parent = event_of(handle);

	if (parent)
		EXPECT(parent->type == TYPE(bit) || parent->type == TYPE(other_bit));
	return parent;
}

static struct event *new_event(void *context, int bit)
{
	size_t index = __atomic_fetch_add(&events, 1, __ATOMIC_SEQ_CST);
	struct event *made = &event[index % EVENTS];

	*made = (struct event){
		.comm = context, .type = TYPE(bit), .state = -1, .started_ns = now()};
	ADD(started[made->type]);
	(void)__atomic_or_fetch(&counts->threads[made->type], this_thread(), __ATOMIC_SEQ_CST);
	return made;
}

static void keep(struct event *made, void **handle)
{
	*handle = made->type == number_in("SIM_PLUGIN_DECLINE", -1) ? NULL : made;
}

/* What all versions describe alike, at the same offsets. */
static void start_proxy(struct event *made, void *parent, const struct sim_proxy_op *op)
{
	made->is_send = op->is_send != 0;
	EXPECT(op->steps > 0 && op->peer >= 0);
	if (op->pid == getpid()) {
		made->parent = parent_of(parent, SIM_PROFILE_COLL, SIM_PROFILE_P2P);
		return;
	}
	/* Context and parent are pointers of that process. */
	EXPECT(made->is_send);
	made->comm = NULL;
	ADD(foreign);
}

static void start_step(struct event *made, void *parent, int step)
{
	made->parent = parent_of(parent, SIM_PROFILE_PROXY_OP, SIM_PROFILE_PROXY_OP);
	made->comm = made->parent ? made->parent->comm : NULL;
	made->is_send = made->parent && made->parent->is_send;
	EXPECT(step >= 0 && step < 8);
	EXPECT(!made->parent || !made->parent->is_stopped);
}

static void start_kernel(struct event *made, void *parent, unsigned int channel)
{
	made->parent = parent_of(parent, SIM_PROFILE_COLL, SIM_PROFILE_P2P);
	made->channel = channel;
	if (made->parent && made->parent->has_channels)
		EXPECT(channel < 8 && (made->parent->type == TYPE(SIM_PROFILE_P2P) ||
				       channel < made->parent->channels));
}

static void check_rank(const struct event *made, int rank)
{
	EXPECT(!made->comm || made->comm->rank < 0 || rank == made->comm->rank);
}

/* ---- versions 1 to 4: the type is one byte, and the parent of a task is its group ---- */

static int start_v4(void *context, void **handle, void *data)
{
	const struct sim_descr_v4 *descr = data;
	struct event *made = new_event(context, descr->type);

	switch (descr->type) {
	case SIM_PROFILE_GROUP:
	case SIM_PROFILE_PROXY_CTRL:
		EXPECT(!descr->parent);
		break;
	case SIM_PROFILE_COLL:
		made->parent = parent_of(descr->parent, SIM_PROFILE_GROUP, SIM_PROFILE_GROUP);
		made->seq = descr->coll.seq;
		made->channels = descr->coll.channels;
		made->has_channels = true;
		EXPECT(descr->coll.func && descr->coll.datatype && descr->coll.algo);
		check_rank(made, descr->rank);
		break;
	case SIM_PROFILE_P2P:
		made->parent = parent_of(descr->parent, SIM_PROFILE_GROUP, SIM_PROFILE_GROUP);
		made->seq = UINT64_MAX;
		EXPECT(descr->p2p.func && descr->p2p.datatype && descr->p2p.peer >= 0);
		check_rank(made, descr->rank);
		break;
	case SIM_PROFILE_PROXY_OP:
		start_proxy(made, descr->parent, &descr->proxy_op);
		check_rank(made, descr->rank);
		break;
	case SIM_PROFILE_PROXY_STEP:
		start_step(made, descr->parent, descr->step);
		check_rank(made, descr->rank);
		break;
	case SIM_PROFILE_KERNEL_CH:
		start_kernel(made, descr->parent, descr->kernel_ch.channel);
		made->timer = descr->kernel_ch.timer;
		break;
	default:
		EXPECT(!"an event of this version");
		break;
	}
	keep(made, handle);
	return 0;
}

static int start_v3(void *context, void **handle, void *data)
{
	const struct sim_descr_v3 *descr = data;
	struct event *made = new_event(context, descr->type);

	made->seq = UINT64_MAX;
	if (descr->type == SIM_PROFILE_COLL || descr->type == SIM_PROFILE_P2P) {
		made->parent = parent_of(descr->parent, SIM_PROFILE_GROUP, SIM_PROFILE_GROUP);
		if (descr->type == SIM_PROFILE_COLL)
			made->seq = descr->coll.seq;
		EXPECT(!made->comm || descr->coll.hash != 0);
		check_rank(made, descr->rank);
	} else if (descr->type == SIM_PROFILE_PROXY_OP) {
		start_proxy(made, descr->parent, &descr->proxy_op);
	} else if (descr->type == SIM_PROFILE_PROXY_STEP) {
		start_step(made, descr->parent, descr->step);
	} else if (descr->type == SIM_PROFILE_KERNEL_CH) {
		EXPECT(version == 3);
		start_kernel(made, descr->parent, descr->kernel_channel);
	} else {
		EXPECT(descr->type == SIM_PROFILE_GROUP || descr->type == SIM_PROFILE_PROXY_CTRL);
	}
	keep(made, handle);
	return 0;
}

/* ---- versions 5 to 7 ---- */

static void start_api(struct event *made, const struct sim_descr_v7 *descr)
{
	made->parent = parent_of(descr->parent, SIM_PROFILE_GROUP_API, SIM_PROFILE_GROUP_API);
	EXPECT(!made->parent || !made->parent->is_stopped);
	if (descr->type == SIM_PROFILE_COLL_API) {
		EXPECT(descr->coll_api.func && descr->coll_api.datatype);
		if (descr->coll_api.graph_captured)
			ADD(captured);
	} else if (descr->type == SIM_PROFILE_P2P_API) {
		EXPECT(descr->p2p_api.func && descr->p2p_api.datatype);
		if (descr->p2p_api.graph_captured)
			ADD(captured);
	}
}

static void start_task(struct event *made, const struct sim_descr_v7 *descr)
{
	struct event *group;

	check_rank(made, descr->rank);
	if (descr->type == SIM_PROFILE_COLL) {
		made->parent = parent_of(descr->parent, SIM_PROFILE_COLL_API, SIM_PROFILE_COLL_API);
		made->seq = descr->coll.seq;
		__atomic_store_n(&counts->seq, made->seq, __ATOMIC_SEQ_CST);
		made->channels = descr->coll.channels;
		group = parent_of(descr->coll.parent_group, SIM_PROFILE_GROUP, SIM_PROFILE_GROUP);
		EXPECT(descr->coll.func && descr->coll.datatype && descr->coll.algo);
	} else {
		made->parent = parent_of(descr->parent, SIM_PROFILE_P2P_API, SIM_PROFILE_P2P_API);
		made->seq = UINT64_MAX;
		made->channels = descr->p2p.channels;
		group = parent_of(descr->p2p.parent_group, SIM_PROFILE_GROUP, SIM_PROFILE_GROUP);
		EXPECT(descr->p2p.func && descr->p2p.datatype && descr->p2p.peer >= 0);
	}
	made->has_channels = true;
	EXPECT(made->channels > 0);
	EXPECT(!group || !group->is_stopped);
}

static int start_v7(void *context, void **handle, void *data)
{
	const struct sim_descr_v7 *descr = data;
	struct event *made;

	EXPECT(descr->type != 0 && descr->type <= SIM_PROFILE_KERNEL_PHASE);
	made = new_event(context, (int)descr->type);
	switch (descr->type) {
	case SIM_PROFILE_GROUP_API:
		EXPECT(!descr->parent && descr->group_api.depth > 0);
		if (descr->group_api.depth == 1)
			ADD(implicit_groups);
		break;
	case SIM_PROFILE_COLL_API:
	case SIM_PROFILE_P2P_API:
	case SIM_PROFILE_KERNEL_LAUNCH:
		start_api(made, descr);
		break;
	case SIM_PROFILE_COLL:
	case SIM_PROFILE_P2P:
		start_task(made, descr);
		break;
	case SIM_PROFILE_PROXY_OP:
		start_proxy(made, descr->parent, &descr->proxy_op);
		check_rank(made, descr->rank);
		break;
	case SIM_PROFILE_PROXY_STEP:
		start_step(made, descr->parent, descr->step);
		check_rank(made, descr->rank);
		break;
	case SIM_PROFILE_KERNEL_CH:
		start_kernel(made, descr->parent, descr->kernel_ch.channel);
		made->timer = descr->kernel_ch.timer;
		EXPECT(made->timer != 0);
		break;
	default:
		EXPECT(!descr->parent);
		break;
	}
	keep(made, handle);
	return 0;
}

/* ---- states and the end ---- */

static bool follows(const struct event *of, int state)
{
	switch (state) {
	case SIM_STATE_SEND_GPU_WAIT:
	case SIM_STATE_RECV_WAIT:
	case SIM_STATE_OP_IN_PROGRESS:
	case SIM_STATE_KERNEL_CH_STOP:
	case SIM_STATE_GROUP_START_API_STOP:
		return of->state == -1;
	case SIM_STATE_SEND_PEER_WAIT:
		return of->state == SIM_STATE_SEND_GPU_WAIT || of->state == state;
	case SIM_STATE_SEND_WAIT:
		return of->state ==
		       (version >= 4 ? SIM_STATE_SEND_PEER_WAIT : SIM_STATE_SEND_GPU_WAIT);
	case SIM_STATE_RECV_FLUSH_WAIT:
		return of->state == SIM_STATE_RECV_WAIT;
	case SIM_STATE_RECV_GPU_WAIT:
		return of->state == SIM_STATE_RECV_FLUSH_WAIT;
	case SIM_STATE_GROUP_END_API_START:
		return of->state == SIM_STATE_GROUP_START_API_STOP;
	default:
		return true;
	}
}

static int record(void *handle, int state, void *data)
{
	struct event *of = event_of(handle);
	union sim_state_args *args = data;

	if (!of || state < 0 || state >= SIM_PLUGIN_STATES)
		return 0;
	ADD(states[state]);
	EXPECT(!of->is_stopped);
	EXPECT(follows(of, state));
	EXPECT((of->type == TYPE(SIM_PROFILE_GROUP_API)) == (args == NULL));
	if (args && (state == SIM_STATE_SEND_WAIT || state == SIM_STATE_RECV_FLUSH_WAIT) &&
	    version >= 4)
		EXPECT(args->trans_bytes > 0);
	if (args && state == SIM_STATE_KERNEL_CH_STOP)
		of->stop_timer = args->timer;
	of->state = state;
	return 0;
}

static void stop_kernel(const struct event *ended)
{
	uint64_t index = __atomic_fetch_add(&counts->kernels, 1, __ATOMIC_SEQ_CST);

	if (version >= 4)
		EXPECT(ended->stop_timer > ended->timer);
	if (index >= SIM_PLUGIN_KERNELS)
		return;
	counts->kernel[index] =
		(struct sim_plugin_kernel){.rank = ended->comm ? (uint32_t)ended->comm->rank : 0,
					   .channel = ended->channel,
					   .seq = ended->parent ? ended->parent->seq : UINT64_MAX,
					   .start_ns = ended->timer,
					   .stop_ns = ended->stop_timer,
					   .started_ns = ended->started_ns,
					   .stopped_ns = now()};
}

static bool is_complete(const struct event *ended)
{
	if (ended->type == TYPE(SIM_PROFILE_PROXY_STEP) && version >= 4)
		return ended->state ==
		       (ended->is_send ? SIM_STATE_SEND_WAIT : SIM_STATE_RECV_GPU_WAIT);
	if (ended->type == TYPE(SIM_PROFILE_KERNEL_CH) && version >= 4)
		return ended->state == SIM_STATE_KERNEL_CH_STOP;
	if (ended->type == TYPE(SIM_PROFILE_GROUP_API))
		return ended->state == SIM_STATE_GROUP_END_API_START;
	return true;
}

static int stop(void *handle)
{
	struct event *ended = event_of(handle);

	EXPECT(ended != NULL);
	if (!ended)
		return 0;
	if (ended->is_stopped) {
		ADD(stopped_again[ended->type]);
		return 0;
	}
	EXPECT(is_complete(ended));
	ended->is_stopped = true;
	ADD(stopped[ended->type]);
	if (ended->type == TYPE(SIM_PROFILE_KERNEL_CH))
		stop_kernel(ended);
	return 0;
}

/* ---- the tables ---- */

#define TABLE(number, init_member, start_function)                                                 \
	extern const struct sim_profiler_table ncclProfiler_v##number;                             \
	const struct sim_profiler_table ncclProfiler_v##number = {.name = "sim-count",             \
								  .init_member = init_v##number,   \
								  .start = (start_function),       \
								  .stop = stop,                    \
								  .record = record,                \
								  .finalize = finalize}
#define INIT_V3(number)                                                                            \
	static int init_v##number(void **context, int *mask)                                       \
	{                                                                                          \
		return init(context, mask, 0, -1, number);                                         \
	}
#define INIT_V7(number)                                                                            \
	static int init_v##number(void **context, uint64_t hash, int *mask, const char *name,      \
				  int nodes, int ranks, int rank, sim_log_fn *log)                 \
	{                                                                                          \
		(void)name;                                                                        \
		EXPECT(nodes > 0 && rank >= 0 && rank < ranks && log);                             \
		return init(context, mask, hash, rank, number);                                    \
	}

INIT_V3(1)
TABLE(1, init_v3, start_v3);
INIT_V3(2)
TABLE(2, init_v3, start_v3);
INIT_V3(3)
TABLE(3, init_v3, start_v3);

static int init_v4(void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks,
		   int rank, sim_log_fn *log)
{
	(void)name;
	EXPECT(nodes > 0 && rank >= 0 && rank < ranks && log);
	return init(context, mask, hash, rank, 4);
}
TABLE(4, init_v4, start_v4);

INIT_V7(5)
TABLE(5, init_v7, start_v7);

INIT_V7(6)
TABLE(6, init_v7, start_v7);

INIT_V7(7)
TABLE(7, init_v7, start_v7);
