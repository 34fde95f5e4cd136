/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Serialization of the job model, except waiting windows, which are read from the bus again. */
#ifndef NT_ENGINE_JOB_STATE_H
#define NT_ENGINE_JOB_STATE_H

#include <stddef.h>

#include "common/base/buf.h"
#include "engine/job.h"

NT_MUST_CHECK int nt_jobs_save(const struct nt_jobs *jobs, struct nt_buf *buf);

/* Loads into an empty model. After -EBADMSG (damaged) the model can only be freed. */
NT_MUST_CHECK int nt_jobs_load(struct nt_jobs *jobs, const void *data, size_t size);

#endif
