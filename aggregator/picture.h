/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Draws the picture that HTTP threads read from what the engine holds. */
#ifndef NT_AGGREGATOR_PICTURE_H
#define NT_AGGREGATOR_PICTURE_H

#include <stddef.h>
#include <stdint.h>

#include "aggregator/engine.h"
#include "aggregator/snapshot.h"
#include "common/cleanup.h"

/* Jobs that have not changed since the last picture are shared with it. -ENOMEM. */
NT_MUST_CHECK int nt_picture_draw(struct nt_engine *engine, struct nt_snapshot **ret_snapshot);

#endif
