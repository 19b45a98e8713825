/*
 * Memory that was freed in small pieces goes back to the system: what a large request or thousands
 * of connections had lies between what lives on, and the C library would keep it for ever.
 */
#ifndef SHELL_TRIM_H
#define SHELL_TRIM_H

#include <uv.h>

struct trim;
struct trim *trim_create(uv_loop_t *loop);
void trim_destroy(struct trim *t); /* NULL ok */
/* Within some seconds; however often it is asked for, seldom. NULL ok. */
void trim_soon(struct trim *t);

#endif
