/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Converts an incident to Kubernetes Events, one for each pod and node that it accuses. */
#ifndef NT_AGGREGATOR_NOTIFY_KUBE_EVENT_H
#define NT_AGGREGATOR_NOTIFY_KUBE_EVENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum {
	NT_KUBE_EVENT_OBJECTS = 32, /* per message; the rest is available by REST */
	NT_KUBE_EVENT_TEXT = 1024, /* bytes of an event's message */
	NT_KUBE_NAME = 253, /* bytes of a name in Kubernetes */
};

struct nt_kube_object {
	const char *namespace; /* of a pod; NULL: it is a node */
	const char *name;
	const char *uid; /* NULL: not known */
};

/* Whether the name is a DNS subdomain, as required by Kubernetes; others never enter a URL path. */
bool nt_kube_name_is_sound(const char *name);

/*
 * Lists the pods and nodes that the incident (as JSON) accuses, each once, pods first; borrowed
 * from it. Adds the number of invalid names and of objects past the cap to *ret_left_out.
 */
size_t nt_kube_objects(const json_t *incident, struct nt_kube_object object[NT_KUBE_EVENT_OBJECTS],
		       size_t *ret_left_out);

/* The reason in CamelCase, as Kubernetes requires for events and conditions; a constant. */
const char *nt_kube_reason(const json_t *incident, bool resolved);

/*
 * Event `number` of the message with this id. Its name is the same at every attempt, which makes
 * creation idempotent. `message` is a webhook body. A new reference, or NULL on allocation failure.
 */
json_t *nt_kube_event(const json_t *message, const char *id, size_t number,
		      const struct nt_kube_object *object);

/* Writes summary and incident id, truncated at a character boundary. */
void nt_kube_text(const json_t *incident, bool resolved, char text[NT_KUBE_EVENT_TEXT]);

#endif
