/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/reduce.h"

#include <stdint.h>
#include <string.h>

#include "tests/sim/lib/nccl/nccl.h"

size_t sim_type_bytes(int type)
{
	static const unsigned char bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

	return type < 0 || type >= ncclNumTypes ? 0 : bytes[type];
}

#define COMBINE(a, b)                                                                              \
	(op == ncclProd  ? (a) * (b)                                                               \
	 : op == ncclMax ? ((a) > (b) ? (a) : (b))                                                 \
	 : op == ncclMin ? ((a) < (b) ? (a) : (b))                                                 \
			 : (a) + (b))

#define DEFINE(name, type)                                                                         \
	static void name(type *into, const type *from, size_t count, int op)                       \
	{                                                                                          \
		for (size_t i = 0; i < count; i++)                                                 \
			into[i] = (type)COMBINE(into[i], from[i]);                                 \
	}                                                                                          \
	static void name##_divide(type *into, size_t count, unsigned int n)                        \
	{                                                                                          \
		for (size_t i = 0; i < count; i++)                                                 \
			into[i] = (type)(into[i] / (type)n);                                       \
	}

DEFINE(of_int8, int8_t)
DEFINE(of_uint8, uint8_t)
DEFINE(of_int32, int32_t)
DEFINE(of_uint32, uint32_t)
DEFINE(of_int64, int64_t)
DEFINE(of_uint64, uint64_t)
DEFINE(of_half, _Float16)
DEFINE(of_float, float)
DEFINE(of_double, double)

/* The upper half of a float. */
static float from_bfloat(uint16_t bits)
{
	uint32_t wide = (uint32_t)bits << 16;
	float value;

	memcpy(&value, &wide, sizeof(value));
	return value;
}

static uint16_t to_bfloat(float value)
{
	uint32_t wide;

	memcpy(&wide, &value, sizeof(wide));
	return (uint16_t)((wide + 0x7fff + ((wide >> 16) & 1)) >> 16);
}

static void of_bfloat(uint16_t *into, const uint16_t *from, size_t count, int op)
{
	for (size_t i = 0; i < count; i++) {
		float a = from_bfloat(into[i]), b = from_bfloat(from[i]);

		into[i] = to_bfloat(COMBINE(a, b));
	}
}

void sim_reduce(void *into, const void *from, size_t count, int type, int op)
{
	switch (type) {
	case ncclInt8:
		of_int8(into, from, count, op);
		break;
	case ncclUint8:
		of_uint8(into, from, count, op);
		break;
	case ncclInt32:
		of_int32(into, from, count, op);
		break;
	case ncclUint32:
		of_uint32(into, from, count, op);
		break;
	case ncclInt64:
		of_int64(into, from, count, op);
		break;
	case ncclUint64:
		of_uint64(into, from, count, op);
		break;
	case ncclFloat16:
		of_half(into, from, count, op);
		break;
	case ncclFloat32:
		of_float(into, from, count, op);
		break;
	case ncclFloat64:
		of_double(into, from, count, op);
		break;
	case ncclBfloat16:
		of_bfloat(into, from, count, op);
		break;
	default:
		break;
	}
}

void sim_reduce_average(void *into, size_t count, int type, unsigned int n)
{
	switch (type) {
	case ncclInt8:
		of_int8_divide(into, count, n);
		break;
	case ncclUint8:
		of_uint8_divide(into, count, n);
		break;
	case ncclInt32:
		of_int32_divide(into, count, n);
		break;
	case ncclUint32:
		of_uint32_divide(into, count, n);
		break;
	case ncclInt64:
		of_int64_divide(into, count, n);
		break;
	case ncclUint64:
		of_uint64_divide(into, count, n);
		break;
	case ncclFloat16:
		of_half_divide(into, count, n);
		break;
	case ncclFloat32:
		of_float_divide(into, count, n);
		break;
	case ncclFloat64:
		of_double_divide(into, count, n);
		break;
	case ncclBfloat16:
		for (size_t i = 0; i < count; i++) {
			uint16_t *value = (uint16_t *)into + i;

			*value = to_bfloat(from_bfloat(*value) / (float)n);
		}
		break;
	default:
		break;
	}
}
