/*
 * The part of NVML that the agent uses, with a host as FAKE_NVML says: a letter for each GPU, its
 * UUID being GPU-<letter>.
 *   w   whole
 *   0 to 7   divided by MIG into so many instances; the first of its places is empty
 *   x   does not answer
 * Without FAKE_NVML there is no driver.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS, UNINITIALIZED = 1, NOT_FOUND = 6, GPU_IS_LOST = 15 };
enum { PLACES = 8, WHOLE = PLACES };

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
    return getenv("FAKE_NVML") ? SUCCESS : UNINITIALIZED;
}

int nvmlShutdown(void)
{
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
