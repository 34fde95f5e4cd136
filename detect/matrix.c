/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The delay matrix. */
#include "detect/matrix.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "detect/array.h"
#include "detect/core.h"
#include "detect/stats.h"

/* Transfers of a healthy network differ more from window to window than computing does. */
static const double least_width = 0.1;
/* A cell is as slow as the slowest from here on, and as it was before up to there. */
static const double hot_part = 0.5, cool_part = 0.25;
/* Of a row or column so many may be unclear. */
static const double clear_part = 0.75;
/* A thread that waits longer for a processor, in parts of its step, makes all of its calls long. */
static const double starved_part = 0.1;
/* No network is faster, ns a byte, and what takes less of a step than this may as well be copying. */
static const double fastest = 0.005, least_part = 0.0003;
/* No value is less, ns a byte: it is what a value is divided by. */
static const double least_value = 1e-6;
/* No call takes longer: it is a clock that is wrong. */
static const double longest_ns = 1e12;

void nt_matrix_free(struct nt_matrix *matrix)
{
	free(matrix->cell);
	*matrix = (struct nt_matrix){0};
}

bool nt_link_holds(const struct nt_culprit_link *link, uint32_t from, uint32_t to)
{
	if (link->kind == NT_CULPRIT_NIC)
		return from == link->node || to == link->node;
	return link->kind == NT_CULPRIT_PATH && ((from == link->node && to == link->peer) ||
						 (from == link->peer && to == link->node));
}

/* ---- who is who -------------------------------------------------------------------------------- */

/* A rank's place in a communicator in which it sends or receives. */
struct place {
	uint64_t comm;
	uint32_t place;
	const struct nt_frame_rank *rank;
};

/* One side's account of the transfers from one rank to another. */
struct side {
	uint32_t from_node, to_node, from, to; /* nodes and ranks */
	uint64_t comm;
	bool sends; /* the sender's */
	double ns, bytes, calls; /* calls a step */
};

static int compare_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return (x->rank->rank > y->rank->rank) - (x->rank->rank < y->rank->rank);
}

static int compare_side(const void *a, const void *b)
{
	const struct side *x = a, *y = b;

	if (x->from_node != y->from_node)
		return x->from_node < y->from_node ? -1 : 1;
	if (x->to_node != y->to_node)
		return x->to_node < y->to_node ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	if (x->sends != y->sends)
		return x->sends < y->sends ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

static bool sends_in(const struct nt_frame_comm *comm)
{
	for (size_t i = 0; i < comm->ops; i++)
		if (comm->op[i].kind == NT_FRAME_POINT_TO_POINT)
			return true;
	return false;
}

static size_t list_places(const struct nt_frame *frame, struct place *place)
{
	size_t n = 0;

	for (size_t i = 0; i < frame->ranks; i++) {
		const struct nt_frame_rank *rank = &frame->rank[i];

		for (size_t j = 0; rank->observed && j < rank->comms; j++) {
			if (!sends_in(&rank->comm[j]))
				continue;
			if (place)
				place[n] =
					(struct place){rank->comm[j].id, rank->comm[j].rank, rank};
			n++;
		}
	}
	if (place)
		qsort(place, n, sizeof(*place), compare_place);
	return n;
}

/* NULL where it is not heard, or two claim the place. */
static const struct nt_frame_rank *find_place(const struct place *place, size_t n, uint64_t comm,
					      uint32_t number)
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (place[middle].comm < comm ||
		    (place[middle].comm == comm && place[middle].place < number))
			low = middle + 1;
		else
			high = middle;
	}
	if (low == n || place[low].comm != comm || place[low].place != number)
		return NULL;
	if (low + 1 < n && place[low + 1].comm == comm && place[low + 1].place == number)
		return NULL;
	return place[low].rank;
}

static bool is_starved(const struct nt_frame_rank *rank)
{
	/* The thread's, and so of the whole window. */
	const uint64_t window_ns = rank->window_ns ? rank->window_ns : rank->step_ns;

	return (double)rank->run_queue_ns > starved_part * (double)window_ns;
}

static bool make_side(const struct nt_frame_rank *rank, const struct nt_frame_rank *peer,
		      const struct nt_frame_transfer *transfer, struct side *ret_side)
{
	const struct nt_frame_rank *from = transfer->sends ? rank : peer;
	const struct nt_frame_rank *to = transfer->sends ? peer : rank;

	if (from->node == to->node || from->node == NT_FRAME_NO_NODE ||
	    to->node == NT_FRAME_NO_NODE || !rank->steps || !transfer->calls || !transfer->bytes ||
	    !transfer->min_ns || is_starved(rank))
		return false;
	*ret_side = (struct side){
		.from_node = from->node,
		.to_node = to->node,
		.from = from->rank,
		.to = to->rank,
		.comm = transfer->comm,
		.sends = transfer->sends,
		.ns = (double)transfer->min_ns,
		.bytes = (double)transfer->bytes,
		.calls = (double)transfer->calls / rank->steps,
	};
	return true;
}

