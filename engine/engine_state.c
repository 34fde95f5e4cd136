/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Saves and loads the engine's state of a job: its detector and open incidents. */
#include "engine/engine_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/codec.h"

/* Encoded as a message: incidents may gain fields, and old states must load. */
static int save_open(const struct nt_open_incident *open, struct nt_codec *codec)
{
	const struct nt_message message = {
		.agent = "",
		.key = open->incident.id,
		.body = NT_BODY_INCIDENT,
		.incident = open->incident,
	};
	nt_autobuf struct nt_buf buf = {0};
	int r = nt_message_encode(&message, &buf);

	if (r < 0)
		return r;
	nt_codec_put_u64(codec, open->id);
	nt_codec_put_u32(codec, open->firing);
	nt_codec_put_u32(codec, open->class);
	nt_codec_put_bytes(codec, buf.data, buf.len);
	return codec->error;
}

int nt_engine_save_job(const struct nt_job *job, struct nt_buf *buf)
{
	const struct nt_job_view *view = job->user;
	struct nt_codec codec = {.out = buf};
	nt_autofree uint8_t *data = NULL;
	size_t size;
	int r;

	r = nt_detect_save(job->detect, &data, &size);
	if (r < 0)
		return r;
	nt_codec_put_bytes(&codec, data, size);
	nt_codec_put_u32(&codec, view ? (uint32_t)view->opens : 0);
	for (size_t i = 0; view && i < view->opens; i++) {
		r = save_open(&view->open[i], &codec);
		if (r < 0)
			return r;
	}
	return codec.error;
}

static int load_open(struct nt_job_view *view, struct nt_codec *codec)
{
	nt_auto(nt_message) struct nt_message *message = NULL;
	const uint64_t id = nt_codec_get_u64(codec);
	const bool firing = nt_codec_get_bool(codec);
	const uint32_t class = nt_codec_get_count(codec, NT_CLASS_END - 1);
	struct nt_open_incident *open;
	const void *data;
	size_t size;
	int r;

	data = nt_codec_get_bytes(codec, &size);
	if (!data)
		return codec->error;
	r = nt_message_decode(data, size, &message);
	if (r < 0)
		return r;
	if (message->body != NT_BODY_INCIDENT || nt_engine_find_open(view, id))
		return -EBADMSG;
	r = nt_engine_add_open(view, id, &open);
	if (r < 0)
		return r;
	open->firing = firing;
	open->class = (enum nt_class) class;
	open->arena = calloc(1, sizeof(*open->arena));
	r = open->arena ? nt_incident_copy(&message->incident, open->arena, &open->incident)
			: -ENOMEM;
	if (r < 0)
		nt_engine_remove_open(view, open);
	return r;
}

int nt_engine_load_job(struct nt_engine *engine, struct nt_job *job, const void *data, size_t size)
{
	struct nt_codec codec = {.loads = true, .in = data, .in_size = size};
	const void *detect;
	uint32_t opens;
	size_t len;
	int r;

	detect = nt_codec_get_bytes(&codec, &len);
	if (!detect)
		return codec.error;
	if (!job->user)
		job->user = calloc(1, sizeof(struct nt_job_view));
	if (!job->user)
		return -ENOMEM;
	nt_detect_free(job->detect);
	job->detect = NULL;
	r = nt_detect_load(&engine->options.rules, detect, len, &job->detect);
	if (r < 0)
		return r;
	opens = nt_codec_get_u32(&codec);
	for (uint32_t i = 0; i < opens && !codec.error; i++) {
		r = load_open(job->user, &codec);
		if (r < 0)
			return r;
	}
	return codec.error;
}
