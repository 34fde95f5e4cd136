/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Locates the slow row, column or cell. */
#include "detect/baseline/matrix_name.h"

#include <math.h>

#include "detect/math/stats.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

/*
 * Whether the cell is unusable: no recent value, or sends so short that they only measure a copy to
 * a buffer.
 */
static bool is_stale(const struct nt_detect *detect, const struct nt_cell *cell)
{
	const double usual = cell->past.value_centre;

	return !cell->past.ready || cell->frame + NT_INCIDENT_PATIENCE < detect->frames ||
	       usual < NT_MATRIX_FASTEST ||
	       usual * cell->bytes * cell->calls < NT_MATRIX_PART * detect->step.step_ns;
}

static bool is_slow(const struct nt_detect *detect, const struct nt_cell *cell)
{
	return !is_stale(detect, cell) && cell->level.sum >= detect->threshold;
}

const struct nt_cell *nt_matrix_slowest(const struct nt_detect *detect, double *ret_cost)
{
	const struct nt_matrix *matrix = &detect->links.matrix;
	const struct nt_cell *slowest = NULL;

	*ret_cost = 0.0;
	for (uint32_t i = 0; i < matrix->cells; i++) {
		const struct nt_cell *cell = &matrix->cell[i];

		if (!is_slow(detect, cell))
			continue;
		/* Summed as sequential, as in a pipeline; overlap is considered by the step. */
		*ret_cost += nt_cusum_cost(&cell->level);
		if ((!slowest || nt_cusum_cost(&cell->level) > nt_cusum_cost(&slowest->level)))
			slowest = cell;
	}
	return slowest;
}

enum heat {
	COOL,
	UNCLEAR,
	HOT,
};

/* `most`: growth of the slowest cell. */
static enum heat heat_of(const struct nt_detect *detect, const struct nt_cell *cell, double most)
{
	const double peer_deviation = nt_cusum_peer_deviation(&cell->level);

	if (cell->level.sum >= NT_MATRIX_SUM * detect->threshold &&
	    peer_deviation >= NT_MATRIX_HOT * most)
		return HOT;
	return cell->level.sum > 0.0 && peer_deviation >= NT_MATRIX_COOL * most ? UNCLEAR : COOL;
}

/* A node's hot and measured cells in one direction. */
struct part {
	uint32_t hot, cool, all;
};

static bool is_all(const struct part *part)
{
	return part->hot && !part->cool && part->hot >= NT_MATRIX_CLEAR * part->all;
}

static double hottest(const struct nt_detect *detect)
{
	const struct nt_matrix *matrix = &detect->links.matrix;
	double most = 0.0;

	for (uint32_t i = 0; i < matrix->cells; i++)
		if (is_slow(detect, &matrix->cell[i]))
			most = fmax(most, nt_cusum_peer_deviation(&matrix->cell[i].level));
	return most;
}

/* All hot cells leave or enter the node, and in each direction all its cells are hot, or none. */
static bool explains_all(const struct nt_detect *detect, uint32_t node, double most)
{
	const struct nt_matrix *matrix = &detect->links.matrix;
	struct part row = {0}, column = {0};

	for (uint32_t i = 0; i < matrix->cells; i++) {
		const struct nt_cell *cell = &matrix->cell[i];
		struct part *part = cell->from == node ? &row : cell->to == node ? &column : NULL;
		enum heat heat;

		if (is_stale(detect, cell))
			continue;
		heat = heat_of(detect, cell, most);
		if (!part && heat == HOT)
			return false;
		if (!part)
			continue;
		part->all++;
		part->hot += heat == HOT;
		part->cool += heat == COOL;
	}
	return (is_all(&row) || !row.hot) && (is_all(&column) || !column.hot) &&
	       row.hot + column.hot > 0;
}

