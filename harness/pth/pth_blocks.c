/*
 * Blocks are written at multiples of their size, from aligned memory: the kernel copies fastest
 * then. The disk is set to work on them early, so that the publisher's fsync has less to wait for.
 * The thread that hashes is at most RING blocks behind.
 */
#include "pth_blocks.h"

#include "fsx.h"
#include "hash.h"
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define BLOCK ((size_t)1 << 20)
#define RING 8
#define EARLY ((uint64_t)8 << 20)

struct blocks {
    char *path;
    int fd;
    uint64_t at;   /* bytes, those of the open block included */
    char *ring;    /* RING blocks with a digest, else one */
    char *open;    /* the block that is being filled */
    size_t filled; /* of it */

    struct hash *hash; /* NULL: no digest. The thread's, and what follows the lock's */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t moved; /* one of those below */
    uint64_t given, hashed;
    size_t bytes[RING]; /* of block k, at k % RING */
    bool ended;
};

static void *hash_behind(void *arg)
{
    struct blocks *b = arg;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        while (b->hashed == b->given && !b->ended)
            pthread_cond_wait(&b->moved, &b->lock);
        if (b->hashed == b->given)
            break;
        size_t i = b->hashed % RING;
        pthread_mutex_unlock(&b->lock);
        hash_add(b->hash, b->ring + i * BLOCK, b->bytes[i]);
        pthread_mutex_lock(&b->lock);
        b->hashed++;
        pthread_cond_signal(&b->moved);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* Signals are the main thread's. */
static int start_hashing(struct blocks *b, struct det_err *err)
{
    sigset_t all, before;
    b->hash = hash_create(HASH_SHA256);
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->moved, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&b->thread, NULL, hash_behind, b);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        return 0;
    char unused[HASH_HEX_MAX];
    hash_end(det_take(b->hash), unused);
    return det_fail(err, DET_ENOMEM, "write %s: a thread that hashes: %s", b->path, strerror(rc));
}

static void end_hashing(struct blocks *b, char *ret_sha256)
{
    pthread_mutex_lock(&b->lock);
    b->ended = true;
    pthread_cond_signal(&b->moved);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    pthread_cond_destroy(&b->moved);
    pthread_mutex_destroy(&b->lock);
    hash_end(det_take(b->hash), ret_sha256);
}

/* The open block to the thread; the next one in its place, once it is free. */
static void give(struct blocks *b)
{
    pthread_mutex_lock(&b->lock);
    b->bytes[b->given % RING] = b->filled;
    b->given++;
    pthread_cond_signal(&b->moved);
    while (b->given - b->hashed == RING)
        pthread_cond_wait(&b->moved, &b->lock);
    pthread_mutex_unlock(&b->lock);
    b->open = b->ring + b->given % RING * BLOCK;
}

int blocks_create(const char *path, bool hashed, struct blocks **ret, struct det_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return det_fail(err, DET_EIO, "create %s: %s", path, strerror(errno));
    struct blocks *b = det_zalloc(sizeof *b);
    b->path = det_strdup(path);
    b->fd = fd;
    b->ring = b->open = aligned_alloc(BLOCK, hashed ? RING * BLOCK : BLOCK);
    int rc = b->ring ? 0 : det_fail(err, DET_ENOMEM, "write %s: no memory for a block", path);
    if (rc == 0 && hashed)
        rc = start_hashing(b, err);
    if (rc < 0)
        blocks_destroy(b);
    else
        *ret = b;
    return rc;
}

static int flush(struct blocks *b, struct det_err *err)
{
    int rc = fsx_write_all(b->fd, b->open, b->filled, err);
    if (rc < 0)
        return det_wrap(err, rc, "write %s", b->path);
    if (b->hash)
        give(b);
    b->filled = 0;
    if (b->at % EARLY == 0)
        sync_file_range(b->fd, (off_t)(b->at - EARLY), EARLY, SYNC_FILE_RANGE_WRITE);
    return 0;
}

int blocks_put(struct blocks *b, const void *p, size_t n, struct det_err *err)
{
    const char *from = p;
    int rc = 0;
    while (rc == 0 && n > 0) {
        size_t part = BLOCK - b->filled < n ? BLOCK - b->filled : n;
        memcpy(b->open + b->filled, from, part);
        b->filled += part;
        b->at += part;
        from += part;
        n -= part;
        if (b->filled == BLOCK)
            rc = flush(b, err);
    }
    return rc;
}

uint64_t blocks_at(const struct blocks *b)
{
    return b->at;
}

int blocks_end(struct blocks *b, char *ret_sha256, struct det_err *err)
{
    int rc = b->filled ? flush(b, err) : 0;
    if (rc == 0) /* the disk goes on while the last blocks are hashed */
        sync_file_range(b->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    if (rc == 0 && b->hash)
        end_hashing(b, ret_sha256);
    if (rc == 0 && close(b->fd) < 0)
        rc = det_fail(err, DET_EIO, "close %s: %s", b->path, strerror(errno));
    if (rc == 0)
        b->fd = -1;
    blocks_destroy(b);
    return rc;
}

void blocks_destroy(struct blocks *b)
{
    char unused[HASH_HEX_MAX];
    if (!b)
        return;
    if (b->hash)
        end_hashing(b, unused);
    det_closep(&b->fd);
    free(b->ring);
    free(b->path);
    free(b);
}
