/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compiles only if agent/gpu/nvml_abi.h and agent/gpu/gpu_card.h say what NVIDIA's nvml.h says. */
#include <nvml.h>
#include <stddef.h>

#include "agent/gpu/gpu_card.h"
#include "agent/gpu/nvml_abi.h"

#define SAME(ours, theirs) _Static_assert((unsigned long long)(ours) == (theirs), #theirs)
#define PLACE(ours, member, theirs, their_member)                                                  \
	_Static_assert(offsetof(struct ours, member) == offsetof(theirs, their_member) &&          \
			       sizeof(((struct ours *)0)->member) ==                               \
				       sizeof(((theirs *)0)->their_member),                        \
		       #theirs "." #their_member)
#define SIZE(ours, theirs) _Static_assert(sizeof(struct ours) == sizeof(theirs), #theirs)

SAME(NT_NVML_SUCCESS, NVML_SUCCESS);
SAME(NT_NVML_INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
SAME(NT_NVML_DRIVER_NOT_LOADED, NVML_ERROR_DRIVER_NOT_LOADED);
SAME(NT_NVML_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
SAME(NT_NVML_RESET_REQUIRED, NVML_ERROR_RESET_REQUIRED);
SAME(NT_NVML_CLOCK_SM, NVML_CLOCK_SM);
SAME(NT_NVML_CLOCK_MEM, NVML_CLOCK_MEM);
SAME(NT_NVML_TEMPERATURE_GPU, NVML_TEMPERATURE_GPU);
SAME(NT_NVML_ECC_CORRECTED, NVML_MEMORY_ERROR_TYPE_CORRECTED);
SAME(NT_NVML_ECC_UNCORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
SAME(NT_NVML_ECC_VOLATILE, NVML_VOLATILE_ECC);
SAME(NT_NVML_POLICY_POWER, NVML_PERF_POLICY_POWER);
SAME(NT_NVML_POLICY_THERMAL, NVML_PERF_POLICY_THERMAL);
SAME(NT_NVML_EVENT_XID, nvmlEventTypeXidCriticalError);
_Static_assert(NT_NVML_LINKS >= NVML_NVLINK_MAX_LINKS, "all links are read");
SAME(NT_NVML_LINK_COUNTERS - 1, NVML_NVLINK_ERROR_DL_CRC_DATA);
SAME(NT_GPU_REASON_IDLE, nvmlClocksEventReasonGpuIdle);
SAME(NT_GPU_REASON_POWER_CAP, nvmlClocksEventReasonSwPowerCap);
SAME(NT_GPU_REASON_HARDWARE, nvmlClocksThrottleReasonHwSlowdown);
SAME(NT_GPU_REASON_THERMAL, nvmlClocksEventReasonSwThermalSlowdown);
SAME(NT_GPU_REASON_HARDWARE_THERMAL, nvmlClocksThrottleReasonHwThermalSlowdown);
SAME(NT_GPU_REASON_POWER_BRAKE, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);

SAME(NT_NVML_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME(NT_NVML_TEMPERATURE_VERSION, nvmlTemperature_v1);
PLACE(nt_nvml_temperature, version, nvmlTemperature_t, version);
PLACE(nt_nvml_temperature, sensor, nvmlTemperature_t, sensorType);
PLACE(nt_nvml_temperature, celsius, nvmlTemperature_t, temperature);
SIZE(nt_nvml_temperature, nvmlTemperature_t);
PLACE(nt_nvml_utilization, gpu, nvmlUtilization_t, gpu);
SIZE(nt_nvml_utilization, nvmlUtilization_t);
PLACE(nt_nvml_memory, total, nvmlMemory_t, total);
PLACE(nt_nvml_memory, used, nvmlMemory_t, used);
SIZE(nt_nvml_memory, nvmlMemory_t);
PLACE(nt_nvml_violation, violation_ns, nvmlViolationTime_t, violationTime);
SIZE(nt_nvml_violation, nvmlViolationTime_t);
PLACE(nt_nvml_event, device, nvmlEventData_t, device);
PLACE(nt_nvml_event, type, nvmlEventData_t, eventType);
PLACE(nt_nvml_event, data, nvmlEventData_t, eventData);
SIZE(nt_nvml_event, nvmlEventData_t);
PLACE(nt_nvml_event, gpu_instance, nvmlEventData_t, gpuInstanceId);
PLACE(nt_nvml_process, pid, nvmlProcessInfo_t, pid);
SIZE(nt_nvml_process, nvmlProcessInfo_t);

SAME(NT_NVML_MIG_ENABLED, NVML_DEVICE_MIG_ENABLE);
SAME(NT_NVML_GPM_VERSION, NVML_GPM_METRICS_GET_VERSION);
SAME(NT_NVML_GPM_VERSION, NVML_GPM_SUPPORT_VERSION);
SAME(NT_NVML_GPM_SM_ACTIVE, NVML_GPM_METRIC_SM_UTIL);
SAME(NT_NVML_GPM_SM_OCCUPANCY, NVML_GPM_METRIC_SM_OCCUPANCY);
SAME(NT_NVML_GPM_TENSOR, NVML_GPM_METRIC_ANY_TENSOR_UTIL);
SAME(NT_NVML_GPM_DRAM, NVML_GPM_METRIC_DRAM_BW_UTIL);
SAME(NT_NVML_GPM_PCIE_SENT, NVML_GPM_METRIC_PCIE_TX_PER_SEC);
SAME(NT_NVML_GPM_PCIE_RECEIVED, NVML_GPM_METRIC_PCIE_RX_PER_SEC);
SAME(NT_NVML_GPM_NVLINK_RECEIVED, NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC);
SAME(NT_NVML_GPM_NVLINK_SENT, NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC);
_Static_assert((int)NT_NVML_GPM_METRICS >= (int)NVML_GPM_METRIC_MAX, "room for all metrics");
PLACE(nt_nvml_gpm_support, version, nvmlGpmSupport_t, version);
PLACE(nt_nvml_gpm_support, is_supported, nvmlGpmSupport_t, isSupportedDevice);
SIZE(nt_nvml_gpm_support, nvmlGpmSupport_t);
PLACE(nt_nvml_gpm_metric, id, nvmlGpmMetric_t, metricId);
PLACE(nt_nvml_gpm_metric, result, nvmlGpmMetric_t, nvmlReturn);
PLACE(nt_nvml_gpm_metric, value, nvmlGpmMetric_t, value);
SIZE(nt_nvml_gpm_metric, nvmlGpmMetric_t);
PLACE(nt_nvml_gpm_request, version, nvmlGpmMetricsGet_t, version);
PLACE(nt_nvml_gpm_request, metrics, nvmlGpmMetricsGet_t, numMetrics);
PLACE(nt_nvml_gpm_request, earlier, nvmlGpmMetricsGet_t, sample1);
PLACE(nt_nvml_gpm_request, later, nvmlGpmMetricsGet_t, sample2);
PLACE(nt_nvml_gpm_request, metric[0], nvmlGpmMetricsGet_t, metrics[0]);

/* An enumeration is passed as an int: each function is assigned to a pointer with NVML's own types. */
#define HAS(name, ...)                                                                             \
	static __attribute__((unused)) nvmlReturn_t (*const has_##name)(__VA_ARGS__) = name

HAS(nvmlInit_v2, void);
HAS(nvmlShutdown, void);
HAS(nvmlDeviceGetCount_v2, unsigned int *);
HAS(nvmlDeviceGetHandleByIndex_v2, unsigned int, nt_nvml_device *);
HAS(nvmlDeviceGetUUID, nt_nvml_device, char *, unsigned int);
HAS(nvmlDeviceGetName, nt_nvml_device, char *, unsigned int);
HAS(nvmlDeviceGetClockInfo, nt_nvml_device, nvmlClockType_t, unsigned int *);
HAS(nvmlDeviceGetMaxClockInfo, nt_nvml_device, nvmlClockType_t, unsigned int *);
HAS(nvmlDeviceGetTemperature, nt_nvml_device, nvmlTemperatureSensors_t, unsigned int *);
HAS(nvmlDeviceGetTemperatureV, nt_nvml_device, nvmlTemperature_t *);
HAS(nvmlDeviceGetPowerUsage, nt_nvml_device, unsigned int *);
HAS(nvmlDeviceGetEnforcedPowerLimit, nt_nvml_device, unsigned int *);
HAS(nvmlDeviceGetCurrentClocksEventReasons, nt_nvml_device, unsigned long long *);
HAS(nvmlDeviceGetCurrentClocksThrottleReasons, nt_nvml_device, unsigned long long *);
HAS(nvmlDeviceGetUtilizationRates, nt_nvml_device, nvmlUtilization_t *);
HAS(nvmlDeviceGetMemoryInfo, nt_nvml_device, nvmlMemory_t *);
HAS(nvmlDeviceGetViolationStatus, nt_nvml_device, nvmlPerfPolicyType_t, nvmlViolationTime_t *);
HAS(nvmlDeviceGetTotalEnergyConsumption, nt_nvml_device, unsigned long long *);
HAS(nvmlDeviceGetTotalEccErrors, nt_nvml_device, nvmlMemoryErrorType_t, nvmlEccCounterType_t,
    unsigned long long *);
HAS(nvmlDeviceGetRemappedRows, nt_nvml_device, unsigned int *, unsigned int *, unsigned int *,
    unsigned int *);
HAS(nvmlDeviceGetPcieReplayCounter, nt_nvml_device, unsigned int *);
HAS(nvmlDeviceGetNvLinkErrorCounter, nt_nvml_device, unsigned int, nvmlNvLinkErrorCounter_t,
    unsigned long long *);
HAS(nvmlDeviceGetComputeRunningProcesses_v3, nt_nvml_device, unsigned int *, nvmlProcessInfo_t *);
HAS(nvmlEventSetCreate, nt_nvml_event_set *);
HAS(nvmlDeviceRegisterEvents, nt_nvml_device, unsigned long long, nt_nvml_event_set);
HAS(nvmlEventSetWait_v2, nt_nvml_event_set, nvmlEventData_t *, unsigned int);
HAS(nvmlEventSetFree, nt_nvml_event_set);
HAS(nvmlDeviceGetMigMode, nt_nvml_device, unsigned int *, unsigned int *);
HAS(nvmlDeviceGetMaxMigDeviceCount, nt_nvml_device, unsigned int *);
HAS(nvmlDeviceGetMigDeviceHandleByIndex, nt_nvml_device, unsigned int, nt_nvml_device *);
HAS(nvmlDeviceGetGpuInstanceId, nt_nvml_device, unsigned int *);
HAS(nvmlGpmQueryDeviceSupport, nt_nvml_device, nvmlGpmSupport_t *);
HAS(nvmlGpmSampleAlloc, nt_nvml_gpm_sample *);
HAS(nvmlGpmSampleFree, nt_nvml_gpm_sample);
HAS(nvmlGpmSampleGet, nt_nvml_device, nt_nvml_gpm_sample);
HAS(nvmlGpmMigSampleGet, nt_nvml_device, unsigned int, nt_nvml_gpm_sample);
HAS(nvmlGpmMetricsGet, nvmlGpmMetricsGet_t *);
_Static_assert(sizeof(nvmlReturn_t) == sizeof(int) && sizeof(nvmlClockType_t) == sizeof(int),
	       "enumerations are ints");
