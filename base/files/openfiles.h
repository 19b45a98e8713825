/* What the system allows a daemon. */
#ifndef BASE_OPENFILES_H
#define BASE_OPENFILES_H

/* Raises the limit of open files to what may be had without asking, 65,536 at most: a login's soft
 * limit of 1,024 is meant for programs that use select(). */
void openfiles_raise(void);

#endif
