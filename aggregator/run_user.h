/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The account that the program runs as. */
#ifndef NT_AGGREGATOR_RUN_USER_H
#define NT_AGGREGATOR_RUN_USER_H

#include "common/options/exit.h"

/* Gives up the current account for this one, for good; NULL or "": keeps it. Logs what fails. */
enum nt_exit nt_run_user_become(const char *name);

#endif
