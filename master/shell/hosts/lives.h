/*
 * Which life of the cluster this is, and what is of another one.
 *
 * A database that was restored from an older copy, or one of two copies of it, gives numbers out
 * again that agents and tasks know with another meaning. So each leadership has a nonce, tokens and
 * agents say which batch of which leadership they come from, and what is not in this database's
 * past is refused, kept aside, and listed.
 */
#ifndef SHELL_LIVES_H
#define SHELL_LIVES_H

#include "agentlink.h"
#include "shell.h"

#define LIVES_MARK_MAX 9 /* the first digits of a nonce, and NUL */

struct lives;
struct db_life;
/* lives: n of them, at least one, by epoch, the last one leads; taken. */
struct lives *lives_create(struct shell *sh, struct db_life *lives, size_t n);
void lives_destroy(struct lives *l); /* NULL ok */

const char *lives_nonce(const struct lives *l);
/* A leadership's number, mark and batch are of this database's past. epoch 0: from before
 * leaderships had nonces. */
bool lives_has(const struct lives *l, int64_t epoch, const char *mark, int64_t batch);
/* Where a token that is made now comes from. */
void lives_now(const struct lives *l, int64_t *ret_epoch, char ret_mark[LIVES_MARK_MAX],
               int64_t *ret_batch);
/* What each answer to an agent says. New reference. */
json_t *lives_json(const struct lives *l);
/* An agent that comes: DET_ESTALE if it has served another life, with what to do; said in the log
 * once, listed by lives_refused(), and the ids it knows are skipped. has_tasks: it holds some. */
DET_MUST int lives_judge(struct lives *l, const char *agent_id, const struct link_life *seen,
                         bool has_tasks, struct det_err *err);
/* [{agentId, time, reason}] of those refused and not heard better of since. New reference. */
json_t *lives_refused(const struct lives *l);

#endif
