/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/identity.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "agent/identity/tenant.h"
#include "common/base/hash.h"

enum {
	KEY_PLAIN = NT_IDENTITY_KEY - 18, /* longer keys end in a hash: a colon, 16 digits, NUL */
	RAW_KEY = 512,
	NAME_HASH = 0xffff,
};

_Static_assert((int)NT_TENANT_SCOPE < (int)KEY_PLAIN, "there is room behind each scope");

/* ---- key and name --------------------------------------------------------------------------- */

static bool is_loopback(const char *addr)
{
	return strncmp(addr, "127.", 4) == 0 || strcmp(addr, "localhost") == 0 ||
	       strcmp(addr, "::1") == 0 || strcmp(addr, "[::1]") == 0 ||
	       strcmp(addr, "0.0.0.0") == 0;
}

/* The scope is shorter than KEY_PLAIN and never truncated. */
static void finish_key(const char *scope, const char *raw, char ret_key[NT_IDENTITY_KEY])
{
	size_t len = scope ? strlen(scope) : 0, n = 0;

	if (scope)
		memcpy(ret_key, scope, len);
	for (; len < KEY_PLAIN && raw[n]; n++)
		ret_key[len++] =
			isalnum((unsigned char)raw[n]) || strchr("._:/-", raw[n]) ? raw[n] : '-';
	ret_key[len] = '\0';
	if (raw[n])
		(void)snprintf(ret_key + len, NT_IDENTITY_KEY - len, ":%016llx",
			       (unsigned long long)nt_hash_text(NT_HASH_SEED, raw));
}

enum nt_identity_source nt_identity_key(const struct nt_environ *env,
					const struct nt_identity_facts *facts,
					char ret_key[NT_IDENTITY_KEY])
{
	enum nt_identity_source source;
	char raw[RAW_KEY];

	if (env->master_addr[0] && env->master_port[0]) {
		source = NT_IDENTITY_MASTER;
		(void)snprintf(raw, sizeof(raw), "torch:%s:%s", env->master_addr, env->master_port);
		if (env->run_id[0] && strcmp(env->run_id, "none") != 0)
			(void)snprintf(raw + strlen(raw), sizeof(raw) - strlen(raw), "/%s",
				       env->run_id);
		/* On another node, the same address belongs to another job. */
		if (is_loopback(env->master_addr))
			(void)snprintf(raw + strlen(raw), sizeof(raw) - strlen(raw), "/%016llx",
				       (unsigned long long)facts->boot);
	} else if (env->slurm_job_id[0]) {
		source = NT_IDENTITY_SCHEDULER;
		(void)snprintf(raw, sizeof(raw), "slurm:%s.%s", env->slurm_job_id,
			       env->slurm_step_id);
	} else if (env->pmix_namespace[0]) {
		source = NT_IDENTITY_MPI;
		(void)snprintf(raw, sizeof(raw), "mpi:%s", env->pmix_namespace);
	} else if (facts->first_id) {
		source = NT_IDENTITY_UNIQUE_ID;
		(void)snprintf(raw, sizeof(raw), "id:%016llx", (unsigned long long)facts->first_id);
	} else {
		source = NT_IDENTITY_PARENT;
		(void)snprintf(raw, sizeof(raw), "node:%016llx:%016llx",
			       (unsigned long long)facts->boot, (unsigned long long)facts->parent);
	}
	finish_key(facts->scope, raw, ret_key);
	return source;
}

void nt_identity_name(const struct nt_environ *env, const struct nt_workload *workload,
		      const struct nt_cgroup *cgroup, const char *command, const char *key,
		      char ret_name[NT_IDENTITY_NAME])
{
	const char *name = env->job;

	if (!*name)
		name = workload->job;
	if (!*name)
		name = env->slurm_job_name;
	if (*name)
		(void)snprintf(ret_name, NT_IDENTITY_NAME, "%s", name);
	else if (cgroup->slurm_job[0])
		(void)snprintf(ret_name, NT_IDENTITY_NAME, "slurm-%s", cgroup->slurm_job);
	else
		(void)snprintf(ret_name, NT_IDENTITY_NAME, "%s-%04x", command[0] ? command : "job",
			       (unsigned int)(nt_hash_text(NT_HASH_SEED, key) & NAME_HASH));
}

/* ---- rank ----------------------------------------------------------------------------------- */

static bool set_rank(struct nt_identity_rank *id, int32_t rank, int32_t size, int32_t local)
{
	if (rank < 0 || (size >= 0 && rank >= size))
		return false;
	*id = (struct nt_identity_rank){
		.known = true,
		.rank = (uint32_t)rank,
		.size = size > 0 ? (uint32_t)size : 0,
		.local_rank = local > 0 ? (uint32_t)local : 0,
	};
	return true;
}

struct nt_identity_rank nt_identity_rank(const struct nt_environ *env)
{
	struct nt_identity_rank id = {0};

	if (env->local_rank >= 0 && env->world_size > 0 &&
	    set_rank(&id, env->rank, env->world_size, env->local_rank))
		return id;
	if (set_rank(&id, env->ompi_rank, env->ompi_size, env->ompi_local_rank) ||
	    set_rank(&id, env->pmi_rank, env->pmi_size, env->mpi_local_rank) ||
	    set_rank(&id, env->pmix_rank, env->slurm_ntasks, env->slurm_localid) ||
	    set_rank(&id, env->slurm_procid, env->slurm_ntasks, env->slurm_localid))
		return id;
	return id;
}