/* Whether the node has transfers with nodes other than `but`. */
static bool has_others(const struct nt_detect *detect, uint32_t node, uint32_t but)
{
	const struct nt_matrix *matrix = &detect->links.matrix;

	for (uint32_t i = 0; i < matrix->cells; i++) {
		const struct nt_cell *cell = &matrix->cell[i];

		if (is_stale(detect, cell))
			continue;
		if ((cell->from == node && cell->to != but) ||
		    (cell->to == node && cell->from != but))
			return true;
	}
	return false;
}

bool nt_matrix_name(const struct nt_detect *detect, struct nt_culprit_link *ret_link)
{
	const struct nt_matrix *matrix = &detect->links.matrix;
	const double most = hottest(detect);
	const struct nt_cell *first = NULL;
	uint32_t names = 0;
	bool one_pair = true;

	for (uint32_t i = 0; i < matrix->cells && most > 0.0; i++) {
		const struct nt_cell *cell = &matrix->cell[i];

		if (is_stale(detect, cell) || heat_of(detect, cell, most) != HOT)
			continue;
		if (!first)
			first = cell;
		one_pair = one_pair && ((cell->from == first->from && cell->to == first->to) ||
					(cell->from == first->to && cell->to == first->from));
	}
	if (!first)
		return false;
	if (one_pair) {
		*ret_link = (struct nt_culprit_link){
			.kind = NT_CULPRIT_PATH,
			.node = first->from,
			.peer = first->to,
			.is_one_end = !has_others(detect, first->from, first->to) ||
				      !has_others(detect, first->to, first->from),
		};
		return true;
	}
	/* The culprit must be an end of the first cell. */
	for (int i = 0; i < 2; i++) {
		const uint32_t node = i ? first->to : first->from;

		if (!explains_all(detect, node, most))
			continue;
		*ret_link = (struct nt_culprit_link){.kind = NT_CULPRIT_NIC, .node = node};
		names++;
	}
	return names == 1;
}

bool nt_matrix_mean(const struct nt_detect *detect, const struct nt_culprit_link *link, bool leaves,
		    double *ret_now_ms, double *ret_before_ms, uint32_t *ret_windows)
{
	const struct nt_matrix *matrix = &detect->links.matrix;
	const double most = hottest(detect);
	double now = 0.0, before = 0.0;
	uint32_t n = 0, windows = 0;

	for (uint32_t i = 0; i < matrix->cells && most > 0.0; i++) {
		const struct nt_cell *cell = &matrix->cell[i];

		if (!nt_detect_link_holds(link, cell->from, cell->to) ||
		    (cell->from == link->node) != leaves || is_stale(detect, cell) ||
		    heat_of(detect, cell, most) != HOT)
			continue;
		before += cell->past.value_centre * cell->bytes / 1e6;
		now += cell->past.value_centre * (1.0 + nt_cusum_peer_deviation(&cell->level)) *
		       cell->bytes / 1e6;
		windows = cell->level.windows > windows ? cell->level.windows : windows;
		n++;
	}
	if (!n)
		return false;
	*ret_now_ms = nt_stats_clip(now / n, 0.0, (double)NT_MATRIX_LONGEST_NS);
	*ret_before_ms = nt_stats_clip(before / n, 0.0, (double)NT_MATRIX_LONGEST_NS);
	*ret_windows = windows;
	return true;
}

double nt_matrix_cost(const struct nt_detect *detect, const struct nt_culprit_link *link)
{
	const struct nt_matrix *matrix = &detect->links.matrix;
	double most[2] = {0.0, 0.0};
	bool measured = false;

	for (uint32_t i = 0; i < matrix->cells; i++) {
		const struct nt_cell *cell = &matrix->cell[i];
		const bool leaves = cell->from == link->node;

		if (!cell->past.ready || cell->frame != detect->frames ||
		    !nt_detect_link_holds(link, cell->from, cell->to))
			continue;
		measured = true;
		most[leaves] = fmax(most[leaves], nt_cell_cost(cell, detect->step.step_ns));
	}
	return measured ? most[0] + most[1] : -1.0;
}
