/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Learns the cells of the delay matrix. */
#include "detect/baseline/matrix_learn.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/search.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

/* ---- places ---------------------------------------------------------------------------------- */

/* A rank's position in a communicator. */
struct place {
	uint64_t comm;
	uint32_t place;
	const struct nt_frame_rank *rank;
};

/* One side's report of the transfers from one rank to another. */
struct side {
	uint32_t from_node, to_node, from, to; /* nodes and ranks */
	uint64_t comm;
	bool sends; /* reported by the sender */
	bool in_network; /* not waiting for the other side */
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
	if (x->in_network != y->in_network)
		return x->in_network < y->in_network ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

static size_t list_places(const struct nt_frame *frame, struct place *place)
{
	size_t n = 0;

	for (size_t i = 0; i < frame->ranks; i++) {
		const struct nt_frame_rank *rank = &frame->rank[i];

		for (size_t j = 0; rank->observed && j < rank->comms; j++) {
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

/* NULL if there is no report, or two ranks claim the position. */
static const struct nt_frame_rank *find_place(const struct place *place, size_t n, uint64_t comm,
					      uint32_t number)
{
	const size_t low = nt_search_first(
		0, n, i,
		place[i].comm > comm || (place[i].comm == comm && place[i].place >= number));

	if (low == n || place[low].comm != comm || place[low].place != number)
		return NULL;
	if (low + 1 < n && place[low + 1].comm == comm && place[low + 1].place == number)
		return NULL;
	return place[low].rank;
}

static bool is_starved(const struct nt_frame_rank *rank)
{
	/* Transfers are counted per thread, and so over the whole window. */
	const uint64_t window_ns = rank->window_ns ? rank->window_ns : rank->step_ns;

	return (double)rank->run_queue_ns > NT_MATRIX_STARVED * (double)window_ns;
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
		.in_network = transfer->in_network,
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

			if ((double)transfer->min_ns > (double)NT_MATRIX_LONGEST_NS) {
				detect->implausible++;
				continue;
			}
			n += peer && make_side(rank, peer, transfer, &side[n]);
		}
	}
	qsort(side, n, sizeof(*side), compare_side);
	return n;
}

/* ---- cells ----------------------------------------------------------------------------------- */

static int find_cell(struct nt_matrix *matrix, uint32_t from, uint32_t to,
		     struct nt_cell **ret_cell)
{
	const uint32_t low =
		nt_search_first(0, matrix->cells, i,
				matrix->cell[i].from > from ||
					(matrix->cell[i].from == from && matrix->cell[i].to >= to));
	int r;

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

static void judge(struct nt_detect *detect, struct nt_cell *cell)
{
	struct nt_past *past = &cell->past;
	struct nt_cusum_window window = {.start_ns = detect->start_ns,
					 .frame = detect->frames,
					 .ceiling = NT_CUSUM_CEILING * detect->threshold};

	if (!past->ready) {
		const uint64_t stepped = nt_past_learn_first(past, &cell->lesson, cell->bytes,
							     cell->value, detect->frames);

		if (!stepped)
			return;
		window.start_ns = nt_detect_began_ns(detect, stepped);
		window.frame = stepped;
	}
	window.peer_deviation =
		(cell->value - past->value_centre) / fmax(NT_MATRIX_VALUE, past->value_centre);
	window.z = window.peer_deviation / fmax(NT_TRANSFER_WIDTH, past->value_width);
	window.cost = nt_cell_cost(cell, detect->step.step_ns);
	nt_cusum_add(&cell->level, &detect->rules, &window);
}

/*
 * The value of a cell is the minimum over pairs of ranks, which other faults cannot reduce. The
 * value of a pair is the shorter of both sides' shortest calls. One side alone is not enough if it
 * waits for the other, which may be late each time.
 */
static bool value_of(const struct side *side, size_t n, struct nt_cell *cell)
{
	double best = INFINITY;
	bool in_network = false;

	for (size_t i = 0; i < n; i++)
		in_network = in_network || side[i].in_network;

	for (size_t i = 0, end; i < n; i = end) {
		const struct side *received = NULL, *sent = NULL;
		double ns;

		for (end = i; end < n && side[end].from == side[i].from &&
			      side[end].to == side[i].to && side[end].comm == side[i].comm;
		     end++) {
			if (side[end].in_network != in_network)
				continue;
			if (side[end].sends && !sent)
				sent = &side[end];
			if (!side[end].sends && !received)
				received = &side[end];
		}
		if (in_network)
			received = sent;
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
	cell->in_network = in_network;
	return isfinite(best);
}

/* True if the value is of the kind of those before it; the first one in the network alone begins anew. */
static bool is_of_kind(struct nt_cell *cell, const struct nt_cell *value)
{
	if (value->in_network && !cell->in_network)
		*cell = (struct nt_cell){.from = cell->from, .to = cell->to, .in_network = true};
	return cell->in_network == value->in_network;
}

static int learn_sides(struct nt_detect *detect, const struct side *side, size_t n)
{
	for (size_t i = 0, end; i < n; i = end) {
		struct nt_cell side_value = {0}, *cell;
		int r;

		for (end = i; end < n && side[end].from_node == side[i].from_node &&
			      side[end].to_node == side[i].to_node;)
			end++;
		if (!value_of(&side[i], end - i, &side_value))
			continue;
		r = find_cell(&detect->links.matrix, side[i].from_node, side[i].to_node, &cell);
		if (r < 0)
			return r;
		if (!cell || !is_of_kind(cell, &side_value))
			continue;
		cell->value = side_value.value;
		cell->bytes = side_value.bytes;
		cell->calls = side_value.calls;
		cell->frame = detect->frames;
		judge(detect, cell);
	}
	return 0;
}

int nt_matrix_learn(struct nt_detect *detect, const struct nt_frame *frame, size_t transfers)
{
	struct place *place = NULL;
	struct side *side = NULL;
	size_t places;
	int r = -ENOMEM;

	places = list_places(frame, NULL);
	place = calloc(places + 1, sizeof(*place));
	side = calloc(transfers, sizeof(*side));
	if (place && side) {
		(void)list_places(frame, place);
		r = learn_sides(detect, side, list_sides(detect, frame, place, places, side));
	}
	free(place);
	free(side);
	return r;
}
