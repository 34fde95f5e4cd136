/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions of libnvidia-ml.so.1 that the stand-in has, with NVIDIA's ABI. */
#ifndef TESTS_SIM_LIB_HEALTH_NVML_H
#define TESTS_SIM_LIB_HEALTH_NVML_H

struct nvmlDevice_st {
	unsigned int number;
	int instance; /* of MIG; -1: the card */
};

/* nvmlEventData_t */
struct nvml_event {
	struct nvmlDevice_st *device;
	unsigned long long type, data;
	unsigned int gpu_instance, compute_instance;
};

/* nvmlTemperature_t */
struct nvml_temperature {
	unsigned int version;
	int sensor, celsius;
};

/* nvmlProcessInfo_t */
struct nvml_process {
	unsigned int pid;
	unsigned long long memory;
	unsigned int gpu_instance, compute_instance;
};

struct nvmlGpmSample_st {
	struct nvmlDevice_st *device; /* NULL: not filled */
	double value[64]; /* by the number of the metric; below 0: not supported */
};

/* nvmlGpmSupport_t */
struct nvml_gpm_support {
	unsigned int version, is_supported;
};

/* nvmlGpmMetricsGet_t of 12.9 */
struct nvml_gpm_request {
	unsigned int version, metrics;
	struct nvmlGpmSample_st *earlier, *later;
	struct {
		unsigned int id;
		int result;
		double value;
		char *name[3];
	} metric[210];
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int result);
int nvmlDeviceGetCount_v2(unsigned int *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct nvmlDevice_st **device);
int nvmlDeviceGetUUID(struct nvmlDevice_st *device, char *uuid, unsigned int len);
int nvmlDeviceGetName(struct nvmlDevice_st *device, char *name, unsigned int len);
int nvmlDeviceGetClockInfo(struct nvmlDevice_st *device, int type, unsigned int *mhz);
int nvmlDeviceGetMaxClockInfo(struct nvmlDevice_st *device, int type, unsigned int *mhz);
int nvmlDeviceGetTemperature(struct nvmlDevice_st *device, int sensor, unsigned int *celsius);
int nvmlDeviceGetTemperatureV(struct nvmlDevice_st *device, struct nvml_temperature *temperature);
int nvmlDeviceGetPowerUsage(struct nvmlDevice_st *device, unsigned int *mw);
int nvmlDeviceGetEnforcedPowerLimit(struct nvmlDevice_st *device, unsigned int *mw);
int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvmlDevice_st *device,
					      unsigned long long *reasons);
int nvmlDeviceGetMemoryInfo(struct nvmlDevice_st *device, unsigned long long *memory);
int nvmlDeviceGetViolationStatus(struct nvmlDevice_st *device, int policy,
				 unsigned long long *violation);
int nvmlDeviceGetTotalEccErrors(struct nvmlDevice_st *device, int type, int counter,
				unsigned long long *errors);
int nvmlDeviceGetRemappedRows(struct nvmlDevice_st *device, unsigned int *correctable,
			      unsigned int *uncorrectable, unsigned int *pending,
			      unsigned int *failed);
int nvmlDeviceGetPcieReplayCounter(struct nvmlDevice_st *device, unsigned int *replays);
int nvmlDeviceGetNvLinkErrorCounter(struct nvmlDevice_st *device, unsigned int link, int counter,
				    unsigned long long *errors);
int nvmlDeviceGetComputeRunningProcesses_v3(struct nvmlDevice_st *device, unsigned int *count,
					    struct nvml_process *process);
int nvmlDeviceGetMigMode(struct nvmlDevice_st *device, unsigned int *mode, unsigned int *pending);
int nvmlDeviceGetMaxMigDeviceCount(struct nvmlDevice_st *device, unsigned int *count);
int nvmlDeviceGetMigDeviceHandleByIndex(struct nvmlDevice_st *device, unsigned int index,
					struct nvmlDevice_st **instance);
int nvmlDeviceGetGpuInstanceId(struct nvmlDevice_st *device, unsigned int *id);
int nvmlGpmMigSampleGet(struct nvmlDevice_st *device, unsigned int instance,
			struct nvmlGpmSample_st *sample);
int nvmlGpmQueryDeviceSupport(struct nvmlDevice_st *device, struct nvml_gpm_support *support);
int nvmlGpmSampleAlloc(struct nvmlGpmSample_st **sample);
int nvmlGpmSampleFree(struct nvmlGpmSample_st *sample);
int nvmlGpmSampleGet(struct nvmlDevice_st *device, struct nvmlGpmSample_st *sample);
int nvmlGpmMetricsGet(struct nvml_gpm_request *request);
int nvmlEventSetCreate(void **set);
int nvmlDeviceRegisterEvents(struct nvmlDevice_st *device, unsigned long long types, void *set);
int nvmlEventSetWait_v2(void *set, struct nvml_event *event, unsigned int ms);
int nvmlEventSetFree(void *set);

#endif
