/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/page/page_asset.h"

#include <string.h>

#define EMBED(symbol, path)                                                                        \
	__asm__(".pushsection .rodata\n" #symbol ":\n"                                             \
		".incbin \"" path "\"\n" #symbol "_end:\n"                                         \
		".byte 0\n"                                                                        \
		".popsection\n");                                                                  \
	extern const char symbol[], symbol##_end[]

EMBED(nt_page_html, "aggregator/page/page.html");
EMBED(nt_page_common_css, "common/page/page.css");
EMBED(nt_page_live_css, "aggregator/page/live.css");
EMBED(nt_page_main_js, "aggregator/page/main.js");
EMBED(nt_page_dom_js, "aggregator/page/dom.js");
EMBED(nt_page_client_js, "aggregator/page/client.js");
EMBED(nt_page_overview_js, "aggregator/page/overview.js");
EMBED(nt_page_incident_js, "aggregator/page/incident.js");
EMBED(nt_page_handling_js, "aggregator/page/handling.js");
EMBED(nt_page_job_js, "aggregator/page/job.js");
EMBED(nt_page_map_js, "aggregator/page/map.js");
EMBED(nt_page_rows_js, "aggregator/page/rows.js");
EMBED(nt_page_matrix_js, "aggregator/page/matrix.js");

static const char html[] = "text/html; charset=utf-8";
static const char css[] = "text/css; charset=utf-8";
static const char script[] = "text/javascript; charset=utf-8";

/* The end of a file is an address that only the linker knows. */
struct embedded_file {
	const char *name, *content_type, *data, *end;
};

static const struct embedded_file files[] = {
	{"", html, nt_page_html, nt_page_html_end},
	{"page.css", css, nt_page_common_css, nt_page_common_css_end},
	{"live.css", css, nt_page_live_css, nt_page_live_css_end},
	{"main.js", script, nt_page_main_js, nt_page_main_js_end},
	{"dom.js", script, nt_page_dom_js, nt_page_dom_js_end},
	{"client.js", script, nt_page_client_js, nt_page_client_js_end},
	{"overview.js", script, nt_page_overview_js, nt_page_overview_js_end},
	{"incident.js", script, nt_page_incident_js, nt_page_incident_js_end},
	{"handling.js", script, nt_page_handling_js, nt_page_handling_js_end},
	{"job.js", script, nt_page_job_js, nt_page_job_js_end},
	{"map.js", script, nt_page_map_js, nt_page_map_js_end},
	{"rows.js", script, nt_page_rows_js, nt_page_rows_js_end},
	{"matrix.js", script, nt_page_matrix_js, nt_page_matrix_js_end},
};

bool nt_page_asset_find(const char *name, struct nt_page_asset *ret_asset)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (strcmp(files[i].name, name) != 0)
			continue;
		*ret_asset = (struct nt_page_asset){
			.content_type = files[i].content_type,
			.data = files[i].data,
			.bytes = (size_t)(files[i].end - files[i].data),
		};
		return true;
	}
	return false;
}
