/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/environ.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base/ascii.h"
#include "common/base/parse_number.h"

enum {
	PATH_BYTES = 64,
	CHUNK_BYTES = 16 << 10,
};

struct variable {
	const char *name;
	size_t offset, size; /* of the field; size 0: a number */
};

#define NUMBER(name_, field_)                                                                      \
	{                                                                                          \
		.name = (name_), .offset = offsetof(struct nt_environ, field_)                     \
	}
#define TEXT(name_, field_)                                                                        \
	{                                                                                          \
		.name = (name_), .offset = offsetof(struct nt_environ, field_),                    \
		.size = sizeof(((struct nt_environ *)0)->field_)                                   \
	}

static const struct variable variables[] = {
	NUMBER("RANK", rank),
	NUMBER("WORLD_SIZE", world_size),
	NUMBER("LOCAL_RANK", local_rank),
	NUMBER("TORCHELASTIC_RESTART_COUNT", restart_count),
	NUMBER("OMPI_COMM_WORLD_RANK", ompi_rank),
	NUMBER("OMPI_COMM_WORLD_SIZE", ompi_size),
	NUMBER("OMPI_COMM_WORLD_LOCAL_RANK", ompi_local_rank),
	NUMBER("PMIX_RANK", pmix_rank),
	NUMBER("PMI_RANK", pmi_rank),
	NUMBER("PMI_SIZE", pmi_size),
	NUMBER("MPI_LOCALRANKID", mpi_local_rank),
	NUMBER("SLURM_PROCID", slurm_procid),
	NUMBER("SLURM_NTASKS", slurm_ntasks),
	NUMBER("SLURM_LOCALID", slurm_localid),
	NUMBER("SLURM_NODEID", slurm_nodeid),
	NUMBER("LOCAL_WORLD_SIZE", local_size),
	NUMBER("OMPI_COMM_WORLD_LOCAL_SIZE", local_size),
	NUMBER("MPI_LOCALNRANKS", local_size),
	TEXT("MASTER_ADDR", master_addr),
	TEXT("MASTER_PORT", master_port),
	TEXT("TORCHELASTIC_RUN_ID", run_id),
	TEXT("PMIX_NAMESPACE", pmix_namespace),
	TEXT("SLURM_JOB_ID", slurm_job_id),
	TEXT("SLURM_STEP_ID", slurm_step_id),
	TEXT("SLURM_JOB_NAME", slurm_job_name),
	TEXT("NT_JOB", job),
	TEXT("HOSTNAME", hostname),
	TEXT("POD_NAME", pod_name),
	TEXT("POD_NAMESPACE", pod_namespace),
	TEXT("CUDA_VISIBLE_DEVICES", cuda_devices),
	TEXT("NVIDIA_VISIBLE_DEVICES", nvidia_devices),
};

enum {
	VARIABLES = sizeof(variables) / sizeof(variables[0]),
};

static void set_number(int32_t *field, const char *text, size_t len)
{
	uint64_t value;

	/* A later malformed definition does not replace a valid one. */
	if (nt_parse_u64(text, len, 0, INT32_MAX, &value) == 0)
		*field = (int32_t)value;
}

static void parse_entry(const char *entry, size_t len, struct nt_environ *env)
{
	const char *equals = memchr(entry, '=', len);
	size_t name_len;

	if (!equals)
		return;
	name_len = (size_t)(equals - entry);
	for (size_t i = 0; i < VARIABLES; i++) {
		const struct variable *v = &variables[i];
		char *field = (char *)env + v->offset;

		if (strlen(v->name) != name_len || memcmp(v->name, entry, name_len) != 0)
			continue;
		if (v->size)
			nt_ascii_copy(field, v->size, equals + 1, len - name_len - 1);
		else
			set_number((int32_t *)(void *)field, equals + 1, len - name_len - 1);
		return;
	}
}

static void clear(struct nt_environ *env)
{
	*env = (struct nt_environ){0};
	for (size_t i = 0; i < VARIABLES; i++) {
		if (!variables[i].size)
			*(int32_t *)(void *)((char *)env + variables[i].offset) = NT_ENVIRON_ABSENT;
	}
}

void nt_environ_parse(const char *data, size_t size, struct nt_environ *ret_environ)
{
	struct nt_environ env;

	clear(&env);
	for (size_t at = 0; at < size;) {
		const char *end = memchr(data + at, '\0', size - at);
		size_t len = end ? (size_t)(end - (data + at)) : size - at;

		parse_entry(data + at, len, &env);
		at += len + 1;
	}
	*ret_environ = env;
}

static void clean_text(char *field, size_t size)
{
	char copy[NT_ENVIRON_DEVICES];

	memcpy(copy, field, size);
	nt_ascii_copy(field, size, copy, strnlen(copy, size));
}

void nt_environ_clean(struct nt_environ *env)
{
	for (size_t i = 0; i < VARIABLES; i++) {
		char *field = (char *)env + variables[i].offset;
		int32_t number;

		if (variables[i].size) {
			clean_text(field, variables[i].size);
			continue;
		}
		memcpy(&number, field, sizeof(number));
		if (number < 0)
			number = NT_ENVIRON_ABSENT;
		memcpy(field, &number, sizeof(number));
	}
	clean_text(env->script, sizeof(env->script));
}

/* At most `most` bytes of /proc/PID/name; the rest is ignored. */
static int read_text(uint32_t pid, const char *name, size_t most, char **ret_data, size_t *ret_size)
{
	nt_autofree char *data = NULL;
	nt_autoclose int fd = -1;
	size_t size = 0, cap = 0;
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (size < most) {
		ssize_t n;

		if (cap - size < CHUNK_BYTES) {
			char *grown = realloc(data, cap * 2 + CHUNK_BYTES);

			if (!grown)
				return -ENOMEM;
			data = grown;
			cap = cap * 2 + CHUNK_BYTES;
		}
		n = read(fd, data + size, CHUNK_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size += (size_t)n;
	}
	*ret_data = nt_take(data);
	*ret_size = size;
	return 0;
}

int nt_environ_read(uint32_t pid, struct nt_environ *ret_environ)
{
	nt_autofree char *data = NULL, *command = NULL;
	struct nt_environ env;
	size_t size = 0;
	int r;

	r = read_text(pid, "environ", NT_ENVIRON_MAX_BYTES, &data, &size);
	if (r < 0)
		return r;
	nt_environ_parse(data, size, &env);
	if (read_text(pid, "cmdline", NT_SCRIPT_MAX_BYTES, &command, &size) == 0)
		nt_script_find(command, size, env.script);
	*ret_environ = env;
	return 0;
}
