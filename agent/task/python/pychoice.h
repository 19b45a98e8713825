/*
 * Which Python a task runs. In this order: what startup-hook.sh chose (DET_PYTHON_EXECUTABLE, or
 * another python3 first on PATH, as `activate` does it), the configuration's environment.python,
 * DET_PYTHON_EXECUTABLE, the first of python3 on PATH and /usr/bin/python3 that has torch. Here is
 * the choice; it looks at files, with the rights of the caller, and runs none of them.
 */
#ifndef PYCHOICE_H
#define PYCHOICE_H

#include "det/err.h"
#include "json.h"
#include <stdbool.h>

struct pychoice {
    char *exe;    /* absolute */
    char *folder; /* of a virtual environment; NULL: exe is of none */
};
#define PYCHOICE_NONE ((struct pychoice){0})

/* wanted: the name of an interpreter on `path`, its path, or a folder with bin/python3 or
 * bin/python; what is not absolute is beneath `work`, a folder there before a name. DET_ENOENT:
 * there is no such thing; DET_EPERM: it is there, and by its mode or a folder's this account may
 * not run it; DET_EIO: a place where it may be does not answer, or keeps the account out for
 * another reason, which may pass. *ret is to be finished. */
DET_MUST int pychoice_find(const char *wanted, const char *path, const char *work,
                           struct pychoice *ret, struct det_err *err);
void pychoice_finish(struct pychoice *c);

/* In env (an object of strings), as `activate` does it: its folder comes first on PATH, one of a
 * virtual environment is named in VIRTUAL_ENV, and DET_PYTHON_EXECUTABLE is exe. */
void pychoice_apply(const struct pychoice *c, json_t *env);
/* PATH finds something else as python or python3. pychoice_write_names() mends that. */
bool pychoice_lacks_names(const struct pychoice *c, const json_t *env);
/* Writes python and python3, which run exe, into a new folder `name` beneath dirfd. */
DET_MUST int pychoice_write_names(const struct pychoice *c, int dirfd, const char *name,
                                  struct det_err *err);

/* What a hook chose, from the environments before and after: a path or a name. NULL: nothing, or
 * what was there is gone. Caller frees. */
char *pychoice_of_hook(const json_t *before, const json_t *after);

/* exe is a distribution's own Python, into which pip installs nothing (PEP 668). */
bool pychoice_is_managed(const char *exe);
/* A new folder `name` beneath dirfd, which is `path`: a virtual environment that sees all that exe
 * does, with a pip of its own. */
DET_MUST int pychoice_write_layer(const char *exe, int dirfd, const char *name, const char *path,
                                  struct det_err *err);

/* Puts `folder` before all others on env's PATH. */
void pychoice_put_first(json_t *env, const char *folder);

#endif
