/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/live/incident_act.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "common/base/duration.h"
#include "proto/json.h"

struct act {
	const char *word, *route; /* of the REST interface */
	bool is_delete, has_time;
	size_t args; /* the word included */
	const char *done; /* "acknowledged" */
};

static const struct act acts[] = {
	{"acknowledge", "/acknowledge", false, false, 2, "acknowledged"},
	{"unacknowledge", "/acknowledge", true, false, 2, "no longer acknowledged"},
	{"silence", "/silence", false, true, 2, "silenced"},
	{"unsilence", "/silence", true, false, 2, "no longer silenced"},
	{"annotate", "/annotate", false, false, 3, "annotated"},
};

static const struct act *find_act(const struct nt_live_config *config)
{
	for (size_t i = 0; config->args.count && i < sizeof(acts) / sizeof(acts[0]); i++)
		if (strcmp(acts[i].word, config->args.value[0]) == 0)
			return &acts[i];
	return NULL;
}

bool nt_incident_is_act(const struct nt_live_config *config)
{
	return find_act(config) != NULL;
}

/* The option, or the name of the user; NULL: neither is known. */
static const char *person(const struct nt_live_config *config)
{
	const struct passwd *user = config->by ? NULL : getpwuid(getuid());

	return config->by ? config->by : user ? user->pw_name : NULL;
}

/* NULL: out of memory, or a text that is not valid UTF-8. */
static json_t *make_body(const struct act *act, const struct nt_live_config *config)
{
	const char *by = person(config);
	nt_autojson json_t *body = json_object();

	if (!body || (by && json_object_set_new(body, "by", json_string(by))))
		return NULL;
	if (act->has_time &&
	    json_object_set_new(body, "for_seconds",
				json_integer((json_int_t)(config->for_ns / NT_SECOND))))
		return NULL;
	if (act->args == 3 && json_object_set_new(body, "text", json_string(config->args.value[2])))
		return NULL;
	return nt_take(body);
}

static int send_act(struct nt_client *client, const struct act *act,
		    const struct nt_live_config *config, json_t **ret_incident,
		    struct nt_client_error *error)
{
	nt_autobuf struct nt_buf path = {0};
	nt_autojson json_t *body = NULL;

	if (nt_client_segment(&path, "/api/v1/incidents/", config->args.value[1]) < 0 ||
	    nt_buf_printf(&path, "%s", act->route) < 0) {
		error->exit = NT_EXIT_SYSTEM;
		(void)snprintf(error->text, sizeof(error->text), "out of memory");
		return -1;
	}
	if (act->is_delete)
		return nt_client_delete(client, (const char *)path.data, ret_incident, error);
	body = make_body(act, config);
	if (!body) {
		error->exit = NT_EXIT_USAGE;
		(void)snprintf(error->text, sizeof(error->text),
			       "the text or the name is not valid UTF-8");
		return -1;
	}
	return nt_client_post(client, (const char *)path.data, body, ret_incident, error);
}

int nt_incident_act(struct nt_client *client, const struct nt_live_config *config)
{
	const struct act *act = find_act(config);
	nt_autojson json_t *incident = NULL;
	struct nt_client_error error;
	const json_t *silenced;
	char until[NT_LIVE_TEXT];

	if (config->args.count != act->args) {
		(void)fprintf(stderr, "neutracer incidents: usage: neutracer incidents %s ID%s\n",
			      act->word, act->args == 3 ? " TEXT" : "");
		return NT_EXIT_USAGE;
	}
	if (config->watch) {
		(void)fprintf(stderr, "neutracer incidents: --watch would repeat '%s'; omit it\n",
			      act->word);
		return NT_EXIT_USAGE;
	}
	if (send_act(client, act, config, &incident, &error) < 0)
		return nt_live_fail(&error);
	if (config->json)
		return nt_live_print_json(incident);
	silenced = json_object_get(json_object_get(incident, "handling"), "silenced");
	(void)printf("%s: %s%s%s\n", config->args.value[1], act->done,
		     act->has_time ? " until " : "",
		     act->has_time ? nt_live_text(silenced, "until", "?", until) : "");
	return NT_EXIT_OK;
}
