/*
 * The part of NVML that the agent uses, with a host as FAKE_NVML says: a letter for each GPU, its
 * UUID being GPU-<letter>.
 *   w   whole
 *   0 to 7   divided by MIG into so many instances; the first of its places is empty
 *   x   does not answer
 * Without FAKE_NVML there is no driver.
 *
 * FAKE_NVML_LINKS: words of the letters of GPUs that NVLink joins, each with each: "ab cd". GPU a
 * is on bus 10 of PCI, those after it follow.
 *
 * FAKE_NVML_STATE names a file that is read at each call: lines "LETTER KEY VALUE" about the GPU of
 * that letter (a is the first), whose instances are all alike.
 *   mem N    MiB in use, of 81920        pid N    a process on it, once for each
 *   xid N    an event, at each wait      ecc N    uncorrected errors
 *   remap 1  a row cannot be remapped    lost 1   it is off the bus
 *   joule N  used since it was reset     init 1   the driver's begin takes until the line is gone
 *   hang 1   a look at its memory takes until the line is gone
 */
#include "fake_nvml.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUCCESS, UNINITIALIZED = 1, NOT_FOUND = 6, GPU_IS_LOST = 15 };
enum { PLACES = 8, WHOLE = PLACES };

struct fake_nvml_counts fake_nvml_counts;

typedef uintptr_t device; /* 1 + its GPU's number * 16 + its place in it, or WHOLE */

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned i, device *ret);
int nvmlDeviceGetName(device d, char *out, unsigned len);
int nvmlDeviceGetUUID(device d, char *out, unsigned len);
int nvmlDeviceGetMigMode(device d, unsigned *now, unsigned *pending);
int nvmlDeviceGetMaxMigDeviceCount(device d, unsigned *n);
int nvmlDeviceGetMigDeviceHandleByIndex(device d, unsigned i, device *ret);

static long state_of(unsigned gpu, const char *key, int nth);

static unsigned gpu_of(device d)
{
    return (unsigned)(d - 1) / 16;
}

static unsigned place_of(device d)
{
    return (unsigned)(d - 1) % 16;
}

static char kind_of(device d)
{
    return getenv("FAKE_NVML")[gpu_of(d)];
}

int nvmlInit_v2(void)
{
    if (!getenv("FAKE_NVML"))
        return UNINITIALIZED;
    while (state_of(0, "init", 0) > 0)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    fake_nvml_counts.open++;
    fake_nvml_counts.begins++;
    return SUCCESS;
}

int nvmlShutdown(void)
{
    fake_nvml_counts.open--;
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
    *n = (unsigned)strlen(getenv("FAKE_NVML"));
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, device *ret)
{
    *ret = 1 + i * 16 + WHOLE;
    return kind_of(*ret) == 'x' ? GPU_IS_LOST : SUCCESS;
}

int nvmlDeviceGetName(device d, char *out, unsigned len)
{
    snprintf(out, len, place_of(d) == WHOLE ? "Fake H200" : "Fake H200 MIG 1g.18gb");
    return SUCCESS;
}

int nvmlDeviceGetUUID(device d, char *out, unsigned len)
{
    if (place_of(d) == WHOLE)
        snprintf(out, len, "GPU-%c", 'a' + gpu_of(d));
    else
        snprintf(out, len, "MIG-%c%u", 'a' + gpu_of(d), place_of(d));
    return SUCCESS;
}

