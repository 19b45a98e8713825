/*
 * From an entrypoint ("model_def:DigitsTrial", dots are folders) to the trial's table.
 *
 * The module is looked for in the working directory as .py (a Python trial: refused here with what
 * to do), then .so, then .c. A .c file is compiled, as the task's own user, into a cache of that
 * user: DET_CACHE_DIR, else $XDG_CACHE_HOME/det, else ~/.cache/det, else /tmp/det-cache-<uid>; the
 * key is the hash of what the compiler reads, its identity and the flags (model_cc.h); what the
 * assembler reads by .incbin is not in it. Ranks of one host meet at a lock: one compiles, all
 * load.
 */
#ifndef MODEL_H
#define MODEL_H

#include "det/trial.h"

#define MODEL_NAME_MAX 200

struct model_entry {
    char module[MODEL_NAME_MAX]; /* "pkg.model_def" */
    char class[MODEL_NAME_MAX];  /* "DigitsTrial" */
};

enum model_kind { MODEL_PYTHON, MODEL_SO, MODEL_C };

/* DET_EINVAL unless text is module:Class. */
DET_MUST int model_entry_parse(const char *text, struct model_entry *ret, struct det_err *err);
/* The module's file below the working directory; caller frees *ret_path. DET_ENOENT lists what was
 * looked for. */
DET_MUST int model_find(const struct model_entry *e, char **ret_path, enum model_kind *ret_kind,
                        struct det_err *err);

/* The shared object of a .c file, compiled unless the cache has it; caller frees *ret_so. `quiet`:
 * another rank of this host prints what the compiler says. The compiler's messages go to stderr
 * unchanged; then DET_EINVAL. */
DET_MUST int model_compile(const char *c_path, bool quiet, char **ret_so, struct det_err *err);

/* The folder of det/trial.h: DET_INCLUDE_DIR (several: a:b), else the include folder beside that of
 * this program, or of this library. Caller frees; NULL with *err. */
char *model_include_dirs(struct det_err *err);

/* "model_def.c", "pkg/model_def.so": the same module, and no class yet (class is ""). */
DET_MUST int model_entry_of_file(const char *path, struct model_entry *ret, struct det_err *err);

/* Finds, compiles, loads and checks. The object stays loaded for the life of the process. An empty
 * class becomes the only one that the module exports. */
DET_MUST int model_load(struct model_entry *e, bool quiet, const struct det_trial_type **ret,
                        struct det_err *err);

#endif
