/*
 * Which of several children died first. Those that have died meanwhile are all the same to
 * waitpid(), which gives the eldest; but who is left alone by the first to die soon follows it, and
 * only the first one says why.
 */
#ifndef BASE_DEATHS_H
#define BASE_DEATHS_H

#include <sys/types.h>

/* A descriptor of the caller's; -1: this kernel keeps no order, and all below does without it. */
int deaths_open(void);
/* A child of the caller's that lives, or has died and was not waited for. */
void deaths_add(int deaths, pid_t pid);
/* As waitpid(-1, status, WNOHANG), and of those that were added in the order of their deaths. */
pid_t deaths_wait(int deaths, int *status);

#endif
