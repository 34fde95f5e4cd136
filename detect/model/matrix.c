/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The delay matrix. */
#include "detect/model/matrix.h"

#include <math.h>
#include <stdlib.h>

#include "detect/math/stats.h"
#include "detect/model/finding.h"

void nt_matrix_free(struct nt_matrix *matrix)
{
	free(matrix->cell);
	*matrix = (struct nt_matrix){0};
}

bool nt_detect_link_holds(const struct nt_culprit_link *link, uint32_t from, uint32_t to)
{
	if (link->kind == NT_CULPRIT_NIC)
		return from == link->node || to == link->node;
	return link->kind == NT_CULPRIT_PATH && ((from == link->node && to == link->peer) ||
						 (from == link->peer && to == link->node));
}

double nt_cell_cost(const struct nt_cell *cell, double step_ns)
{
	const double more = cell->value - cell->past.value_centre;
	const double cost = more * cell->bytes * cell->calls / fmax(1.0, step_ns);

	return isfinite(cost) ? nt_stats_clip(cost, -1.0, 1.0) : 0.0;
}

void nt_matrix_clear(struct nt_matrix *matrix, const struct nt_culprit_link *link)
{
	for (uint32_t i = 0; i < matrix->cells; i++)
		if (nt_detect_link_holds(link, matrix->cell[i].from, matrix->cell[i].to))
			nt_cusum_clear(&matrix->cell[i].level);
}