int nvmlDeviceGetMigMode(device d, unsigned *now, unsigned *pending)
{
    *pending = *now = kind_of(d) != 'w';
    return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(device d, unsigned *n)
{
    *n = PLACES;
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(device d, unsigned i, device *ret)
{
    *ret = d - WHOLE + i;
    return i >= 1 && i <= (unsigned)(kind_of(d) - '0') ? SUCCESS : NOT_FOUND;
}

/* ---- Neighbours ---- */

struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char text[32];
};
int nvmlDeviceGetP2PStatus(device a, device b, int way, int *ret);
int nvmlDeviceGetPciInfo_v3(device d, struct pci *ret);

int nvmlDeviceGetP2PStatus(device a, device b, int way, int *ret)
{
    const char *links = getenv("FAKE_NVML_LINKS");
    bool has_a = false, has_b = false;
    *ret = 5; /* not supported */
    for (; links && *links && way == 2; links++) {
        has_a = *links != ' ' && (has_a || *links == (char)('a' + gpu_of(a)));
        has_b = *links != ' ' && (has_b || *links == (char)('a' + gpu_of(b)));
        if (has_a && has_b)
            *ret = 0;
    }
    return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(device d, struct pci *ret)
{
    *ret = (struct pci){.domain = 0, .bus = 0x10 + gpu_of(d), .device = 0};
    return SUCCESS;
}

/* ---- How they are ---- */

enum { NOT_SUPPORTED = 3, TIMEOUT = 10 };

struct memory {
    unsigned long long total, free, used;
};
struct utilization {
    unsigned gpu, memory;
};
struct process {
    unsigned pid;
    unsigned long long mem_bytes;
    unsigned gpu_instance, compute_instance;
};
struct event {
    device device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};
static unsigned registered[64]; /* GPUs, of the one set */
static size_t registered_n;

int nvmlDeviceGetHandleByUUID(const char *uuid, device *ret);
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device d, device *ret);
int nvmlDeviceGetMemoryInfo(device d, struct memory *ret);
int nvmlDeviceGetComputeRunningProcesses_v2(device d, unsigned *n, struct process *out);
int nvmlDeviceGetUtilizationRates(device d, struct utilization *ret);
int nvmlDeviceGetTemperature(device d, int sensor, unsigned *ret);
int nvmlDeviceGetPowerUsage(device d, unsigned *ret);
int nvmlDeviceGetClockInfo(device d, int type, unsigned *ret);
int nvmlDeviceGetTotalEnergyConsumption(device d, unsigned long long *ret);
int nvmlDeviceGetTotalEccErrors(device d, int kind, int since, unsigned long long *ret);
int nvmlDeviceGetRemappedRows(device d, unsigned *c, unsigned *u, unsigned *pending,
                              unsigned *failed);
int nvmlEventSetCreate(uintptr_t *ret);
int nvmlEventSetFree(uintptr_t set);
int nvmlDeviceRegisterEvents(device d, unsigned long long types, uintptr_t set);
int nvmlEventSetWait_v2(uintptr_t set, struct event *ret, unsigned timeout_ms);

/* The nth value (from 0) that the file has for it; -1: none. */
static long state_of(unsigned gpu, const char *key, int nth)
{
    const char *path = getenv("FAKE_NVML_STATE");
    FILE *f = path ? fopen(path, "r") : NULL;
    char letter, name[16];
    long value, found = -1;
    while (f && found < 0 && fscanf(f, " %c %15s %ld", &letter, name, &value) == 3)
        if ((unsigned)(letter - 'a') == gpu && strcmp(name, key) == 0 && nth-- == 0)
            found = value;
    if (f)
        fclose(f);
    return found;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, device *ret)
{
    unsigned place = uuid[0] == 'M' ? (unsigned)(uuid[5] - '0') : WHOLE;
    *ret = 1 + (device)(uuid[4] - 'a') * 16 + place;
    return gpu_of(*ret) < strlen(getenv("FAKE_NVML")) ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device d, device *ret)
{
    *ret = 1 + gpu_of(d) * 16 + WHOLE;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(device d, struct memory *ret)
{
    long used = state_of(gpu_of(d), "mem", 0);
    fake_nvml_counts.looks++;
    if (state_of(gpu_of(d), "hang", 0) > 0) {
        fake_nvml_counts.hanging++;
        while (state_of(gpu_of(d), "hang", 0) > 0)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        fake_nvml_counts.hanging--;
    }
    if (state_of(gpu_of(d), "lost", 0) > 0)
        return GPU_IS_LOST;
    ret->total = (unsigned long long)81920 << 20;
    ret->used = (unsigned long long)(used < 0 ? 600 : used) << 20;
    ret->free = ret->total - ret->used;
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v2(device d, unsigned *n, struct process *out)
{
    unsigned i = 0;
    for (long pid; i < *n && (pid = state_of(gpu_of(d), "pid", (int)i)) >= 0; i++)
        out[i] = (struct process){.pid = (unsigned)pid, .mem_bytes = 1 << 30};
    *n = i;
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(device d, struct utilization *ret)
{
    *ret = (struct utilization){42, 17};
    return place_of(d) == WHOLE ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetTemperature(device d, int sensor, unsigned *ret)
{
    *ret = 55;
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(device d, unsigned *ret)
{
    *ret = 312500;
    return SUCCESS;
}

int nvmlDeviceGetClockInfo(device d, int type, unsigned *ret)
{
    *ret = type == 1 ? 1980 : 3201;
    return SUCCESS;
}

int nvmlDeviceGetTotalEnergyConsumption(device d, unsigned long long *ret)
{
    long n = state_of(gpu_of(d), "joule", 0);
    *ret = n > 0 ? (unsigned long long)n * 1000 : 0;
    return n > 0 ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetTotalEccErrors(device d, int kind, int since, unsigned long long *ret)
{
    long n = state_of(gpu_of(d), "ecc", 0);
    *ret = n > 0 ? (unsigned long long)n : 0;
    return SUCCESS;
}

int nvmlDeviceGetRemappedRows(device d, unsigned *c, unsigned *u, unsigned *pending,
                              unsigned *failed)
{
    *c = *u = *pending = 0;
    *failed = state_of(gpu_of(d), "remap", 0) > 0;
    return SUCCESS;
}

int nvmlEventSetCreate(uintptr_t *ret)
{
    registered_n = 0;
    *ret = 1;
    return SUCCESS;
}

int nvmlEventSetFree(uintptr_t set)
{
    return SUCCESS;
}

int nvmlDeviceRegisterEvents(device d, unsigned long long types, uintptr_t set)
{
    if (registered_n < sizeof registered / sizeof *registered)
        registered[registered_n++] = gpu_of(d);
    return SUCCESS;
}

int nvmlEventSetWait_v2(uintptr_t set, struct event *ret, unsigned timeout_ms)
{
    static size_t turns; /* each GPU has its turn */
    for (size_t i = 0; i < registered_n; i++) {
        unsigned gpu = registered[turns++ % registered_n];
        long xid = state_of(gpu, "xid", 0);
        if (xid < 0)
            continue;
        *ret = (struct event){1 + gpu * 16 + WHOLE, 8, (unsigned long long)xid, 0, 0};
        return SUCCESS;
    }
    return TIMEOUT;
}
