/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Private to anomaly.c and state_anomaly.c. */
#ifndef NT_DETECT_ANOMALY_ANOMALY_IMPL_H
#define NT_DETECT_ANOMALY_ANOMALY_IMPL_H

#include "detect/anomaly/anomaly.h"
#include "detect/anomaly/compressed_sensing.h"
#include "detect/anomaly/level.h"

enum nt_anomaly_view_kind {
	NT_ANOMALY_VIEW_OWN, /* the node's own past */
	NT_ANOMALY_VIEW_PEERS, /* its deviation from its peers */
	NT_ANOMALY_VIEW_END,
};

struct nt_anomaly_view {
	struct nt_chart *chart; /* owned; NULL: never used */
	struct nt_score_level level;
	double scale; /* of a score; 0: unknown; follows from the level */
	/* Compressed sensing; not stored: its rows are there again within three hours. */
	struct nt_sensing *sensing; /* owned; NULL: not in use */
	double sensed; /* its last score; 0: none */
	double smoothed; /* of it */
	double error[NT_ANOMALY_METRICS_MAX]; /* of its last reconstruction */
};

struct nt_anomaly_node {
	struct nt_anomaly_options options;
	size_t metrics, room; /* room: of the charts; metrics beyond it make them anew */
	char (*name)[NT_ANOMALY_NAME_BYTES]; /* owned, `room` of them */
	bool trouble[NT_ANOMALY_METRICS_MAX];
	struct nt_anomaly_view view[NT_ANOMALY_VIEW_END];
	enum nt_anomaly_view_kind active;
	struct nt_score_alarm alarm;
	double peak; /* highest score of the open run over the pool's level; 0: none */
	bool peak_alarmed; /* it was an alarm, so it is no example of a healthy node */
	uint64_t left_out, restarts;
	double level_keep;
	/* Of the last row. */
	double value[NT_ANOMALY_METRICS_MAX], peers[NT_ANOMALY_METRICS_MAX];
};

NT_MUST_CHECK int nt_anomaly_node_reserve(struct nt_anomaly_node *node, size_t metrics);
NT_MUST_CHECK int nt_anomaly_view_open(struct nt_anomaly_node *node,
				       enum nt_anomaly_view_kind kind);

#endif
