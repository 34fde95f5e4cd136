/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Serialization of a node's learned state. */
#include <errno.h>
#include <string.h>

#include "detect/anomaly/anomaly_impl.h"

enum {
	STATE_VERSION = 2,
};

static void code_name(struct nt_codec *codec, char name[NT_ANOMALY_NAME_BYTES])
{
	for (size_t i = 0; i + 1 < NT_ANOMALY_NAME_BYTES; i++) {
		uint8_t byte = (uint8_t)name[i];

		nt_code_u8(codec, &byte, UINT8_MAX);
		name[i] = (char)byte;
		if (!byte)
			return;
	}
	name[NT_ANOMALY_NAME_BYTES - 1] = '\0';
}

static void code_view(struct nt_codec *codec, struct nt_anomaly_node *node,
		      enum nt_anomaly_view_kind kind)
{
	struct nt_anomaly_view *view = &node->view[kind];
	bool has = view->chart;

	nt_code_bool(codec, &has);
	nt_code_fail(codec, has && !node->room);
	if (!has || codec->error)
		return;
	if (codec->loads)
		codec->error = nt_anomaly_view_open(node, kind);
	if (codec->error)
		return;
	nt_chart_code(codec, view->chart);
	nt_score_level_code(codec, &view->level);
	nt_code_real(codec, &view->scale);
	nt_code_fail(codec, view->scale < 0.0);
}

static void code_node(struct nt_codec *codec, struct nt_anomaly_node *node)
{
	uint32_t version = STATE_VERSION, metrics = (uint32_t)node->metrics,
		 room = (uint32_t)node->room;

	nt_code_u32(codec, &version, UINT32_MAX);
	nt_code_fail(codec, version != STATE_VERSION);
	nt_code_u32(codec, &room, NT_ANOMALY_METRICS_MAX);
	nt_code_u32(codec, &metrics, room);
	if (codec->loads && !codec->error && room)
		codec->error = nt_anomaly_node_reserve(node, room);
	if (codec->error)
		return;
	node->metrics = metrics;
	for (size_t j = 0; j < node->metrics; j++) {
		code_name(codec, node->name[j]);
		nt_code_bool(codec, &node->trouble[j]);
	}
	for (int i = 0; i < NT_ANOMALY_VIEW_END; i++)
		code_view(codec, node, i);
	nt_score_alarm_code(codec, &node->alarm);
	nt_code_real(codec, &node->peak);
	nt_code_bool(codec, &node->peak_alarmed);
	nt_code_u64(codec, &node->left_out);
}

int nt_anomaly_node_save(const struct nt_anomaly_node *node, struct nt_buf *out)
{
	struct nt_codec codec = {.out = out};

	/* Saving reads only. */
	code_node(&codec, (struct nt_anomaly_node *)node);
	return codec.error;
}

int nt_anomaly_node_load(const struct nt_anomaly_options *options, const void *state, size_t size,
			 struct nt_anomaly_node **ret_node)
{
	struct nt_codec codec = {.loads = true, .in = state, .in_size = size};
	nt_auto(nt_anomaly_node) struct nt_anomaly_node *node = NULL;
	int r = nt_anomaly_node_new(options, &node);

	if (r < 0)
		return r;
	code_node(&codec, node);
	nt_code_fail(&codec, codec.at != codec.in_size);
	if (codec.error)
		return codec.error;
	*ret_node = nt_take(node);
	return 0;
}
