/*
 * The rank's side of the sign of life (proto/progress.h). The loop touches it by itself; a client
 * does so for what it does before loop_run(), such as compiling. Without DET_PROGRESS_FILE nothing
 * happens. One thread at a time.
 */
#ifndef LOOP_ALIVE_H
#define LOOP_ALIVE_H

#include "progress.h"

/* Maps the file on first use. `batches`: training batches finished by this process. */
void loop_alive(enum progress_phase phase, uint64_t batches);
/* The same phase and batch as before: waiting for the master is not being stuck. */
void loop_alive_again(void);

#endif
