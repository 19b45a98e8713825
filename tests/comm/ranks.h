/* N ranks as processes: each runs fn and exits; the parent gathers their exit codes with a
 * deadline. */
#ifndef RANKS_H
#define RANKS_H

#include "comm.h"

#include <stdbool.h>
#include <stdio.h>

/* A free TCP port of the loopback, kept until the next one: whoever says SO_REUSEADDR may listen
 * there, and nobody else is given it. */
int ranks_free_port(void);
/* Options of a rank on this host. */
struct comm_options ranks_options(int rank, int size, int port);
/* Runs fn(rank, size, port, arg) in `size` processes. codes[r] = its result (0..255), 1000 +
 * signal, or -1 when it had stopped itself or was still there after deadline_ms (it is killed). */
void ranks_run(int size, int (*fn)(int rank, int size, int port, void *arg), void *arg,
               int deadline_ms, int *codes);
/* The same where all must give 0: asserts it. */
void ranks_pass(int size, int (*fn)(int rank, int size, int port, void *arg), void *arg,
                int deadline_ms);

/* In fn, which has `rank` and `err`: a check that fails is named, and ends the rank. */
#define RANK_CHECK(x)                                                                              \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "rank %d: line %d: %s: %s\n", rank, __LINE__, #x, err.text);           \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

#endif
