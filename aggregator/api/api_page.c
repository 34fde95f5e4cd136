/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The web page and its files. They hold no data, so they need no token. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/api_impl.h"
#include "aggregator/page/page_asset.h"
#include "common/base/hash.h"

static int reply_asset(const struct nt_page_asset *asset, struct nt_httpd_reply *reply)
{
	(void)snprintf(reply->etag, sizeof(reply->etag), "p%016" PRIx64,
		       nt_hash_bytes(NT_HASH_SEED, asset->data, asset->bytes));
	reply->content_type = asset->content_type;
	return nt_buf_append(&reply->body, asset->data, asset->bytes);
}

int nt_api_page(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	struct nt_page_asset asset;

	(void)data;
	(void)request;
	return nt_page_asset_find("", &asset) ? reply_asset(&asset, reply) : -ENOENT;
}

int nt_api_page_asset(void *data, const struct nt_httpd_request *request,
		      struct nt_httpd_reply *reply)
{
	const char *name = nt_httpd_segment(request, 0);
	struct nt_page_asset asset;

	(void)data;
	if (!*name || !nt_page_asset_find(name, &asset))
		return nt_httpd_problem(reply, request, 404, "no_such_file",
					"the page has no file of this name");
	return reply_asset(&asset, reply);
}
