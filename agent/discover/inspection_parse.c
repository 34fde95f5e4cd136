/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The loop's side of agent/discover/inspection.h: parses and checks what workers send. */
#include <errno.h>
#include <string.h>

#include "agent/discover/inspection.h"
#include "agent/probes/probe.h"
#include "common/base/ascii.h"

_Static_assert(sizeof(struct nt_inspection_request) == 96, "passed between processes");
_Static_assert(sizeof(struct nt_inspection_answer) == 24, "passed between processes");
_Static_assert(sizeof(struct nt_inspection_file) == 56, "passed between processes");
_Static_assert(sizeof(struct nt_symbols_row) == 40, "passed between processes");
_Static_assert(sizeof(struct nt_inspection_symbols) % _Alignof(struct nt_symbols_row) == 0,
	       "rows follow without padding");

int nt_inspection_parse(const uint8_t *data, size_t len, struct nt_inspection_answer *ret_answer,
			const uint8_t **ret_body, size_t *ret_len)
{
	struct nt_inspection_answer answer;

	if (len < sizeof(answer))
		return -EBADMSG;
	memcpy(&answer, data, sizeof(answer));
	if (answer.kind >= NT_ANSWER_END || answer.result > 0 || answer.result < -4095)
		return -EBADMSG;
	*ret_answer = answer;
	*ret_body = data + sizeof(answer);
	*ret_len = len - sizeof(answer);
	return 0;
}

int nt_inspection_parse_file(const uint8_t *body, size_t len, struct nt_inspection_file *ret_file,
			     char ret_name[NT_PROC_PATH])
{
	struct nt_inspection_file file;

	if (len <= sizeof(file) || len - sizeof(file) >= NT_PROC_PATH)
		return -EBADMSG;
	memcpy(&file, body, sizeof(file));
	body += sizeof(file);
	len -= sizeof(file);
	if (file.library >= NT_LIBRARY_FILE_END || file.executable > 1 || file.is_fuse > 1 ||
	    file.start > file.end || memchr(body, '\0', len))
		return -EBADMSG;
	memcpy(ret_name, body, len);
	ret_name[len] = '\0';
	*ret_file = file;
	return 0;
}

static bool is_insn(enum nt_insn insn)
{
	return (unsigned int)insn <= NT_INSN_REFUSED;
}

static bool is_sound(const struct nt_symbols_row *row)
{
	const struct nt_elf_symbol *s = &row->symbol;

	return row->row < nt_probe_rows() && s->offset <= INT64_MAX &&
	       s->entry_offset <= INT64_MAX && s->return_offset <= INT64_MAX && is_insn(s->insn) &&
	       is_insn(s->return_insn);
}

int nt_inspection_parse_symbols(const uint8_t *body, size_t len, struct nt_symbols *ret_symbols)
{
	struct nt_inspection_symbols head;
	uint32_t before = 0;

	if (len < sizeof(head))
		return -EBADMSG;
	memcpy(&head, body, sizeof(head));
	if (head.count > NT_SYMBOLS_MAX || head.holds > 1 ||
	    !nt_uncovered_calls_are_sound(&head.uncovered) ||
	    len - sizeof(head) != head.count * sizeof(struct nt_symbols_row))
		return -EBADMSG;
	body += sizeof(head);
	/* Sorted as the table is: searches depend on it. */
	for (uint32_t i = 0; i < head.count; i++) {
		struct nt_symbols_row row;

		memcpy(&row, body + i * sizeof(row), sizeof(row));
		if (!is_sound(&row) || (i && row.row <= before))
			return -EBADMSG;
		before = row.row;
	}
	*ret_symbols = (struct nt_symbols){
		.holds = head.holds, .count = (uint16_t)head.count, .uncovered = head.uncovered};
	memcpy(ret_symbols->row, body, head.count * sizeof(struct nt_symbols_row));
	return 0;
}

int nt_inspection_parse_sites(const uint8_t *body, size_t len,
			      struct nt_rank_probe_sites *ret_sites)
{
	struct nt_rank_probe_sites sites;
	const struct nt_probe *probe;

	if (len != sizeof(sites))
		return -EBADMSG;
	memcpy(&sites, body, sizeof(sites));
	if (sites.row >= nt_probe_rows())
		return -EBADMSG;
	probe = nt_probe_row((uint16_t)sites.row);
	if (!nt_probe_is_of_rank(probe) || !sites.begins || sites.begins > NT_RANK_PROBE_SITES ||
	    !sites.ends != probe->batched || probe->traffic || sites.ends > NT_RANK_PROBE_SITES ||
	    sites.at_return > 1)
		return -EBADMSG;
	for (size_t i = 0; i < NT_RANK_PROBE_SITES; i++)
		if (sites.begin[i].offset > INT64_MAX || sites.end[i].offset > INT64_MAX ||
		    sites.begin[i].semaphore > INT64_MAX || sites.end[i].semaphore > INT64_MAX)
			return -EBADMSG;
	*ret_sites = sites;
	return 0;
}

int nt_inspection_parse_mpi_code(const uint8_t *body, size_t len, struct nt_mpi_code *ret_code)
{
	struct nt_mpi_code code;

	if (len != sizeof(code))
		return -EBADMSG;
	memcpy(&code, body, sizeof(code));
	if (!nt_mpi_code_is_sound(&code))
		return -EBADMSG;
	*ret_code = code;
	return 0;
}

int nt_inspection_parse_code_place(const uint8_t *body, size_t len,
				   struct nt_inspection_code_place *ret_place)
{
	struct nt_inspection_code_place place;
	size_t name_len;

	if (len != sizeof(place))
		return -EBADMSG;
	memcpy(&place, body, sizeof(place));
	name_len = strnlen(place.name, sizeof(place.name));
	if (!name_len || name_len == sizeof(place.name))
		return -EBADMSG;
	ret_place->offset = place.offset;
	nt_ascii_copy(ret_place->name, sizeof(ret_place->name), place.name, name_len);
	return 0;
}

/* Both functions or neither, and a build-id of hexadecimal digits. */
int nt_inspection_parse_provider(const uint8_t *body, size_t len,
				 struct nt_provider_place *ret_provider)
{
	struct nt_provider_place provider;
	size_t digits;

	if (len != sizeof(provider))
		return -EBADMSG;
	memcpy(&provider, body, sizeof(provider));
	digits = strnlen(provider.build_id, sizeof(provider.build_id));
	if (provider.post_offset > INT64_MAX || provider.poll_offset > INT64_MAX ||
	    !provider.post_offset != !provider.poll_offset || provider.holds_device > 1 ||
	    digits == sizeof(provider.build_id) ||
	    strspn(provider.build_id, "0123456789abcdef") != digits)
		return -EBADMSG;
	memset(provider.build_id + digits, 0, sizeof(provider.build_id) - digits);
	*ret_provider = provider;
	return 0;
}

int nt_inspection_parse_environ(const uint8_t *body, size_t len, struct nt_environ *ret_environ)
{
	if (len != sizeof(*ret_environ))
		return -EBADMSG;
	memcpy(ret_environ, body, sizeof(*ret_environ));
	nt_environ_clean(ret_environ);
	return 0;
}
