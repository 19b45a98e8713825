#include "nvml.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "mem.h"

int nvml_load(struct nvml *n)
{
    const struct {
        const char *name;
        void *target;
        bool needed;
    } symbols[] = {
        {"nvmlInit_v2", &n->init, true},
        {"nvmlShutdown", &n->shutdown, true},
        {"nvmlDeviceGetCount_v2", &n->count, true},
        {"nvmlDeviceGetHandleByIndex_v2", &n->handle, true},
        {"nvmlDeviceGetName", &n->name, true},
        {"nvmlDeviceGetUUID", &n->uuid, true},
        {"nvmlDeviceGetMigMode", &n->mig_mode, false},
        {"nvmlDeviceGetMaxMigDeviceCount", &n->mig_most, false},
        {"nvmlDeviceGetMigDeviceHandleByIndex", &n->mig_handle, false},
        {"nvmlDeviceGetDeviceHandleFromMigDeviceHandle", &n->mig_whole, false},
        {"nvmlDeviceGetHandleByUUID", &n->by_uuid, false},
        {"nvmlDeviceGetMemoryInfo", &n->memory, false},
        {"nvmlDeviceGetComputeRunningProcesses_v2", &n->processes, false},
        {"nvmlDeviceGetUtilizationRates", &n->utilization, false},
        {"nvmlDeviceGetTemperature", &n->temperature, false},
        {"nvmlDeviceGetPowerUsage", &n->power, false},
        {"nvmlDeviceGetClockInfo", &n->clock, false},
        {"nvmlDeviceGetTotalEnergyConsumption", &n->energy, false},
        {"nvmlDeviceGetTotalEccErrors", &n->ecc, false},
        {"nvmlDeviceGetRemappedRows", &n->remapped, false},
        {"nvmlDeviceGetP2PStatus", &n->peers, false},
        {"nvmlDeviceGetPciInfo_v3", &n->pci, false},
        {"nvmlEventSetCreate", &n->events_create, false},
        {"nvmlEventSetFree", &n->events_free, false},
        {"nvmlDeviceRegisterEvents", &n->events_add, false},
        {"nvmlEventSetWait_v2", &n->events_wait, false},
    };
    n->lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; n->lib && i < DET_ARRAY_LEN(symbols); i++) {
        void *found = dlsym(n->lib, symbols[i].name);
        if (!found && symbols[i].needed)
            return -1;
        memcpy(symbols[i].target, &found, sizeof found);
    }
    return n->lib ? 0 : -1;
}

void nvml_unload(struct nvml *n)
{
    if (n->lib)
        dlclose(n->lib);
    n->lib = NULL;
}
