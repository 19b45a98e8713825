/* Whether an entrypoint's module is among the files that are sent with it. Pure. */
#ifndef CLI_MODULE_H
#define CLI_MODULE_H

#include "json.h"

/* files: what pack_dir() made. DET_EINVAL, with the module that is near: it names module:Class, and
 * the module is not there, nor a startup-hook.sh, which may bring it. */
DET_MUST int module_check(const char *entrypoint, const json_t *files, struct det_err *err);

#endif
