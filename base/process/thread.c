#include "thread.h"

#include <signal.h>
#include <stddef.h>

/* A thread inherits the mask of the one that starts it. */
int thread_start(pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(ret, attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int thread_start_detached(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int rc = thread_start(&thread, &attr, run, arg);
    pthread_attr_destroy(&attr);
    return rc;
}
