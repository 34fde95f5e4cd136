/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes the pages that tests/page/check.py opens, but for those of recorded files. */
#include "tests/page/node_scene.h"
#include "tests/page/scene.h"

static int save(const char *dir, const char *name, void (*make)(struct scene *scene))
{
	struct scene scene;
	char path[4096];
	int r;

	make(&scene);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	r = nt_html_save(&scene.report, path);
	if (r < 0)
		(void)fprintf(stderr, "%s: %s\n", path, strerrordesc_np(-r));
	scene_free(&scene);
	return r;
}

static int save_nodes(const char *dir, const char *name, void (*make)(struct node_scene *scene))
{
	struct node_scene scene;
	char path[4096];
	int r;

	make(&scene);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	r = nt_node_page_save(&scene.page, path);
	if (r < 0)
		(void)fprintf(stderr, "%s: %s\n", path, strerrordesc_np(-r));
	node_scene_free(&scene);
	return r;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		(void)fprintf(stderr, "usage: pages DIR\n");
		return 2;
	}
	return save(argv[1], "attacked.html", scene_attacked) < 0 ||
	       save(argv[1], "large.html", scene_large) < 0 ||
	       save(argv[1], "long.html", scene_long) < 0 ||
	       save(argv[1], "worst.html", scene_worst) < 0 ||
	       save_nodes(argv[1], "nodes-attacked.html", node_scene_attacked) < 0 ||
	       save_nodes(argv[1], "nodes-worst.html", node_scene_worst) < 0;
}
