/*
 * The retention of logs and metrics: soon after the start and then every 24 hours, all trials are
 * looked through, some hundred at a time, and what is due of them (db_retention.h) is deleted in
 * portions with a rest between them, so that no report waits for it; then what is old of the audit
 * log and of the runs' slot use. A round that PostgreSQL's absence breaks off goes on where it was.
 * Time is the loop's, which no clock jump changes.
 */
#ifndef SHELL_RETENTION_H
#define SHELL_RETENTION_H

#include "db_retention.h"

struct shell;
struct retention;

struct retention *retention_create(struct shell *sh);
/* While the loop still runs. NULL ok. */
void retention_destroy(struct retention *t);
/* Begins a round at once; nothing when one is under way. */
void retention_now(struct retention *t);
/* What the settings say. */
struct db_retention retention_keep(const struct shell *sh);

#endif
