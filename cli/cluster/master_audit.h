/* det master audit: private to master*.c. */
#ifndef CLI_MASTER_AUDIT_H
#define CLI_MASTER_AUDIT_H

#include "cli.h"

extern const struct opt master_audit_opts[];
DET_MUST int master_audit(struct cli *c, struct det_err *err);

#endif
