/* `--ranks N`: one process for each rank on this host, over loopback. */
#ifndef RUN_RANKS_H
#define RUN_RANKS_H

#include "det/err.h"

/* Forks n ranks. In a rank: -1, with RANK, WORLD_SIZE and so on in its environment; it goes on as
 * if a launcher had started it. In the parent: when all have ended, the exit code of the run (that
 * of the first rank to fail; the others are then ended); their output was printed with "[rank=N] "
 * before each line. Before any thread is started. */
DET_MUST int run_ranks(int n, struct det_err *err);

#endif
