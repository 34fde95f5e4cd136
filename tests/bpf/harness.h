/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the tests of the kernel side share: attaching in one mode, and the events that came. */
#ifndef NT_TESTS_BPF_HARNESS_H
#define NT_TESTS_BPF_HARNESS_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/probes/attach.h"
#include "agent/probes/rank_probe.h"
#include "agent/probes/symbols.h"
#include "common/system/clock.h"
#include "tests/bpf/stub.h"

enum {
	EVENTS_MAX = 65536,
	EXIT_SKIP = 77,
};

struct seen {
	struct nt_event_call call;
	uint8_t id[NT_ID_BYTES];
	bool has_id;
};

struct harness {
	enum nt_attach_mode mode;
	struct nt_attach *attach;
	struct seen *event;
	size_t events;
	uint64_t min_call_ns; /* as it was told */
};

static inline struct nt_attach_options harness_options(enum nt_attach_mode mode)
{
	return (struct nt_attach_options){
		.mode = mode,
		.ring_bytes = 4 << 20,
		.min_call_ns = 2 * NT_MILLISECOND,
	};
}

/* Only the caller's own: other jobs may run on this machine. */
static inline void harness_keep(void *data, const struct nt_event_call *call, const uint8_t *id)
{
	struct harness *h = data;
	struct seen *seen = &h->event[h->events];

	if (call->h.pid != (uint32_t)getpid() || h->events == EVENTS_MAX)
		return;
	seen->call = *call;
	seen->has_id = id != NULL;
	if (id)
		memcpy(seen->id, id, sizeof(seen->id));
	h->events++;
}

/* All that there is, however many polls it takes. */
static inline int harness_drain(struct nt_attach *attach, nt_event_fn fn, void *data)
{
	int r;

	do
		r = nt_attach_poll(attach, fn, data);
	while (r > 0);
	return r;
}

/* Events since the last call of it. */
static inline size_t harness_poll(struct harness *h)
{
	h->events = 0;
	assert_int_equal(harness_drain(h->attach, harness_keep, h), 0);
	return h->events;
}

static inline void harness_init(struct harness *h, const struct nt_attach_options *options)
{
	*h = (struct harness){.mode = options->mode, .min_call_ns = options->min_call_ns};
	h->event = calloc(EVENTS_MAX, sizeof(*h->event));
	assert_non_null(h->event);
	assert_int_equal(nt_attach_new(options, &h->attach), 0);
}

static inline void harness_release(struct harness *h)
{
	nt_attach_free(h->attach);
	free(h->event);
	*h = (struct harness){0};
}

/* What the agent does with a file that is mapped, its workers and its thread left out. */
static inline int attach_file(struct nt_attach *attach, const char *path, dev_t dev, ino_t ino,
			      enum nt_library library, uint32_t subjects)
{
	nt_autofree struct nt_symbols *symbols = calloc(1, sizeof(*symbols));
	nt_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	const struct nt_attach_order order = {
		.fd = fd, .symbols = symbols, .dev = dev, .ino = ino, .subjects = subjects};
	int r;

	assert_non_null(symbols);
	if (fd < 0)
		return -errno;
	r = nt_symbols_read(fd, NULL, library, symbols);
	return r < 0 ? r : nt_attach_opened(attach, &order);
}

static inline int attach_rank_probe(struct nt_attach *attach, int fd, pid_t pid,
				    struct nt_rank_probe **ret_probe)
{
	struct nt_rank_probe_sites sites;
	int r = nt_rank_probe_find(fd, NT_LIBRARY_PYTHON, &sites);

	return r < 0 ? r
		     : nt_rank_probe_new_at(nt_attach_loader(attach), fd, (uint32_t)pid, &sites,
					    ret_probe);
}

static inline int harness_attach(struct harness *h, const struct stub *stub,
				 enum nt_library library, uint32_t subjects)
{
	return attach_file(h->attach, stub->path, stub->st.st_dev, stub->st.st_ino, library,
			   subjects);
}

static inline struct nt_attach_stats harness_stats(const struct harness *h)
{
	struct nt_attach_stats stats;

	nt_attach_stats(h->attach, &stats);
	return stats;
}

static inline uint16_t harness_row(const char *symbol, enum nt_library library)
{
	for (uint16_t row = 0; row < nt_probe_rows(); row++)
		if (nt_probe_row(row)->library == library &&
		    strcmp(nt_probe_row(row)->symbol, symbol) == 0)
			return row;
	fail_msg("the table has no %s", symbol);
	return 0;
}

/* False, and says so, where nothing can be loaded, as without root. */
static inline bool harness_can_load(void)
{
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);
	struct nt_attach *attach = NULL;
	int r = nt_attach_new(&options, &attach);

	if (r < 0) {
		printf("skip: bpf: probes cannot be loaded here: %s\n",
		       r == -EPERM ? "not permitted" : "not supported");
		return false;
	}
	fprintf(stderr, "# this kernel: %s mode\n", nt_attach_mode_name(nt_attach_mode(attach)));
	nt_attach_free(attach);
	return true;
}

static inline bool harness_has_mode(enum nt_attach_mode mode)
{
	struct nt_attach_options options = harness_options(mode);
	struct nt_attach *attach = NULL;
	bool has = nt_attach_new(&options, &attach) == 0;

	nt_attach_free(attach);
	return has;
}

#endif
