/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A flame graph as one page. Nodes are nested elements whose shares the script turns into widths.
 * Untrusted names are inserted as text only. The policy of the page forbids all other scripts and loads.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/profile/flame.h"
#include "cli/report/markup.h"

enum {
	NAME_TEXT = 256,
	DESCRIPTION_TEXT = 1024,
	LEAST_SHARE = 4000, /* narrower nodes than the total by this are counted only */
};

/* Style and script are embedded in the program. */
__asm__(".pushsection .rodata\n"
	"nt_flame_css:\n"
	".incbin \"cli/profile/flame.css\"\n"
	"0:\n"
	"nt_flame_js:\n"
	".incbin \"cli/profile/flame.js\"\n"
	"1:\n"
	".balign 8\n"
	"nt_flame_css_bytes:\n"
	".8byte 0b - nt_flame_css\n"
	"nt_flame_js_bytes:\n"
	".8byte 1b - nt_flame_js\n"
	".popsection\n");
extern const char nt_flame_css[], nt_flame_js[];
extern const uint64_t nt_flame_css_bytes, nt_flame_js_bytes;

static void put_page_description(struct nt_markup *out, const struct nt_flame *flame)
{
	nt_autobuf struct nt_buf text = {0};
	const int r = nt_flame_describe(flame, &text);

	if (r == 0)
		nt_markup_text(out, (const char *)text.data, DESCRIPTION_TEXT);
	out->error = out->error ?: r;
}

static void put_flame_head(struct nt_markup *out, const struct nt_flame *flame)
{
	nt_markup_put(out,
		      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		      "img-src data:; base-uri 'none'; form-action 'none'; style-src ");
	nt_markup_policy_hash(out, nt_flame_css, nt_flame_css_bytes);
	nt_markup_put(out, "; script-src ");
	nt_markup_policy_hash(out, nt_flame_js, nt_flame_js_bytes);
	nt_markup_put(out, "\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"
			   "<meta name=\"referrer\" content=\"no-referrer\">\n"
			   "<meta name=\"color-scheme\" content=\"light dark\">\n"
			   "<link rel=\"icon\" href=\"data:,\">\n<title>NeuTracer: ");
	nt_markup_text(out, flame->job, NAME_TEXT);
	nt_markup_put(out, ", rank %" PRIu32 "</title>\n<style>", flame->rank);
	nt_markup_bytes(out, nt_flame_css, nt_flame_css_bytes);
	nt_markup_put(out, "</style>\n</head>\n<body>\n<header>\n<h1>");
	nt_markup_text(out, flame->job, NAME_TEXT);
	nt_markup_put(out, ", rank %" PRIu32 "</h1>\n<p class=\"%s\">", flame->rank,
		      flame->missed || flame->lost || flame->torn || flame->empty ? "notes"
										  : "soft");
	put_page_description(out, flame);
	if (*flame->interpreter)
		nt_markup_put(out, "; ");
	nt_markup_text(out, flame->interpreter, NAME_TEXT);
	nt_markup_put(out, ".</p>\n");
	nt_markup_put(out,
		      "<p id=\"tools\"><label>Search <input id=\"search\" type=\"search\"></label> "
		      "<button id=\"reset\" type=\"button\">Reset zoom</button> "
		      "<output id=\"found\"></output></p>\n</header>\n<main id=\"flame\">\n");
}

/* ---- the nodes ------------------------------------------------------------------------------- */

/* At level 0 a node is a thread in one state, below that a frame. */
static bool is_same_at(const struct nt_flame_stack *a, const struct nt_flame_stack *b, size_t level)
{
	if (level == 0)
		return a->on_cpu == b->on_cpu && strcmp(a->thread, b->thread) == 0;
	return a->frames >= level && b->frames >= level &&
	       a->frame[level - 1] == b->frame[level - 1];
}

