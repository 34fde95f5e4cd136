/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The messages of tests/golden/wire/KIND/NAME.txt once more, in C. The earlier ones stay as they are:
 * their bytes must decode for ever.
 */
#ifndef NT_TESTS_GOLDEN_WIRE_MESSAGES_H
#define NT_TESTS_GOLDEN_WIRE_MESSAGES_H

#include "tests/golden/wire/control/control.h"
#include "tests/golden/wire/detail/detail.h"
#include "tests/golden/wire/heartbeat/heartbeat.h"
#include "tests/golden/wire/incident/incident.h"
#include "tests/golden/wire/node/node.h"
#include "tests/golden/wire/state/state.h"
#include "tests/golden/wire/window/window.h"

/* Call it first. */
static inline void golden_fill(void)
{
	golden_fill_window();
	golden_fill_node();
	golden_fill_detail();
	golden_fill_incident();
	golden_fill_state();
}

#endif
