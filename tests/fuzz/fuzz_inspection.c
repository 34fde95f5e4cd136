/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as an answer of a worker: what is taken is within its bounds, and the rest is refused. */
#include <stdint.h>
#include <string.h>

#include "agent/discover/inspection.h"
#include "agent/host/mount.h"
#include "agent/probes/probe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		__builtin_trap();
}

static void take_symbols(const uint8_t *body, size_t len)
{
	static struct nt_symbols symbols;

	if (nt_inspection_parse_symbols(body, len, &symbols) < 0)
		return;
	check(symbols.count <= NT_SYMBOLS_MAX);
	for (uint16_t i = 0; i < symbols.count; i++)
		check(nt_symbols_find(&symbols, symbols.row[i].row) == &symbols.row[i].symbol);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nt_inspection_answer answer;
	struct nt_inspection_file file;
	struct nt_rank_probe_sites sites;
	struct nt_mpi_code code;
	struct nt_inspection_code_place place;
	struct nt_provider_place provider;
	struct nt_environ env;
	char name[NT_PROC_PATH], type[NT_MOUNT_TYPE];
	const uint8_t *body;
	size_t len;

	if (nt_mount_parse((const char *)data, size, 36, type))
		check(strlen(type) > 0);
	if (nt_inspection_parse(data, size, &answer, &body, &len) < 0)
		return 0;
	if (nt_inspection_parse_file(body, len, &file, name) == 0)
		check(strlen(name) == len - sizeof(file));
	take_symbols(body, len);
	if (nt_inspection_parse_sites(body, len, &sites) == 0)
		check(sites.begins <= NT_RANK_PROBE_SITES && sites.ends <= NT_RANK_PROBE_SITES);
	if (nt_inspection_parse_mpi_code(body, len, &code) == 0)
		check(code.count <= NT_MPI_CODE_RANGES && !nt_mpi_code_has(&code, UINT64_MAX));
	if (nt_inspection_parse_code_place(body, len, &place) == 0)
		check(place.name[0] && strlen(place.name) < sizeof(place.name));
	if (nt_inspection_parse_provider(body, len, &provider) == 0)
		check(strlen(provider.build_id) < sizeof(provider.build_id) &&
		      !provider.post_offset == !provider.poll_offset);
	if (nt_inspection_parse_environ(body, len, &env) == 0)
		check(strlen(env.job) < sizeof(env.job));
	return 0;
}
