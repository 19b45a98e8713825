/* Threads beside the first one of a program: signals are that one's business, so these get none. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* 0, or the system's code (of pthread_create(3)). attr may be NULL. */
int thread_start(pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *), void *arg);
/* One that nobody joins. */
int thread_start_detached(void *(*run)(void *), void *arg);

#endif
