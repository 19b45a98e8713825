/*
 * Quotas: how many slots a user may hold in a pool, and in all of them. They hold back what would
 * start; nothing that runs is stopped for them. Private to master/core.
 */
#ifndef CORE_QUOTA_H
#define CORE_QUOTA_H

#include "model.h"

void quota_init(struct core *c, const struct core_quota *quotas, size_t n); /* copied */
void quota_finish(struct core *c);
/* The user of that id, made when new; name NULL: not known. */
struct user *quota_user(struct core *c, int64_t id, const char *name);
/* Slots were placed, or are free again (negative). */
void quota_count(struct core *c, struct user *u, struct pool *pool, int64_t slots);
/* What the user may still take in the pool, beside what this pass took; INT64_MAX: no quota. */
int64_t quota_left(const struct core *c, const struct user *u, const struct pool *pool);
/* What passes took is taken back. */
void quota_taken_back(const struct core *c);
/* The most that `name` may ever hold in the pool; INT64_MAX: no quota. */
int64_t quota_max(const struct core *c, const char *name, const struct pool *pool);
/* 0, or DET_EINVAL when a request of so many slots could never start. */
DET_MUST int quota_check(const struct core *c, const char *name, const struct pool *pool,
                         int64_t slots, struct det_err *err);

#endif
