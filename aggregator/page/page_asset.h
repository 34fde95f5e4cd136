/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The files of the web page, embedded in the program. The page is plain HTML, CSS and modules of
 * JavaScript, served as they are in the tree; all data comes from the REST interface.
 */
#ifndef NT_AGGREGATOR_PAGE_PAGE_ASSET_H
#define NT_AGGREGATOR_PAGE_PAGE_ASSET_H

#include <stdbool.h>
#include <stddef.h>

struct nt_page_asset {
	const char *content_type;
	const char *data;
	size_t bytes;
};

/* The asset of that name; "": the page itself. False: there is none. */
bool nt_page_asset_find(const char *name, struct nt_page_asset *ret_asset);

#endif
