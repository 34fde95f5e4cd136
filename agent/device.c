/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/device.h"

#include <errno.h>
#include <string.h>

#include "common/ascii.h"
#include "common/hash.h"

enum {
	RESPONSE_PODS = 1,
	POD_NAME = 1,
	POD_NAMESPACE = 2,
	POD_CONTAINERS = 3,
	CONTAINER_NAME = 1,
	CONTAINER_DEVICES = 2,
	DEVICES_RESOURCE = 1,
	DEVICES_IDS = 2,
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
	WIRE_FIXED32 = 5,
	NUMBER_SHIFT = 3,
	TYPE_MASK = 7,
};

/* Text or a message inside another. */
struct span {
	const uint8_t *at;
	size_t len;
};

static bool take_varint(struct span *in, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64 && in->len; shift += 7) {
		uint8_t byte = *in->at++;

		in->len--;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

static bool skip(struct span *in, uint64_t len)
{
	if (len > in->len)
		return false;
	in->at += len;
	in->len -= (size_t)len;
	return true;
}

/*
 * The next field that is text or a message; others are passed over. 1: there is one, 0: that was all,
 * or -EBADMSG.
 */
static int next_field(struct span *in, uint64_t *ret_number, struct span *ret_value)
{
	while (in->len) {
		uint64_t tag, value;
		bool holds;

		if (!take_varint(in, &tag))
			return -EBADMSG;
		switch (tag & TYPE_MASK) {
		case WIRE_BYTES:
			if (!take_varint(in, &value) || value > in->len)
				return -EBADMSG;
			*ret_number = tag >> NUMBER_SHIFT;
			*ret_value = (struct span){in->at, (size_t)value};
			(void)skip(in, value);
			return 1;
		case WIRE_VARINT:
			holds = take_varint(in, &value);
			break;
		case WIRE_FIXED64:
			holds = skip(in, 8);
			break;
		case WIRE_FIXED32:
			holds = skip(in, 4);
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

/* The last field of that number, empty where there is none: parts may come in any order. */
static int find_field(struct span in, uint64_t wanted, struct span *ret_value)
{
	struct span value = {0}, found = {(const uint8_t *)"", 0};
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
static bool is_gpu(const struct span *resource)
{
	const uint8_t *name = memrchr(resource->at, '/', resource->len);
	size_t len;

	if (!name)
		return false;
	name++;
	len = resource->len - (size_t)(name - resource->at);
	return (len >= 3 && memcmp(name, "gpu", 3) == 0) ||
	       (len >= 4 && memcmp(name, "mig-", 4) == 0);
}

/* A card that several share is "UUID::0", "UUID::1", …. */
static struct span without_replica(struct span id)
{
	const uint8_t *colons = memmem(id.at, id.len, "::", 2);

	if (colons)
		id.len = (size_t)(colons - id.at);
	return id;
}

static void add(struct nt_devices *devices, uint64_t owner, struct span id)
{
	struct nt_device *device;

	id = without_replica(id);
	if (!id.len || !nt_ascii_is_visible((const char *)id.at, id.len) || id.len >= NT_DEVICE_ID)
		return;
	if (devices->count == NT_DEVICE_MAX) {
		devices->over_cap++;
		return;
	}
	device = &devices->device[devices->count++];
	*device = (struct nt_device){.owner = owner};
	memcpy(device->id, id.at, id.len);
}

static int read_devices(struct span in, uint64_t owner, struct nt_devices *devices)
{
	struct span resource, value;
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

static int read_container(struct span in, uint64_t pod, struct nt_devices *devices)
{
	struct span name, value;
	uint64_t number, owner;
	int r = find_field(in, CONTAINER_NAME, &name);

	if (r < 0)
		return r;
	owner = hash_part(pod, name.at, name.len);
	while (r >= 0 && (r = next_field(&in, &number, &value)) > 0) {
		if (number == CONTAINER_DEVICES)
			r = read_devices(value, owner, devices);
	}
	return r;
}

static int read_pod(struct span in, struct nt_devices *devices)
{
	struct span name, namespace, value;
	uint64_t number, pod;
	int r = find_field(in, POD_NAME, &name);

	if (r < 0)
		return r;
	r = find_field(in, POD_NAMESPACE, &namespace);
	if (r < 0)
		return r;
	pod = hash_part(hash_part(NT_HASH_SEED, namespace.at, namespace.len), name.at, name.len);
	while (r >= 0 && (r = next_field(&in, &number, &value)) > 0) {
		if (number == POD_CONTAINERS)
			r = read_container(value, pod, devices);
	}
	return r;
}

int nt_devices_read(const uint8_t *data, size_t len, struct nt_devices *ret_devices)
{
	struct span in = {data, len}, value;
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
