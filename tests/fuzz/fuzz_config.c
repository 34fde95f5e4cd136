/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A config file or a file of receivers of any bytes is read whole or refused in one line. A template is
 * refused by a word, or writes text within its size. What others wrote into a node's annotation is left out,
 * or is written as it was read.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "aggregator/notify/kube_ledger.h"
#include "aggregator/notify/receiver_config.h"
#include "aggregator/notify/template.h"
#include "common/base/utf8.h"
#include "common/options/config.h"
#include "tests/fuzz/lib/cost.h"

static const struct nt_opt opts[] = {
	{"bus", NT_OPT_STRING, 0, NULL, 0, 0, "the bus"},
	{"workers", NT_OPT_U32, 0, NULL, 0, 0, "threads"},
};

static int run(const uint8_t *data, size_t size)
{
	nt_autoclose int fd = memfd_create("config", MFD_CLOEXEC);
	struct nt_opt_error error = {0};
	char *values[2] = {NULL, NULL};
	char path[64];
	int r;

	assert(fd >= 0);
	assert(write(fd, data, size) == (ssize_t)size);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = nt_config_read(path, opts, 2, values, &error);
	assert((r == 0) == (error.text[0] == '\0'));
	assert(r == 0 || (!values[0] && !values[1]));
	free(values[0]);
	free(values[1]);
	return 0;
}

static int run_receivers(const uint8_t *data, size_t size)
{
	nt_auto(nt_receiver_configs) struct nt_receiver_configs *configs = NULL;
	nt_autoclose int fd = memfd_create("receivers", MFD_CLOEXEC);
	struct nt_opt_error error = {0};
	char path[64];
	int r;

	assert(fd >= 0);
	assert(write(fd, data, size) == (ssize_t)size);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = nt_receiver_configs_read(path, &configs, &error);
	assert((r == 0) == (error.text[0] == '\0'));
	assert((r == 0) == (configs != NULL));
	for (size_t i = 0; configs && i < configs->count; i++)
		assert(configs->receiver[i].urls && configs->receiver[i].secret);
	return 0;
}

/* The text up to the first NUL; false: it is longer, or no UTF-8, which is refused before. */
static bool take_text(const uint8_t *data, size_t size, char text[NT_TEMPLATE_TEXT + 1])
{
	if (size > NT_TEMPLATE_TEXT || !nt_utf8_is_valid((const char *)data, size))
		return false;
	memcpy(text, data, size);
	text[size] = '\0';
	return true;
}

static int run_template(const uint8_t *data, size_t size)
{
	static const size_t sizes[] = {8, 64, NT_NOTICE_BODY};
	char text[NT_TEMPLATE_TEXT + 1], word[NT_TEMPLATE_WORD], out[NT_NOTICE_BODY];
	struct nt_notice notice = {.since_ns = 1, .field = {{.name = "Who"}}, .fields = 1};

	if (!take_text(data, size, text))
		return 0;
	if (nt_template_check(text, word) < 0) {
		assert(strlen(word) < sizeof(word));
		return 0;
	}
	(void)snprintf(notice.title, sizeof(notice.title), "%s", "rank 5");
	(void)snprintf(notice.field[0].value, sizeof(notice.field[0].value), "%s", "Größe");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		nt_template_write(text, &notice, out, sizes[i]);
		assert(strlen(out) < sizes[i]);
		assert(nt_utf8_is_valid(out, strlen(out)));
	}
	nt_template_apply(text, text, &notice);
	return 0;
}

static int run_ledger(const uint8_t *data, size_t size)
{
	nt_autobuf struct nt_buf once = {0}, twice = {0};
	struct nt_kube_ledger ledger, again;
	char text[NT_TEMPLATE_TEXT + 1];

	if (!take_text(data, size, text))
		return 0;
	nt_kube_ledger_read(text, &ledger);
	assert(ledger.entries <= NT_KUBE_LEDGER_ENTRIES);
	assert(nt_kube_ledger_write(&ledger, &once) == 0);
	nt_kube_ledger_read((const char *)once.data, &again);
	assert(again.entries == ledger.entries);
	assert(nt_kube_ledger_write(&again, &twice) == 0);
	assert(once.len == twice.len && !memcmp(once.data, twice.data, once.len));
	(void)nt_kube_ledger_note(&ledger, "id", false, 100);
	nt_kube_ledger_forget(&ledger, UINT64_MAX, 1);
	assert(nt_kube_ledger_count(&ledger, 100, 1) <= NT_KUBE_LEDGER_ENTRIES);
	(void)nt_kube_ledger_is_quiet(&ledger, 100, UINT64_MAX);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fuzz_cost config = {.peak = {2 << 20, 64}, .steps = {20000, 200}};
	static const struct fuzz_cost receivers = {.peak = {4 << 20, 256}, .steps = {100000, 1000}};

	static const struct fuzz_cost texts = {.peak = {64 << 10, 64}, .steps = {4000000, 20000}};

	(void)fuzz_run(&texts, run_template, data, size);
	(void)fuzz_run(&texts, run_ledger, data, size);
	(void)fuzz_run(&receivers, run_receivers, data, size);
	return fuzz_run(&config, run, data, size);
}