static size_t list_sides(struct nt_detect *detect, const struct nt_frame *frame,
			 const struct place *place, size_t places, struct side *side)
{
	size_t n = 0;

	for (size_t i = 0; i < frame->ranks; i++) {
		const struct nt_frame_rank *rank = &frame->rank[i];

		for (size_t j = 0; rank->observed && j < rank->transfers; j++) {
			const struct nt_frame_transfer *transfer = &rank->transfer[j];
			const struct nt_frame_rank *peer =
				find_place(place, places, transfer->comm, transfer->peer);

			if ((double)transfer->min_ns > longest_ns) {
				detect->implausible++;
				continue;
			}
			n += peer && make_side(rank, peer, transfer, &side[n]);
		}
	}
	qsort(side, n, sizeof(*side), compare_side);
	return n;
}

/* ---- cells ------------------------------------------------------------------------------------- */

static int find_cell(struct nt_matrix *matrix, uint32_t from, uint32_t to,
		     struct nt_cell **ret_cell)
{
	uint32_t low = 0, high = matrix->cells;
	int r;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		const struct nt_cell *cell = &matrix->cell[middle];

		if (cell->from < from || (cell->from == from && cell->to < to))
			low = middle + 1;
		else
			high = middle;
	}
	*ret_cell = NULL;
	if (low < matrix->cells && matrix->cell[low].from == from && matrix->cell[low].to == to) {
		*ret_cell = &matrix->cell[low];
		return 0;
	}
	if (matrix->cells == NT_MATRIX_CELLS) {
		matrix->dropped++;
		return 0;
	}
	r = nt_array_room((void **)&matrix->cell, &matrix->cell_cap, matrix->cells,
			  sizeof(*matrix->cell));
	if (r < 0)
		return r;
	memmove(&matrix->cell[low + 1], &matrix->cell[low],
		(matrix->cells - low) * sizeof(*matrix->cell));
	matrix->cell[low] = (struct nt_cell){.from = from, .to = to};
	matrix->cells++;
	*ret_cell = &matrix->cell[low];
	return 0;
}

/* What the cell takes longer than it did, in parts of the step of those who use it. */
static double cost_of(const struct nt_detect *detect, const struct nt_cell *cell)
{
	const double more = cell->value - cell->past.value_centre;
	const double cost = more * cell->bytes * cell->calls / fmax(1.0, detect->step.step_ns);

	return isfinite(cost) ? nt_stats_clip(cost, -1.0, 1.0) : 0.0;
}

static void judge(struct nt_detect *detect, struct nt_cell *cell)
{
	struct nt_past *past = &cell->past;
	struct nt_cusum_window window = {.start_ns = detect->start_ns,
					 .frame = detect->frames,
					 .ceiling = 2.0 * detect->threshold};

	if (!past->ready) {
		const uint64_t stepped = nt_past_learn_first(past, &cell->lesson, cell->bytes,
							     cell->value, detect->frames);

		if (!stepped)
			return;
		window.start_ns = nt_detect_began_ns(detect, stepped);
		window.frame = stepped;
	}
	window.kpi = (cell->value - past->value_centre) / fmax(least_value, past->value_centre);
	window.z = window.kpi / fmax(least_width, past->value_width);
	window.cost = cost_of(detect, cell);
	nt_cusum_add(&cell->level, &detect->rules, &window);
}

/*
 * The sides of one cell: for each pair of ranks the shorter of both sides' shortest, and of these the
 * best pair, which none of the others' troubles can have made faster. One side alone tells nothing: the
 * other may be late each time.
 */
static bool value_of(const struct side *side, size_t n, struct nt_cell *cell)
{
	double best = INFINITY;

	for (size_t i = 0, end; i < n; i = end) {
		const struct side *received = NULL, *sent = NULL;
		double ns;

		for (end = i; end < n && side[end].from == side[i].from &&
			      side[end].to == side[i].to && side[end].comm == side[i].comm;
		     end++) {
			if (side[end].sends && !sent)
				sent = &side[end];
			if (!side[end].sends && !received)
				received = &side[end];
		}
		if (!sent || !received)
			continue;
		ns = fmin(sent->ns, received->ns) / sent->bytes;
		if (ns >= best)
			continue;
		best = ns;
		cell->bytes = sent->bytes;
		cell->calls = fmax(sent->calls, received->calls);
	}
	cell->value = best;
	return isfinite(best);
}

static int learn_sides(struct nt_detect *detect, const struct side *side, size_t n)
{
	for (size_t i = 0, end; i < n; i = end) {
		struct nt_cell heard = {0}, *cell;
		int r;

		for (end = i; end < n && side[end].from_node == side[i].from_node &&
			      side[end].to_node == side[i].to_node;)
			end++;
		if (!value_of(&side[i], end - i, &heard))
			continue;
		r = find_cell(&detect->links.matrix, side[i].from_node, side[i].to_node, &cell);
		if (r < 0)
			return r;
		if (!cell)
			continue;
		cell->value = heard.value;
		cell->bytes = heard.bytes;
		cell->calls = heard.calls;
		cell->frame = detect->frames;
		judge(detect, cell);
	}
	return 0;
}

