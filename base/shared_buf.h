/* Bytes of several owners: whoever makes them fills the buffer, then all only read it. For one
 * thread. */
#ifndef BASE_SHARED_BUF_H
#define BASE_SHARED_BUF_H

#include "buf.h"

struct shared_buf {
    struct buf b;
    int owners;
};

struct shared_buf *shared_buf_create(void); /* empty, with one owner */
struct shared_buf *shared_buf_ref(struct shared_buf *s);
void shared_buf_unref(struct shared_buf *s); /* the last one frees it; NULL ok */

#endif
