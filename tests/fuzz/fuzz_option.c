/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What an operator writes: the values of options, a command line, a file of tokens, URLs. A first byte
 * says which; what is taken is within the range that its row names, what is not has one line of reason.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "aggregator/notify/http_post.h"
#include "aggregator/notify/kube_event.h"
#include "aggregator/notify/webhook.h"
#include "common/bus/bus.h"
#include "common/http/listener.h"
#include "common/http/token.h"
#include "common/kube/kube.h"
#include "common/options/opt.h"
#include "common/system/clock.h"
#include "tests/fuzz/lib/cost.h"

enum {
	MAX_WORDS = 64,
};

struct config {
	bool json;
	uint32_t workers, mode;
	uint64_t seed, bytes, linger_ns;
	double floor;
	char *bus, *secret;
	struct nt_opt_args args;
};

#define OPT(field) offsetof(struct config, field)

static const struct nt_opt opts[] = {
	{"json", NT_OPT_BOOL, OPT(json), "false", 0, 0, "print JSON", .flags = NT_OPT_CLI_ONLY},
	{"workers", NT_OPT_U32, OPT(workers), "4", 1, 64, "threads that work"},
	{"mode", NT_OPT_CHOICE, OPT(mode), "auto", 0, 0, "how", .choices = "auto fast slow"},
	{"seed", NT_OPT_U64, OPT(seed), NULL, 0, 0, "of the draw"},
	{"bytes", NT_OPT_SIZE, OPT(bytes), "1M", 4096, 1 << 30, "size of the ring"},
	{"linger", NT_OPT_DURATION, OPT(linger_ns), "100ms", 0, NT_MINUTE, "how long to wait"},
	{"floor", NT_OPT_DOUBLE, OPT(floor), "0.03", 0, 1, "smallest loss that counts"},
	{"bus", NT_OPT_STRING, OPT(bus), NULL, 1, 0, "where data travel",
	 .form = &nt_kube_url_form},
	{"secret", NT_OPT_STRING, OPT(secret), NULL, 0, 8, "secret", .flags = NT_OPT_SECRET},
};

static const struct nt_opt_program program = {
	.name = "neutracer-fuzz",
	.section = 8,
	.summary = "be fuzzed",
	.opts = opts,
	.opt_count = sizeof(opts) / sizeof(opts[0]),
	.args = "[FILE]...",
	.max_args = 2,
	.args_offset = OPT(args),
};

static void check_config(const struct config *config)
{
	assert(config->workers <= 64 && config->mode < 3 && config->linger_ns <= NT_MINUTE);
	assert(config->bytes <= 1 << 30 && config->floor >= 0 && config->floor <= 1);
	assert(!config->secret || strlen(config->secret) <= 8);
}

static void check_error(int r, const struct nt_opt_error *error)
{
	assert((r < 0) == (error->text[0] != '\0'));
	assert(!strchr(error->text, '\n'));
}

static void set_each(const char *text, size_t len)
{
	for (size_t i = 0; i < program.opt_count; i++) {
		struct config config = {0};
		struct nt_opt_error error = {0};

		check_error(nt_opt_set(&opts[i], &config, "--fuzz", text, len, &error), &error);
		check_config(&config);
		nt_opt_free(&program, &config);
	}
}

/* Nothing is printed, and no file is read that the input names. */
static void load_line(char *text)
{
	char name[] = "fuzz";
	char *argv[MAX_WORDS + 1] = {name};
	struct config config = {0};
	struct nt_opt_error error = {0};
	int argc = 1;

	for (char *word = text; word && argc < MAX_WORDS;) {
		char *end = strchr(word, '\n');

		if (end)
			*end = '\0';
		if (strncmp(word, "--config", 8) != 0 && strncmp(word, "--help", 6) != 0 &&
		    strncmp(word, "--version", 9) != 0 && strncmp(word, "--print", 7) != 0)
			argv[argc++] = word;
		word = end ? end + 1 : NULL;
	}
	if (nt_opt_load(&program, argc, argv, &config, &error) == 0)
		check_config(&config);
	nt_opt_free(&program, &config);
	(void)nt_opt_nearest_key(opts, program.opt_count, text);
}

static void load_tokens(const uint8_t *data, size_t size)
{
	nt_autoclose int fd = memfd_create("tokens", MFD_CLOEXEC);
	nt_auto(nt_tokens) struct nt_tokens *tokens = NULL;
	struct nt_token_error error;
	struct nt_token_holder holder;
	nt_autofree char *first = NULL;
	char path[64];
	int r;

	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = nt_tokens_open(path, &tokens, &error);
	assert((r == 0) == (tokens != NULL));
	if (nt_token_read(path, &first) == 0 && tokens)
		assert(nt_tokens_find(tokens, first, strlen(first), 0, &holder));
}

static int run(const uint8_t *data, size_t size)
{
	struct nt_webhook_key key;
	nt_autofree char *text = NULL;

	if (size < 1)
		return 0;
	text = strndup((const char *)data + 1, size - 1);
	assert(text);
	switch (data[0] % 4) {
	case 0:
		set_each((const char *)data + 1, size - 1);
		break;
	case 1:
		load_line(text);
		break;
	case 2:
		load_tokens(data + 1, size - 1);
		break;
	default:
		(void)nt_listener_is_sound(text);
		(void)nt_bus_url_is_sound(text);
		(void)nt_http_url_is_valid(text);
		(void)nt_kube_name_is_sound(text);
		(void)!nt_webhook_key_read(text, &key);
	}
	return 0;
}

FUZZ_TARGET(run, .peak = {256 << 10, 64}, .steps = {60000, 100})