/* Levels that both stacks share, from the outermost on. */
static size_t shared_levels(const struct nt_flame_stack *a, const struct nt_flame_stack *b)
{
	size_t level = 0;

	while (level <= a->frames && level <= b->frames && is_same_at(a, b, level))
		level++;
	return level;
}

/* Samples of the stacks from `index` on that share its node. */
static uint64_t weight_at(const struct nt_flame *flame, size_t index, size_t level)
{
	uint64_t weight = 0;

	for (size_t i = index; i < flame->stacks; i++) {
		if (shared_levels(&flame->stack[index], &flame->stack[i]) <= level)
			break;
		weight += flame->stack[i].count;
	}
	return weight;
}

static void put_label(struct nt_markup *out, const struct nt_flame *flame,
		      const struct nt_flame_stack *stack, size_t level)
{
	const struct nt_flame_frame *frame;

	if (level == 0) {
		nt_markup_text(out, *stack->thread ? stack->thread : "?", NAME_TEXT);
		nt_markup_put(out, stack->on_cpu ? " [on-cpu]" : " [off-cpu]");
		return;
	}
	frame = &flame->frame[stack->frame[level - 1]];
	nt_markup_text(out, *frame->function ? frame->function : "?", NAME_TEXT);
	if (!*frame->file)
		return;
	nt_markup_put(out, " (");
	nt_markup_text(out, frame->file, NAME_TEXT);
	nt_markup_put(out, ")");
}

static const char *class_of(const struct nt_flame *flame, const struct nt_flame_stack *stack,
			    size_t level)
{
	if (level == 0)
		return stack->on_cpu ? "on" : "off";
	return flame->frame[stack->frame[level - 1]].native ? "native" : "python";
}

static void open_node(struct nt_markup *out, const struct nt_flame *flame, size_t index,
		      size_t level, uint64_t weight)
{
	const struct nt_flame_stack *stack = &flame->stack[index];

	nt_markup_put(out,
		      "<div class=\"node\" data-n=\"%" PRIu64
		      "\"><button type=\"button\" class=\"%s\">",
		      weight, class_of(flame, stack, level));
	put_label(out, flame, stack, level);
	nt_markup_put(out, "</button><div class=\"kids\">");
}

/* Stacks are sorted, so that those of one node follow each other. */
static void put_nodes(struct nt_markup *out, const struct nt_flame *flame)
{
	const uint64_t least = flame->samples / LEAST_SHARE;
	size_t opened = 0; /* levels of the stack before that are open */
	uint64_t narrow = 0;

	for (size_t i = 0; i < flame->stacks; i++) {
		const struct nt_flame_stack *stack = &flame->stack[i];
		const size_t shared = i ? shared_levels(&flame->stack[i - 1], stack) : 0;

		for (; opened > shared; opened--)
			nt_markup_put(out, "</div></div>\n");
		/* What is inside of a node that is too narrow is narrower. */
		for (size_t level = opened; level <= stack->frames; level++) {
			const uint64_t weight = opened < shared ? 0 : weight_at(flame, i, level);

			if (weight <= least) {
				narrow += stack->count;
				break;
			}
			open_node(out, flame, i, level, weight);
			opened = level + 1;
		}
	}
	for (; opened > 0; opened--)
		nt_markup_put(out, "</div></div>\n");
	if (narrow)
		nt_markup_put(out,
			      "<p class=\"soft\">%" PRIu64 " samples are in frames that are "
			      "too narrow to show.</p>\n",
			      narrow);
}

int nt_flame_html(const struct nt_flame *flame, struct nt_buf *buf)
{
	struct nt_markup out = {.buf = buf};

	put_flame_head(&out, flame);
	if (flame->samples)
		put_nodes(&out, flame);
	else
		nt_markup_put(&out, "<p>There are no samples.</p>\n");
	nt_markup_put(&out, "</main>\n<script>");
	nt_markup_bytes(&out, nt_flame_js, nt_flame_js_bytes);
	nt_markup_put(&out, "</script>\n</body>\n</html>\n");
	return out.error;
}
