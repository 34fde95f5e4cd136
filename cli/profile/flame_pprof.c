/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The format of pprof: a gzipped protocol buffer, of perftools.profiles.Profile. */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "cli/profile/flame.h"
#include "common/system/clock.h"

enum {
	GZIP_WINDOW = 15 + 16, /* the largest, with a header of gzip */
	MEMORY_LEVEL = 8,
	OUT_BYTES = 16 << 10,
	WIRE_BYTES = 2,
	WIRE_SHIFT = 3,
	VARINT_BITS = 7,
	VARINT_MORE = 0x80,
};

/* Numbers of the fields. */
enum pprof_profile {
	PPROF_SAMPLE_TYPE = 1,
	PPROF_SAMPLE = 2,
	PPROF_LOCATION = 4,
	PPROF_FUNCTION = 5,
	PPROF_STRING = 6,
	PPROF_TIME = 9,
	PPROF_DURATION = 10,
	PPROF_PERIOD_TYPE = 11,
	PPROF_PERIOD = 12,
	PPROF_COMMENT = 13,
};

/* The first strings; those of functions and files follow, two of each frame, those of threads, the comment. */
enum pprof_string {
	STRING_EMPTY,
	STRING_SAMPLES,
	STRING_COUNT,
	STRING_WALL,
	STRING_NANOSECONDS,
	STRING_THREAD,
	STRING_STATE,
	STRING_ON_CPU,
	STRING_OFF_CPU,
	STRING_FIRST,
};

/* The first error stays. */
struct pprof {
	struct nt_buf *buf;
	int error;
};

static void put_varint(struct pprof *out, uint64_t value)
{
	uint8_t bytes[10];
	size_t n = 0;

	for (; value >= VARINT_MORE; value >>= VARINT_BITS)
		bytes[n++] = (uint8_t)(value | VARINT_MORE);
	bytes[n++] = (uint8_t)value;
	if (!out->error)
		out->error = nt_buf_append(out->buf, bytes, n);
}

static void put_number(struct pprof *out, uint32_t field, uint64_t value)
{
	put_varint(out, field << WIRE_SHIFT);
	put_varint(out, value);
}

static void put_block(struct pprof *out, uint32_t field, const void *data, size_t len)
{
	put_varint(out, field << WIRE_SHIFT | WIRE_BYTES);
	put_varint(out, len);
	if (!out->error)
		out->error = nt_buf_append(out->buf, data, len);
}

/* A nested message of up to three numbers in fields 1 to 3; 0: absent. */
static void put_numbers(struct pprof *out, uint32_t field, const uint64_t number[3])
{
	nt_autobuf struct nt_buf buf = {0};
	struct pprof nested = {.buf = &buf};

	for (uint32_t i = 0; i < 3; i++)
		if (number[i])
			put_number(&nested, i + 1, number[i]);
	out->error = out->error ?: nested.error;
	put_block(out, field, buf.data, buf.len);
}

static uint64_t period_ns(const struct nt_flame *flame)
{
	return NT_SECOND / flame->hz;
}

static void put_pprof_sample(struct pprof *out, const struct nt_flame *flame, size_t index)
{
	const struct nt_flame_stack *stack = &flame->stack[index];
	const uint64_t thread[3] = {STRING_THREAD, STRING_FIRST + 2 * flame->frames + index};
	const uint64_t state[3] = {STRING_STATE, stack->on_cpu ? STRING_ON_CPU : STRING_OFF_CPU};
	nt_autobuf struct nt_buf buf = {0};
	struct pprof nested = {.buf = &buf};

	for (size_t i = stack->frames; i > 0; i--) /* innermost first */
		put_number(&nested, 1, stack->frame[i - 1] + 1);
	put_number(&nested, 2, stack->count);
	put_number(&nested, 2, stack->count * period_ns(flame));
	put_numbers(&nested, 3, thread);
	put_numbers(&nested, 3, state);
	out->error = out->error ?: nested.error;
	put_block(out, PPROF_SAMPLE, buf.data, buf.len);
}

