/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/device.h"

#include <errno.h>
#include <string.h>

#include "common/base/ascii.h"
#include "common/base/hash.h"
#include "proto/field.h"

enum {
	RESPONSE_PODS = 1,
	POD_NAME = 1,
	POD_NAMESPACE = 2,
	POD_CONTAINERS = 3,
	CONTAINER_NAME = 1,
	CONTAINER_DEVICES = 2,
	DEVICES_RESOURCE = 1,
	DEVICES_IDS = 2,
};

/* The next length-delimited field; others are skipped. 1: found, 0: at the end, or -EBADMSG. */
static int next_field(struct nt_field_input *in, uint64_t *ret_number,
		      struct nt_field_input *ret_part)
{
	while (in->at < in->end) {
		uint64_t tag, value;
		bool holds;

		if (!nt_field_read_varint(in, &tag))
			return -EBADMSG;
		switch (tag & NT_FIELD_TYPE_MASK) {
		case NT_FIELD_PART:
			if (!nt_field_read_part(in, ret_part))
				return -EBADMSG;
			*ret_number = tag >> NT_FIELD_TYPE_BITS;
			return 1;
		case NT_FIELD_VARINT:
			holds = nt_field_read_varint(in, &value);
			break;
		case NT_FIELD_EIGHT_BYTES:
			holds = nt_field_skip(in, 8);
			break;
		case NT_FIELD_FOUR_BYTES:
			holds = nt_field_skip(in, 4);
			break;
		default:
			holds = false;
			break;
		}
		if (!holds)
			return -EBADMSG;
	}
	return 0;
}

/* The last field of that number, empty if absent: parts may come in any order. */
static int find_field(struct nt_field_input in, uint64_t wanted, struct nt_field_input *ret_value)
{
	static const uint8_t none[1];
	struct nt_field_input value = {0}, found = {none, none};
	uint64_t number;
	int r;

	while ((r = next_field(&in, &number, &value)) > 0) {
		if (number == wanted)
			found = value;
	}
	*ret_value = found;
	return r;
}

static uint64_t hash_part(uint64_t hash, const void *text, size_t len)
{
	return nt_hash_u64(nt_hash_bytes(hash, text, len), len);
}

uint64_t nt_device_owner(const char *namespace, const char *pod, const char *container)
{
	uint64_t hash = hash_part(NT_HASH_SEED, namespace, strlen(namespace));

	hash = hash_part(hash, pod, strlen(pod));
	return hash_part(hash, container, strlen(container));
}

/* nvidia.com/gpu, nvidia.com/gpu.shared, nvidia.com/mig-1g.10gb, amd.com/gpu. */
static bool is_gpu(const struct nt_field_input *resource)
{
	const uint8_t *name = memrchr(resource->at, '/', nt_field_left(resource));
	size_t len;

	if (!name)
		return false;
	name++;
	len = (size_t)(resource->end - name);
	return (len >= 3 && memcmp(name, "gpu", 3) == 0) ||
	       (len >= 4 && memcmp(name, "mig-", 4) == 0);
}

/* A card shared by several is "UUID::0", "UUID::1", …. */
static struct nt_field_input without_replica(struct nt_field_input id)
{
	const uint8_t *colons = memmem(id.at, nt_field_left(&id), "::", 2);

	if (colons)
		id.end = colons;
	return id;
}

static void add(struct nt_devices *devices, uint64_t owner, struct nt_field_input id)
{
	struct nt_device *device;
	size_t len;

	id = without_replica(id);
	len = nt_field_left(&id);
	if (!len || len >= NT_DEVICE_ID || !nt_ascii_is_visible((const char *)id.at, len))
		return;
	if (devices->count == NT_DEVICE_MAX) {
		devices->over_cap++;
		return;
	}
	device = &devices->device[devices->count++];
	*device = (struct nt_device){.owner = owner};
	memcpy(device->id, id.at, len);
}

static int read_devices(struct nt_field_input in, uint64_t owner, struct nt_devices *devices)
{
	struct nt_field_input resource, value;
	uint64_t number;
	int r = find_field(in, DEVICES_RESOURCE, &resource);

	if (r < 0 || !is_gpu(&resource))
		return r;
	while ((r = next_field(&in, &number, &value)) > 0) {
		if (number == DEVICES_IDS)
			add(devices, owner, value);
	}
	return r;
}

static int read_container(struct nt_field_input in, uint64_t pod, struct nt_devices *devices)
{
	struct nt_field_input name, value;
	uint64_t number, owner;
	int r = find_field(in, CONTAINER_NAME, &name);

	if (r < 0)
		return r;
	owner = hash_part(pod, name.at, nt_field_left(&name));
	while (r >= 0 && (r = next_field(&in, &number, &value)) > 0) {
		if (number == CONTAINER_DEVICES)
			r = read_devices(value, owner, devices);
	}
	return r;
}

static int read_pod(struct nt_field_input in, struct nt_devices *devices)
{
	struct nt_field_input name, namespace, value;
	uint64_t number, pod;
	int r = find_field(in, POD_NAME, &name);

	if (r < 0)
		return r;
	r = find_field(in, POD_NAMESPACE, &namespace);
	if (r < 0)
		return r;
	pod = hash_part(NT_HASH_SEED, namespace.at, nt_field_left(&namespace));
	pod = hash_part(pod, name.at, nt_field_left(&name));
	while (r >= 0 && (r = next_field(&in, &number, &value)) > 0) {
		if (number == POD_CONTAINERS)
			r = read_container(value, pod, devices);
	}
	return r;
}

int nt_devices_read(const uint8_t *data, size_t len, struct nt_devices *ret_devices)
{
	struct nt_field_input in = {.at = data, .end = len ? data + len : data}, value;
	uint64_t number;
	int r = 0;

	ret_devices->count = 0;
	ret_devices->over_cap = 0;
	while (r >= 0 && (r = next_field(&in, &number, &value)) > 0) {
		if (number == RESPONSE_PODS)
			r = read_pod(value, ret_devices);
	}
	if (r < 0)
		ret_devices->count = 0;
	return r;
}

static bool is_among(const char *const *ids, size_t n, const char *id)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(ids[i], id) == 0)
			return true;
	}
	return false;
}

size_t nt_devices_find(const struct nt_devices *devices, uint64_t owner, const char **ret_id)
{
	const char *id[NT_DEVICE_COUNTED];
	size_t n = 0;

	for (size_t i = 0; i < devices->count && n < NT_DEVICE_COUNTED; i++) {
		const struct nt_device *device = &devices->device[i];

		if (device->owner == owner && !is_among(id, n, device->id))
			id[n++] = device->id;
	}
	if (n)
		*ret_id = id[0];
	return n;
}
