/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A device's properties in one piece, in the layout of the thirteenth major version. */
#include <string.h>

#include "tests/sim/lib/cuda.h"

enum {
	PROPERTIES_BYTES = 1008,
	NAME_AT = 0,
	UUID_AT = 256,
	WORD = 4,
	LONG = 8,
};

/* Where an attribute of cudaDeviceGetAttribute() stands, and how wide it is. */
static const struct {
	int attribute;
	unsigned short at;
	unsigned char width;
} fields[] = {
	{8, 296, LONG}, /* shared memory per block */
	{12, 304, WORD}, /* registers per block */
	{10, 308, WORD}, /* warp */
	{11, 312, LONG}, /* pitch */
	{1, 320, WORD}, /* threads per block */
	{2, 324, WORD}, /* block dimensions */
	{3, 328, WORD},   {4, 332, WORD},  {5, 336, WORD}, /* grid dimensions */
	{6, 340, WORD},   {7, 344, WORD},  {9, 352, LONG}, /* constant memory */
	{75, 360, WORD},  {76, 364, WORD}, /* compute capability */
	{14, 368, LONG}, /* alignment of textures */
	{16, 384, WORD}, /* multiprocessors */
	{18, 388, WORD}, /* integrated */
	{31, 560, WORD}, /* concurrent kernels */
	{33, 568, WORD}, /* PCI bus */
	{40, 584, WORD}, /* copy engines */
	{41, 588, WORD}, /* unified addressing */
	{37, 592, WORD}, /* memory bus */
	{38, 596, WORD}, /* L2 */
	{39, 604, WORD}, /* threads per multiprocessor */
	{78, 608, WORD}, /* stream priorities */
	{81, 624, LONG}, /* shared memory per multiprocessor */
	{82, 632, WORD}, /* registers per multiprocessor */
	{83, 636, WORD}, /* managed memory */
	{95, 668, WORD}, /* cooperative launch */
	{97, 672, LONG}, /* shared memory per block, opt-in */
	{106, 688, WORD}, /* blocks per multiprocessor */
};

cudaError_t cudaGetDeviceProperties(void *ret, int device)
{
	static const char name[] = "Stand-in H100";
	char *properties = ret, uuid[16] = "sim-device-000";
	size_t free_bytes, total_bytes;
	cudaError_t r;

	memset(properties, 0, PROPERTIES_BYTES);
	memcpy(properties + NAME_AT, name, sizeof(name));
	uuid[15] = (char)device;
	memcpy(properties + UUID_AT, uuid, sizeof(uuid));
	r = cudaMemGetInfo(&free_bytes, &total_bytes);
	memcpy(properties + 288, &total_bytes, sizeof(total_bytes));
	for (size_t i = 0; r == cudaSuccess && i < sizeof(fields) / sizeof(*fields); i++) {
		int value = 0;
		size_t wide;

		r = cudaDeviceGetAttribute(&value, fields[i].attribute, device);
		wide = (size_t)value;
		memcpy(properties + fields[i].at, &wide, fields[i].width);
	}
	return r;
}
