/* The GPUs of this host: whole ones, and the instances of those that MIG divides. */
#ifndef GPUS_H
#define GPUS_H

#include "det/err.h"
#include "vec.h"

struct gpu {
    int id;            /* its place among all of the host, also those that do not answer */
    int number;        /* as nvidia-smi counts GPUs; an instance has its GPU's */
    char *name, *uuid; /* owned */
    char *whole_uuid;  /* of the GPU that it is, or is an instance of; owned */
    int island; /* the lowest id of those that NVLink joins it with; -1: none, or an instance */
    int numa;   /* its node; -1: not known */
};
struct gpus {
    VEC(struct gpu) v;
    int next_id;
};

#define GPUS_FIND_MS 60000 /* the driver of eight GPUs may take seconds to begin */

/* By NVML (loaded at run time), else by nvidia-smi; none where there is neither. DET_ETIMEOUT: they
 * have not answered for so long. */
DET_MUST int gpus_find(struct gpus *ret, unsigned timeout_ms, struct det_err *err);
void gpus_finish(struct gpus *g);
/* Leaves those that `visible` names, in the words of CUDA_VISIBLE_DEVICES: numbers and UUIDs, or
 * how these begin, up to the first that names none; a GPU stands for its instances. NULL: all. */
void gpus_keep(struct gpus *g, const char *visible);
struct nvml;
/* Fills in island and numa, as far as the driver and the kernel tell. */
void gpus_neighbours(struct gpus *g, const struct nvml *n);

#endif