/* One location and one function for each frame, with the same number. */
static void put_pprof_frame(struct pprof *out, size_t index)
{
	const uint64_t id = index + 1, line[3] = {id};
	nt_autobuf struct nt_buf location = {0}, function = {0};
	struct pprof place = {.buf = &location}, named = {.buf = &function};

	put_number(&place, 1, id);
	put_numbers(&place, 4, line);
	put_number(&named, 1, id);
	put_number(&named, 2, STRING_FIRST + 2 * index);
	put_number(&named, 3, STRING_FIRST + 2 * index);
	put_number(&named, 4, STRING_FIRST + 2 * index + 1);
	out->error = out->error ?: place.error ?: named.error;
	put_block(out, PPROF_LOCATION, location.data, location.len);
	put_block(out, PPROF_FUNCTION, function.data, function.len);
}

static void put_string(struct pprof *out, const char *text)
{
	put_block(out, PPROF_STRING, text, strlen(text));
}

static void put_comment(struct pprof *out, const struct nt_flame *flame)
{
	nt_autobuf struct nt_buf text = {0};
	const int r = nt_flame_describe(flame, &text);

	out->error = out->error ?: r;
	put_block(out, PPROF_STRING, text.data, text.len);
}

static void put_strings(struct pprof *out, const struct nt_flame *flame)
{
	static const char *const first[STRING_FIRST] = {"",      "samples",     "count",
							"wall",  "nanoseconds", "thread",
							"state", "on-cpu",      "off-cpu"};

	for (size_t i = 0; i < STRING_FIRST; i++)
		put_string(out, first[i]);
	for (size_t i = 0; i < flame->frames; i++) {
		put_string(out, *flame->frame[i].function ? flame->frame[i].function : "?");
		put_string(out, flame->frame[i].file);
	}
	for (size_t i = 0; i < flame->stacks; i++)
		put_string(out, flame->stack[i].thread);
	put_comment(out, flame);
}

static int put_profile(const struct nt_flame *flame, struct nt_buf *buf)
{
	static const uint64_t samples[3] = {STRING_SAMPLES, STRING_COUNT};
	static const uint64_t wall[3] = {STRING_WALL, STRING_NANOSECONDS};
	struct pprof out = {.buf = buf};

	put_numbers(&out, PPROF_SAMPLE_TYPE, samples);
	put_numbers(&out, PPROF_SAMPLE_TYPE, wall);
	for (size_t i = 0; i < flame->stacks; i++)
		put_pprof_sample(&out, flame, i);
	for (size_t i = 0; i < flame->frames; i++)
		put_pprof_frame(&out, i);
	put_strings(&out, flame);
	put_number(&out, PPROF_TIME, flame->begin_real_ns);
	put_number(&out, PPROF_DURATION,
		   flame->duration_s > 0 && flame->duration_s < 1e6
			   ? (uint64_t)(flame->duration_s * 1e9)
			   : 0);
	put_numbers(&out, PPROF_PERIOD_TYPE, wall);
	put_number(&out, PPROF_PERIOD, period_ns(flame));
	put_number(&out, PPROF_COMMENT, STRING_FIRST + 2 * flame->frames + flame->stacks);
	return out.error;
}

static int compress_into(z_stream *stream, struct nt_buf *to)
{
	uint8_t out[OUT_BYTES];
	int done;

	do {
		int r;

		stream->next_out = out;
		stream->avail_out = sizeof(out);
		done = deflate(stream, Z_FINISH);
		r = done == Z_STREAM_ERROR
			    ? -EIO
			    : nt_buf_append(to, out, sizeof(out) - stream->avail_out);
		if (r < 0)
			return r;
	} while (done != Z_STREAM_END);
	return 0;
}

int nt_flame_pprof(const struct nt_flame *flame, struct nt_buf *buf)
{
	nt_autobuf struct nt_buf plain = {.max = NT_FLAME_MAX_BYTES};
	z_stream stream = {0};
	int r = put_profile(flame, &plain);

	if (r < 0)
		return r;
	if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	stream.next_in = plain.data;
	stream.avail_in = (uInt)plain.len;
	r = compress_into(&stream, buf);
	(void)deflateEnd(&stream);
	return r;
}
