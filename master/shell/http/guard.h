/*
 * How often somebody may be wrong: failed log-ins count against the name at its address and against
 * the address, in buckets that leak (the generic cell rate algorithm of ITU-T I.371). An attempt is
 * counted as it begins and given back when it was right, so that many at once help nobody. A name
 * alone is not counted: strangers could lock its owner out. Another one counts what people ask of a
 * trial, which is the name there, and who asks the address. Pure: the time is passed in.
 */
#ifndef SHELL_GUARD_H
#define SHELL_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/* At once, and one more after each so many ms. */
enum {
    GUARD_NAME_BURST = 10,
    GUARD_NAME_MS = 6000,
    GUARD_ADDRESS_BURST = 100,
    GUARD_ADDRESS_MS = 1000,
    GUARD_KEYS_MAX = 20000
};

struct guard;
struct guard *guard_create(void);
void guard_destroy(struct guard *g); /* NULL ok */
/* Counts an attempt. 0: it may begin; else how many ms later it might, and nothing is counted. */
int64_t guard_begin(struct guard *g, const char *name, const char *address, int64_t now_ms);
/* It was right, or not judged. */
void guard_forgive(struct guard *g, const char *name, const char *address);

/* Lines about refusals, at a rate that a flood cannot turn against the disk. */
enum { NOTES_BURST = 50, NOTES_MS = 1000 };
struct notes {
    int64_t empty_ms; /* as a bucket's */
    int64_t left_out; /* since the last line */
};
/* Whether a line may be written now; *ret_more: how many were left out before it. */
bool notes_may(struct notes *n, int64_t now_ms, int64_t *ret_more);

#endif
