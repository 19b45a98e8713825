/* TCP for the rendezvous: dial, whole sends and receives with a deadline, frames. */
#ifndef COMM_NET_H
#define COMM_NET_H

#include "buf.h"
#include "comm_store.h"
#include "det/err.h"
#include <stddef.h>
#include <stdint.h>

/* A connected socket (TCP_NODELAY, close-on-exec), or a negative code. */
DET_MUST int comm_net_dial(const char *host, int port, int64_t deadline_ms, struct det_err *err);
/* A listening, non-blocking socket on host (NULL: all addresses), or a negative code. */
DET_MUST int comm_net_listen(const char *host, int port, struct det_err *err);
/* Also for the processes that were forked meanwhile, a data loader's workers, which have it too:
 * peers must see the end, and the port be free. */
void comm_net_close(int *fd);
/* All n bytes. DET_ETIMEOUT for a peer that takes none for COMM_NET_SEND_MS, DET_EPEER for one that
 * left. */
#define COMM_NET_SEND_MS 5000
DET_MUST int comm_net_send(int fd, const void *p, size_t n, struct det_err *err);
/* Exactly n bytes. DET_EPEER when the peer closed, DET_ETIMEOUT past the deadline. */
DET_MUST int comm_net_recv(int fd, void *p, size_t n, int64_t deadline_ms, struct det_err *err);
void comm_net_frame(struct buf *out, enum comm_store_op op, const char *key, const void *p,
                    size_t n);

#endif
