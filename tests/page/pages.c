/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes the pages that tests/page/check.py opens: attacked.html, large.html and worst.html. */
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

int main(int argc, char **argv)
{
	if (argc != 2) {
		(void)fprintf(stderr, "usage: pages DIR\n");
		return 2;
	}
	return save(argv[1], "attacked.html", scene_attacked) < 0 ||
	       save(argv[1], "large.html", scene_large) < 0 ||
	       save(argv[1], "long.html", scene_long) < 0 ||
	       save(argv[1], "worst.html", scene_worst) < 0;
}
