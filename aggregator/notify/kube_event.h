/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an incident says as Kubernetes Events, one on each pod and node that it accuses. */
#ifndef NT_AGGREGATOR_NOTIFY_KUBE_EVENT_H
#define NT_AGGREGATOR_NOTIFY_KUBE_EVENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum {
	NT_KUBE_EVENT_OBJECTS = 32, /* of one message; the others are told by REST */
	NT_KUBE_EVENT_TEXT = 1024, /* bytes of an event's message */
	NT_KUBE_NAME = 253, /* bytes of a name in Kubernetes */
};

struct nt_kube_object {
	const char *namespace; /* of a pod; NULL: it is a node */
	const char *name;
	const char *uid; /* NULL: not known */
};

/* A DNS subdomain, as every name in Kubernetes is: what else a message calls so never gets into a path. */
bool nt_kube_name_is_sound(const char *name);

/*
 * The pods and nodes that the incident (as JSON) accuses, each once, pods first; borrowed from it.
 * *ret_left_out grows by those whose names are unsound or past the cap.
 */
size_t nt_kube_objects(const json_t *incident, struct nt_kube_object object[NT_KUBE_EVENT_OBJECTS],
		       size_t *ret_left_out);

/* CamelCase, as Kubernetes wants the reasons of events and conditions; a constant. */
const char *nt_kube_reason(const json_t *incident, bool resolved);

/*
 * Event number `number` of the message with this id: its name is the same at every attempt, so that
 * it is made once. `message` is the body of a webhook. A new reference, or NULL for want of memory.
 */
json_t *nt_kube_event(const json_t *message, const char *id, size_t number,
		      const struct nt_kube_object *object);

/* Summary and incident, cut to the cap between two characters. */
void nt_kube_text(const json_t *incident, bool resolved, char text[NT_KUBE_EVENT_TEXT]);

#endif
