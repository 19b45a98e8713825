/*
 * The spool of a rank's reports: a file of calls that must reach the master, in order. The rank
 * appends and sends; when it dies, whoever opens the file next (det-task) sends what was left. The
 * file is the queue: what spool_append() returned for survives kill -9 of the process (not a power
 * failure; there is no fsync, as a training loop must not wait for a disk).
 *
 * The path is given to a rank in the environment variable DET_REPORT_SPOOL. Only one process may
 * have it open: a second one gets DET_ESTATE until the first is gone.
 *
 * Format, little-endian. Header: "DETSPOL1", u64 offset of the first record that was not yet sent.
 * Then records: u32 bytes, u32 CRC-32C of the payload, payload; the payload is four NUL-terminated
 * strings: seq, method, path, body. A torn last record (a crash while writing) is cut off by the
 * next open. When everything was sent the file shrinks back to its header. It has a limit: who
 * appends looks at spool_is_full() first, and waits until all was sent.
 *
 * A record may be sent twice (a crash between the master's answer and spool_sent()), so every call
 * that is spooled must be idempotent. `seq` ("<run>.<n>", header Det-Seq) is for people who look
 * at the wire: the same number twice is a repeat.
 *
 * Threads: one may append while another one sends.
 */
#ifndef SPOOL_H
#define SPOOL_H

#include "det/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPOOL_ENV        "DET_REPORT_SPOOL"
#define SPOOL_HEADER     "Det-Seq"
#define SPOOL_RECORD_MAX (32u << 20)         /* as the master takes */
#define SPOOL_BYTES_MAX  ((uint64_t)1 << 30) /* of the file */

struct spool_record {
    const char *seq, *method, *path, *body; /* body "" means none */
};

struct spool;

/* Opens or makes the file (0600). path NULL: a queue in memory that dies with the process.
 * DET_ECORRUPT: not a spool; DET_ESTATE: open elsewhere. */
DET_MUST int spool_open(const char *path, struct spool **ret, struct det_err *err);
void spool_close(struct spool *s); /* NULL ok; the file stays */

/* DET_ETOOBIG, or DET_EIO (full disk) with the path; then nothing was appended. */
DET_MUST int spool_append(struct spool *s, const struct spool_record *r, struct det_err *err);
/* The oldest record that was not sent; its strings live until the next call of spool_next().
 * DET_ENOENT when there is none. */
DET_MUST int spool_next(struct spool *s, struct spool_record *ret, struct det_err *err);
/* The record behind it, and behind those that were taken since, for who can send several at once;
 * DET_ENOENT when there is none. Its strings, and no others, live until the next call of either. */
DET_MUST int spool_more(struct spool *s, struct spool_record *ret, struct det_err *err);
/* That record goes along. */
void spool_take(struct spool *s);
/* The record of the last spool_next() arrived, and those that were taken since. */
DET_MUST int spool_sent(struct spool *s, struct det_err *err);
/* Something is unsent, and the file has SPOOL_BYTES_MAX or what spool_limit() set. */
bool spool_is_full(struct spool *s);
void spool_limit(struct spool *s, uint64_t bytes);
/* Bytes not yet sent. */
uint64_t spool_pending(struct spool *s);

#endif
