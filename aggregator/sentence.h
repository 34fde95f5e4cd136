/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An incident in one sentence, for chat messages and tables. */
#ifndef NT_AGGREGATOR_SENTENCE_H
#define NT_AGGREGATOR_SENTENCE_H

#include "common/cleanup.h"
#include "detect/detect.h"
#include "proto/arena.h"
#include "proto/wire.h"

enum {
	NT_SENTENCE_MAX_NAME = 64, /* bytes of a node, pod or GPU in a sentence */
	NT_SENTENCE_MAX_RANKS = 4, /* ranks that are listed by number */
};

/* The text lies in the arena and fits a message. -ENOMEM. */
NT_MUST_CHECK int nt_sentence_write(enum nt_class class, const struct nt_incident *incident,
				    struct nt_arena *arena, const char **ret_text);

#endif
