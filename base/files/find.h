/* Where programs and modules lie. Paths are the caller's to free; NULL: there is none. */
#ifndef BASE_FIND_H
#define BASE_FIND_H

#include <stdbool.h>

/* The program that runs. Where another version replaced its file, the name ends in " (deleted)". */
char *find_self(void);
/* What lies at `place`, a path from the directory of the program that runs ("det-task",
 * "../lib/det/x.so"), if it may be accessed so (access(2)'s mode). It is the name that counts: the
 * file that this process runs may have been replaced by another version. */
char *find_beside(const char *place, int mode);

/* name's executable file on `path` (NULL: /usr/bin:/bin), or name itself when it has a slash,
 * whether or not there is one. A place that is not absolute is passed over: it would be another
 * directory for each process. */
char *find_on_path(const char *path, const char *name);

/* The first folder on the way to path, an absolute one, also by links, that the effective user may
 * not enter. NULL: none is known. */
char *find_closed_folder(const char *path);

/* The Python of trials: `given`, a name or a path, be it without torch; where none is given (NULL,
 * "") the first of python3 on `path` and /usr/bin/python3 that has torch. */
char *find_python(const char *path, const char *given);
/* Runs it: Python alone knows its paths. */
bool find_has_torch(const char *python);

#endif
