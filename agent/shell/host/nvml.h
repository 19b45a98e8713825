/* NVIDIA's management library, loaded at run time through its stable C interface: no header of
 * NVIDIA's is needed. Each call may hang for as long as the driver does. */
#ifndef NVML_H
#define NVML_H

#include <stdint.h>

typedef struct nvml_device *nvml_device; /* opaque */
typedef struct nvml_events *nvml_events; /* likewise */

enum {
    NVML_OK = 0,
    NVML_UNINITIALIZED = 1,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_TIMEOUT = 10,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
};
enum { NVML_TEMPERATURE_GPU = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };
enum { NVML_ECC_UNCORRECTED = 1, NVML_ECC_VOLATILE = 0 };
enum { NVML_PEERS_NVLINK = 2, NVML_PEERS_OK = 0 };
#define NVML_EVENT_XID UINT64_C(8)

struct nvml_memory {
    unsigned long long total, free, used; /* bytes */
};
struct nvml_utilization {
    unsigned gpu, memory; /* percent */
};
/* Of the calls "_v2" alone: drivers 535.43 to 535.86 have larger ones behind "_v3". */
struct nvml_process {
    unsigned pid;
    unsigned long long mem_bytes; /* all ones: not known */
    unsigned gpu_instance, compute_instance;
};
struct nvml_pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char text[32];
};
struct nvml_event {
    nvml_device device;
    unsigned long long type, data; /* data: the XID */
    unsigned gpu_instance, compute_instance;
};

struct nvml {
    void *lib;
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *n);
    int (*handle)(unsigned i, nvml_device *ret);
    int (*name)(nvml_device d, char *out, unsigned len);
    int (*uuid)(nvml_device d, char *out, unsigned len);
    /* NULL: the driver has none of it. */
    int (*mig_mode)(nvml_device d, unsigned *now, unsigned *pending);
    int (*mig_most)(nvml_device d, unsigned *n);
    int (*mig_handle)(nvml_device d, unsigned i, nvml_device *ret);
    int (*mig_whole)(nvml_device d, nvml_device *ret); /* the GPU that an instance is of */
    int (*by_uuid)(const char *uuid, nvml_device *ret);
    int (*memory)(nvml_device d, struct nvml_memory *ret);
    int (*processes)(nvml_device d, unsigned *n, struct nvml_process *out);
    int (*utilization)(nvml_device d, struct nvml_utilization *ret);
    int (*temperature)(nvml_device d, int sensor, unsigned *ret_c);
    int (*power)(nvml_device d, unsigned *ret_mw);
    int (*clock)(nvml_device d, int type, unsigned *ret_mhz);
    int (*energy)(nvml_device d, unsigned long long *ret_mj); /* since it was reset */
    int (*ecc)(nvml_device d, int kind, int since, unsigned long long *ret);
    int (*remapped)(nvml_device d, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                    unsigned *failed);
    /* Whether two GPUs reach each other in one way, NVLink say, also through an NVSwitch. */
    int (*peers)(nvml_device a, nvml_device b, int way, int *ret_status);
    int (*pci)(nvml_device d, struct nvml_pci *ret);
    int (*events_create)(nvml_events *ret);
    int (*events_free)(nvml_events set);
    int (*events_add)(nvml_device d, unsigned long long types, nvml_events set);
    int (*events_wait)(nvml_events set, struct nvml_event *ret, unsigned timeout_ms);
};

/* 0, or -1 where there is none: n->lib may be loaded then too. */
int nvml_load(struct nvml *n);
void nvml_unload(struct nvml *n);

#endif
