/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/report/page.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/base/version.h"

enum {
	TITLE_TEXT = 512,
};

/* Style and script are embedded in the program. */
__asm__(".pushsection .rodata\n"
	"nt_page_css:\n"
	".incbin \"common/page/page.css\"\n"
	"0:\n"
	"nt_page_js:\n"
	".incbin \"cli/report/page.js\"\n"
	"1:\n"
	".balign 8\n"
	"nt_page_css_bytes:\n"
	".8byte 0b - nt_page_css\n"
	"nt_page_js_bytes:\n"
	".8byte 1b - nt_page_js\n"
	".popsection\n");
extern const char nt_page_css[], nt_page_js[];
extern const uint64_t nt_page_css_bytes, nt_page_js_bytes;

void nt_page_begin(struct nt_markup *out, const char *title, bool has_script)
{
	nt_markup_put(out,
		      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		      "img-src data:; base-uri 'none'; form-action 'none'; style-src ");
	nt_markup_policy_hash(out, nt_page_css, nt_page_css_bytes);
	if (has_script) {
		nt_markup_put(out, "; script-src ");
		nt_markup_policy_hash(out, nt_page_js, nt_page_js_bytes);
	}
	nt_markup_put(out, "\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"
			   "<meta name=\"referrer\" content=\"no-referrer\">\n"
			   "<meta name=\"color-scheme\" content=\"light dark\">\n"
			   "<link rel=\"icon\" href=\"data:,\">\n<title>NeuTracer: ");
	nt_markup_text(out, title, TITLE_TEXT);
	nt_markup_put(out, "</title>\n<style>");
	nt_markup_bytes(out, nt_page_css, nt_page_css_bytes);
	nt_markup_put(out, "</style>\n</head>\n<body>\n");
}

void nt_page_end(struct nt_markup *out, bool has_script)
{
	nt_markup_put(out,
		      "</main>\n<footer class=\"soft\">NeuTracer %s. This page is self-contained "
		      "and makes no network requests.</footer>\n",
		      NT_VERSION);
	if (has_script) {
		nt_markup_put(out, "<script>");
		nt_markup_bytes(out, nt_page_js, nt_page_js_bytes);
		nt_markup_put(out, "</script>\n");
	}
	nt_markup_put(out, "</body>\n</html>\n");
}

int nt_page_save(const struct nt_buf *page, const char *path)
{
	nt_autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	size_t done = 0;

	if (fd < 0)
		return -errno;
	while (done < page->len) {
		const ssize_t n = write(fd, page->data + done, page->len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return close(nt_take_fd(&fd)) < 0 ? -errno : 0;
}
