/*
 * Sums of trials that have ended, made where they changed (db_blocks.h): a little at a time with a
 * rest between, so that no report waits for it. Until then those trials are read one by one.
 */
#ifndef SHELL_BLOCKS_H
#define SHELL_BLOCKS_H

struct shell;
struct blocks;

struct blocks *blocks_create(struct shell *sh);
/* While the loop still runs. NULL ok. */
void blocks_destroy(struct blocks *b);

#endif
