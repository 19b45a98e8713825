/* The steps of the master's start: identity, first admin, rebuilding the core, telling the world.
 */
#ifndef SHELL_STARTUP_H
#define SHELL_STARTUP_H

#include "core.h"
#include "db_cluster.h"
#include "shell.h"

/* Blocking. Reads the secrets, sets sh->cluster_id and master_id, gives admin its first password,
 * writes the agents' token. */
DET_MUST int startup_identity(struct shell *sh, struct db_cluster *ret, struct det_err *err);
/* Blocking. Reads which life of the cluster this is. */
DET_MUST int startup_lives(struct shell *sh, struct det_err *err);
/* Blocking. *owed is what the restart repeats, for driver_start(). */
DET_MUST int startup_restore(struct shell *sh, struct core **ret, struct core_effects *owed,
                             struct det_err *err);
/* Where this master can be reached, as far as it knows: "http://HOST:PORT". After http_create(). */
void startup_url(const struct shell *sh, char *ret, size_t max);
/* The ready line, port and ready file. */
DET_MUST int startup_announce(struct shell *sh, struct det_err *err);

#endif