int nt_matrix_learn(struct nt_detect *detect, const struct nt_frame *frame, size_t told)
{
	struct place *place = NULL;
	struct side *side = NULL;
	size_t places;
	int r = -ENOMEM;

	places = list_places(frame, NULL);
	place = calloc(places + 1, sizeof(*place));
	side = calloc(told, sizeof(*side));
	if (place && side) {
		(void)list_places(frame, place);
		r = learn_sides(detect, side, list_sides(detect, frame, place, places, side));
	}
	free(place);
	free(side);
	return r;
}

/* ---- row, column, cell --------------------------------------------------------------------------- */

/*
 * It says nothing: it was not heard for long, or its sends are so short that they were copied and gone
 * before anything was sent.
 */
static bool is_stale(const struct nt_detect *detect, const struct nt_cell *cell)
{
	const double usual = cell->past.value_centre;

	return !cell->past.ready || cell->frame + NT_INCIDENT_PATIENCE < detect->frames ||
	       usual < fastest ||
	       usual * cell->bytes * cell->calls < least_part * detect->step.step_ns;
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
		/* One after the other, as in a pipeline; what overlaps, the step tells. */
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

/* `most` is how much longer the slowest cell takes than before. */
static enum heat heat_of(const struct nt_detect *detect, const struct nt_cell *cell, double most)
{
	const double kpi = nt_cusum_kpi(&cell->level);

	if (cell->level.sum >= 0.5 * detect->threshold && kpi >= hot_part * most)
		return HOT;
	return cell->level.sum > 0.0 && kpi >= cool_part * most ? UNCLEAR : COOL;
}

/* How many of a node's cells, in one direction, are hot, of those that are heard. */
struct part {
	uint32_t hot, cool, all;
};

static bool is_all(const struct part *part)
{
	return part->hot && !part->cool && part->hot >= clear_part * part->all;
}

static double hottest(const struct nt_detect *detect)
{
	const struct nt_matrix *matrix = &detect->links.matrix;
	double most = 0.0;

	for (uint32_t i = 0; i < matrix->cells; i++)
		if (is_slow(detect, &matrix->cell[i]))
			most = fmax(most, nt_cusum_kpi(&matrix->cell[i].level));
	return most;
}

/* All that is hot leaves or enters the node, and of what leaves (enters) it all is hot, or nothing. */
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

/* Whether the node has transfers with others than that one. */
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
	/* Whose it is must touch the first. */
	for (int i = 0; i < 2; i++) {
		const uint32_t node = i ? first->to : first->from;

		if (!explains_all(detect, node, most))
			continue;
		*ret_link = (struct nt_culprit_link){.kind = NT_CULPRIT_NIC, .node = node};
		names++;
	}
	return names == 1;
}

bool nt_matrix_tell(const struct nt_detect *detect, const struct nt_culprit_link *link, bool leaves,
		    double *ret_now_ms, double *ret_before_ms, uint32_t *ret_windows)
{
	const struct nt_matrix *matrix = &detect->links.matrix;
	const double most = hottest(detect);
	double now = 0.0, before = 0.0;
	uint32_t n = 0, windows = 0;

	for (uint32_t i = 0; i < matrix->cells && most > 0.0; i++) {
		const struct nt_cell *cell = &matrix->cell[i];

		if (!nt_link_holds(link, cell->from, cell->to) ||
		    (cell->from == link->node) != leaves || is_stale(detect, cell) ||
		    heat_of(detect, cell, most) != HOT)
			continue;
		before += cell->past.value_centre * cell->bytes / 1e6;
		now += cell->past.value_centre * (1.0 + nt_cusum_kpi(&cell->level)) * cell->bytes /
		       1e6;
		windows = cell->level.windows > windows ? cell->level.windows : windows;
		n++;
	}
	if (!n)
		return false;
	*ret_now_ms = nt_stats_clip(now / n, 0.0, longest_ns);
	*ret_before_ms = nt_stats_clip(before / n, 0.0, longest_ns);
	*ret_windows = windows;
	return true;
}

double nt_matrix_cost(const struct nt_detect *detect, const struct nt_culprit_link *link)
{
	const struct nt_matrix *matrix = &detect->links.matrix;
	double most[2] = {0.0, 0.0};
	bool heard = false;

	for (uint32_t i = 0; i < matrix->cells; i++) {
		const struct nt_cell *cell = &matrix->cell[i];
		const bool leaves = cell->from == link->node;

		if (!cell->past.ready || cell->frame != detect->frames ||
		    !nt_link_holds(link, cell->from, cell->to))
			continue;
		heard = true;
		most[leaves] = fmax(most[leaves], cost_of(detect, cell));
	}
	return heard ? most[0] + most[1] : -1.0;
}

void nt_matrix_clear(struct nt_detect *detect, const struct nt_culprit_link *link)
{
	struct nt_matrix *matrix = &detect->links.matrix;

	for (uint32_t i = 0; i < matrix->cells; i++)
		if (nt_link_holds(link, matrix->cell[i].from, matrix->cell[i].to))
			nt_cusum_clear(&matrix->cell[i].level);
}
