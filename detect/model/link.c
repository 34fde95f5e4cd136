/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Links between nodes. */
#include "detect/model/link.h"

#include "detect/model/finding.h"
#include "detect/model/frame.h"

enum {
	KEY_SHIFT = 32,
};

void nt_links_free(struct nt_links *links)
{
	nt_matrix_free(&links->matrix);
	nt_nic_counters_free(&links->nic_counters);
	*links = (struct nt_links){0};
}

uint64_t nt_detect_link_key(const struct nt_culprit_link *link)
{
	const uint32_t peer = link->kind == NT_CULPRIT_PATH ? link->peer : NT_FRAME_NO_NODE;

	return (uint64_t)peer << KEY_SHIFT | link->node;
}

struct nt_culprit_link nt_detect_link_of(uint8_t kind, uint64_t key)
{
	return (struct nt_culprit_link){
		.kind = kind, .node = (uint32_t)key, .peer = (uint32_t)(key >> KEY_SHIFT)};
}

bool nt_detect_link_is_kind(uint8_t kind)
{
	return kind == NT_CULPRIT_NIC || kind == NT_CULPRIT_PATH;
}

bool nt_detect_link_is_same(const struct nt_culprit_link *a, const struct nt_culprit_link *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == NT_CULPRIT_NIC)
		return a->node == b->node;
	return (a->node == b->node && a->peer == b->peer) ||
	       (a->node == b->peer && a->peer == b->node);
}

bool nt_detect_link_touches(const struct nt_culprit_link *link, uint32_t node)
{
	return link->node == node || (link->kind == NT_CULPRIT_PATH && link->peer == node);
}
