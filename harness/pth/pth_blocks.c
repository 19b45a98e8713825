/*
 * The caller hashes what it puts into the blocks of a ring, while it is in the processor's cache;
 * a thread writes them, and each is filled again after that.
 *
 * Whole blocks go to the disk past the page cache (O_DIRECT): that takes a fraction of the
 * processor's time, which training needs, and leaves what training reads in the cache. Where a file
 * system does not have that, and for what is less than a block, the kernel's cache is written to,
 * and the disk set to work on it early, so that the publisher's fsync has less to wait for.
 */
#include "pth_blocks.h"

#include "hash.h"
#include "mem.h"
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define RING  8
#define BLOCK (PTH_ROOM / RING)
#define ALIGN 4096 /* what O_DIRECT asks of memory */

struct blocks {
    char *path;
    uint64_t at; /* bytes, those of the open block included */
    char *ring;  /* RING blocks; own: to be freed */
    char *own;
    size_t filled; /* of the open block, the one after those given */
    struct hash *hash;

    pthread_t writer; /* fd, direct and err are its own while it runs */
    bool running, direct;
    int fd;
    struct det_err err;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t moved;
    uint64_t given, done; /* blocks */
    size_t bytes[RING];   /* of block k, at k % RING */
    bool ended;
    int rc; /* the writer's, with err; after it blocks are passed over */
};

/* ---- the writer ---- */

static void write_cached(struct blocks *b)
{
    int flags = fcntl(b->fd, F_GETFL);
    fcntl(b->fd, F_SETFL, flags & ~O_DIRECT);
    b->direct = false;
}

static int write_block(struct blocks *b, const char *p, size_t n)
{
    if (b->direct && n < BLOCK)
        write_cached(b);
    for (size_t k = 0; k < n;) {
        ssize_t got = write(b->fd, p + k, n - k);
        if (got >= 0)
            k += (size_t)got;
        else if (errno == EINVAL && b->direct) /* its rules for places and sizes are others */
            write_cached(b);
        else if (errno != EINTR)
            return det_fail_errno(&b->err, DET_EIO, errno, "write %s", b->path);
    }
    if (!b->direct)
        sync_file_range(b->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    return 0;
}

static void *write_blocks(void *arg)
{
    struct blocks *b = arg;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        while (b->done == b->given && !b->ended)
            pthread_cond_wait(&b->moved, &b->lock);
        if (b->done == b->given)
            break;
        size_t i = b->done % RING, n = b->bytes[i];
        int rc = b->rc;
        pthread_mutex_unlock(&b->lock);
        if (rc == 0)
            rc = write_block(b, b->ring + i * BLOCK, n);
        pthread_mutex_lock(&b->lock);
        b->rc = rc;
        b->done++;
        pthread_cond_broadcast(&b->moved);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static int start_writer(struct blocks *b, struct det_err *err)
{
    int rc = thread_start(&b->writer, NULL, write_blocks, b);
    b->running = rc == 0;
    return rc == 0 ? 0 : det_fail_errno(err, DET_ENOMEM, rc, "write %s: a thread", b->path);
}

/* ---- the caller ---- */

static int open_file(struct blocks *b)
{
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    b->fd = open(b->path, flags | O_DIRECT, 0644);
    b->direct = b->fd >= 0;
    if (b->fd < 0 && errno == EINVAL)
        b->fd = open(b->path, flags, 0644);
    return b->fd;
}

int blocks_create(const char *path, void *room, struct blocks **ret, struct det_err *err)
{
    struct blocks *b = det_zalloc(sizeof *b);
    b->path = det_strdup(path);
    b->hash = hash_create(HASH_XXH128);
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->moved, NULL);
    int rc = open_file(b) < 0 ? det_fail_errno(err, DET_EIO, errno, "create %s", path) : 0;
    b->own = rc < 0 || room ? NULL : aligned_alloc(ALIGN, PTH_ROOM);
    b->ring = room ? room : b->own;
    if (rc == 0 && !b->ring)
        rc = det_fail(err, DET_ENOMEM, "write %s: no memory for its blocks", path);
    if (rc == 0)
        rc = start_writer(b, err);
    if (rc < 0)
        blocks_destroy(b);
    else
        *ret = b;
    return rc;
}

/* The open block to the writer; the next one once it is free. */
static int give_block(struct blocks *b, struct det_err *err)
{
    pthread_mutex_lock(&b->lock);
    b->bytes[b->given % RING] = b->filled;
    b->given++;
    b->filled = 0;
    pthread_cond_broadcast(&b->moved);
    while (b->given - b->done == RING)
        pthread_cond_wait(&b->moved, &b->lock);
    int rc = b->rc;
    pthread_mutex_unlock(&b->lock);
    return rc < 0 ? det_fail_as(err, rc, &b->err) : 0;
}

int blocks_put(struct blocks *b, const void *p, size_t n, struct det_err *err)
{
    const char *from = p;
    int rc = 0;
    while (rc == 0 && n > 0) {
        size_t part = BLOCK - b->filled < n ? BLOCK - b->filled : n;
        hash_add(b->hash, from, part);
        memcpy(b->ring + b->given % RING * BLOCK + b->filled, from, part);
        b->filled += part;
        b->at += part;
        from += part;
        n -= part;
        if (b->filled == BLOCK)
            rc = give_block(b, err);
    }
    return rc;
}

uint64_t blocks_at(const struct blocks *b)
{
    return b->at;
}

static int end_writer(struct blocks *b, struct det_err *err)
{
    pthread_mutex_lock(&b->lock);
    b->ended = true;
    pthread_cond_broadcast(&b->moved);
    pthread_mutex_unlock(&b->lock);
    if (b->running)
        pthread_join(b->writer, NULL);
    b->running = false;
    return b->rc < 0 ? det_fail_as(err, b->rc, &b->err) : 0;
}

int blocks_end(struct blocks *b, char *ret_hash, struct det_err *err)
{
    int rc = b->filled ? give_block(b, err) : 0;
    if (rc == 0)
        rc = end_writer(b, err);
    if (rc == 0)
        hash_end(det_take(b->hash), ret_hash);
    if (rc == 0 && close(b->fd) < 0)
        rc = det_fail_errno(err, DET_EIO, errno, "close %s", b->path);
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
    det_ignore(end_writer(b, NULL), "what was not finished is thrown away");
    if (b->hash)
        hash_end(b->hash, unused);
    pthread_cond_destroy(&b->moved);
    pthread_mutex_destroy(&b->lock);
    det_closep(&b->fd);
    free(b->own);
    free(b->path);
    free(b);
}
