/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Gives recorded frames to detectors, and prints each incident that fired as it was last reported.
 *
 *	play FILE...
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/ablation/frames.h"
#include "detect/detect.h"

/* An incident as it was last reported, as a line of text. */
struct line {
	uint64_t id, seen_ns;
	bool fired;
	char text[512];
};

struct player {
	struct nt_detect *detect;
	uint64_t start_ns;
	struct line *line;
	size_t lines;
};

static double since(const struct player *player, uint64_t ns)
{
	return ns > player->start_ns ? (double)(ns - player->start_ns) / 1e9 : 0.0;
}

static void add_culprit(const struct nt_finding_culprit *culprit, char *text, size_t size)
{
	const size_t n = strlen(text);
	const char *kind = nt_culprit_kind_name(culprit->kind);

	if (culprit->kind == NT_CULPRIT_RANK)
		(void)snprintf(text + n, size - n, ",%s-%u", kind, culprit->rank);
	else if (culprit->kind == NT_CULPRIT_PATH)
		(void)snprintf(text + n, size - n, ",%s-%u-%u", kind, culprit->node,
			       culprit->peer_node);
	else if (culprit->kind == NT_CULPRIT_COMMUNICATOR)
		(void)snprintf(text + n, size - n, ",%s-%llx", kind,
			       (unsigned long long)culprit->comm);
	else if (culprit->kind == NT_CULPRIT_STAGE)
		(void)snprintf(text + n, size - n, ",%s-of-%zu", kind, culprit->rank_count);
	else
		(void)snprintf(text + n, size - n, ",%s-%u", kind, culprit->node);
}

static int take(struct player *player, const struct nt_finding *finding)
{
	char culprits[256] = "";
	struct line *line;
	size_t at = 0;

	while (at < player->lines && player->line[at].id != finding->id)
		at++;
	if (at == player->lines) {
		line = realloc(player->line, (at + 1) * sizeof(*line));
		if (!line)
			return -ENOMEM;
		player->line = line;
		player->line[player->lines++] = (struct line){.id = finding->id};
	}
	line = &player->line[at];
	line->fired = finding->fired;
	for (size_t i = 0; i < finding->culprits; i++)
		add_culprit(&finding->culprit[i], culprits, sizeof(culprits));
	(void)snprintf(line->text, sizeof(line->text),
		       "%s %s %s [%s] seen %.1f since %.1f until %.1f x%.3f %.5f h %s",
		       nt_severity_name(finding->severity), nt_class_name(finding->class),
		       nt_incident_state_name(finding->state), *culprits ? culprits + 1 : "",
		       since(player, finding->seen_ns), since(player, finding->since_ns),
		       since(player, finding->until_ns), finding->slowdown, finding->gpu_hours,
		       finding->cause ? finding->cause : "-");
	return 0;
}

static void print(struct player *player)
{
	for (size_t i = 0; i < player->lines; i++)
		if (player->line[i].fired)
			(void)printf("%s\n", player->line[i].text);
	nt_detect_free(player->detect);
	free(player->line);
	*player = (struct player){0};
}

static int begin(struct player *player, const struct ab_record *record)
{
	struct nt_rules rules = nt_rules_default();

	if (!record->is_young)
		rules.young_ns = 0;
	return nt_detect_new(&rules, record->job_hash, record->attempt, &player->detect);
}

static int step(struct player *player, const struct nt_frame *frame)
{
	const struct nt_finding *finding;
	size_t findings;
	int r = nt_detect_step(player->detect, frame, &finding, &findings);

	if (!player->start_ns)
		player->start_ns = frame->start_ns;
	if (r == -EINVAL)
		return 0;
	for (size_t i = 0; i < findings && r == 0; i++)
		r = take(player, &finding[i]);
	return r;
}

/* All detectors of a file: those that run at a time are in a list. */
static int play(const char *path)
{
	struct player *player = NULL;
	struct ab_frame frame = {0};
	struct ab_record record;
	uint32_t players = 0;
	FILE *file = fopen(path, "re");
	int r = file ? 0 : -errno;

	while (r == 0 && fread(&record, sizeof(record), 1, file) == 1) {
		if (record.is_first) {
			struct player *more = realloc(player, (players + 1) * sizeof(*more));

			if (!more) {
				r = -ENOMEM;
				break;
			}
			player = more;
			player[players++] = (struct player){0};
			r = begin(&player[record.detector], &record);
			continue;
		}
		r = ab_frame_read(file, &frame);
		if (r == 0)
			r = step(&player[record.detector], &frame.frame);
		ab_frame_clear(&frame);
	}
	free(frame.part);
	if (file)
		(void)fclose(file);
	for (uint32_t i = 0; i < players; i++) {
		(void)printf("= %s %u\n", path, i);
		print(&player[i]);
	}
	free(player);
	return r;
}

int main(int argc, char **argv)
{
	int r = 0;

	for (int i = 1; i < argc && r == 0; i++) {
		r = play(argv[i]);
		if (r < 0)
			(void)fprintf(stderr, "play: %s: %s\n", argv[i], strerrordesc_np(-r));
	}
	return r < 0;
}
