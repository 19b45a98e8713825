/*
 * What took GPUs out until they are reset, kept in gpu-errors.json of the agent's work directory:
 * the driver tells an error once, to who listens then, and the agent may begin anew before the
 * reset. An error counts no more once the host was booted since, or the GPU's count of energy,
 * which rises while it is not reset, is lower than it was then. One thread's.
 */
#ifndef GPUERRORS_H
#define GPUERRORS_H

#include <stdint.h>

struct gpuerrors;
/* A file that cannot be read is as none, with a line in the log. work_dir is copied. */
struct gpuerrors *gpuerrors_open(const char *work_dir);
void gpuerrors_close(struct gpuerrors *e); /* NULL ok */
/* Of the whole GPU. energy_mj: used since it was reset; 0: not known. */
void gpuerrors_put(struct gpuerrors *e, const char *uuid, unsigned xid, uint64_t energy_mj);
/* The first since its last reset; 0: none. */
unsigned gpuerrors_get(struct gpuerrors *e, const char *uuid, uint64_t energy_mj);

#endif
