/*
 * Trials that run elsewhere are given up when nothing was heard of them for `unmanaged_timeout`
 * (db_unmanaged.h); each look is a tenth of that after the last, and at once after a full one.
 */
#ifndef SHELL_SILENCE_H
#define SHELL_SILENCE_H

struct shell;
struct silence;

/* The first look is a whole timeout away: clients have that time to find a master that was down. So
 * is the first one after the database was away, when nobody could be heard. */
struct silence *silence_create(struct shell *sh);
/* While the loop still runs. NULL ok. */
void silence_destroy(struct silence *s);

#endif
