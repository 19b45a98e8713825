/*
 * What a step's time on the device consists of: with DET_CUDA_PROFILE=1 an event is recorded before
 * and after each kernel of the table, nothing waits for them, and when the device is closed a table
 * goes to standard error: kernel and shapes, calls, microseconds of a call, share. The first calls
 * of a shape load code and are not counted. Events cost the host about a microsecond each.
 */
#ifndef CUDA_PROFILE_H
#define CUDA_PROFILE_H

#include "cuda_impl.h"

/* `plain`, or a table of the same that keeps times, where the environment asks for it. One device
 * and one stream at a time. */
const struct det_backend *cuda_profile_table(const struct det_backend *plain);
/* Prints what was kept, and forgets it. */
void cuda_profile_finish(void);

#endif
