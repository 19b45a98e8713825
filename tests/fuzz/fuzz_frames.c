/*
 * Frames of the rendezvous, both ways. The input is records of a peer's number, a length and bytes:
 * rank 0's side takes them from two ranks of its group and two strangers, in pieces, and all that
 * it answers is an answer to the other side. The same bytes are also what a rank may hear instead
 * of rank 0: it takes them or says why not.
 *
 * Both files are part of this one: their sockets are the only way in otherwise, and slow.
 */
#include "comm_store.c"
#include "comm_store_server.c"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PEERS = 4, JOINED = 2, RANKS = 3, HEARD_MAX = 64 << 10 };

struct link {
    struct peer *peer; /* the server's; NULL: it has ended the connection, or none was made */
    struct comm_store rank;
};

static void require(bool ok)
{
    if (!ok)
        abort();
}

static void pair(int fd[2])
{
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
}

static struct comm_store_server *open_server(void)
{
    struct comm_store_server *s = det_zalloc(sizeof *s);
    s->listener = s->stop = -1;
    s->size = RANKS;
    s->patience_ms = UNHEARD_MS;
    hash_bytes(HASH_SHA256, "secret", strlen("secret"), s->secret);
    s->values = map_create();
    s->seen = det_zalloc(RANKS);
    s->gone = det_zalloc(RANKS);
    s->failed = det_zalloc(RANKS);
    return s;
}

/* All that a rank has been sent is answers, whole ones. */
static void drain(struct link *l)
{
    while (l->peer && comm_store_stirs(&l->rank)) {
        struct comm_store_frame f;
        det_cleanup(freep) char *value = NULL;
        require(recv_frame(&l->rank, clk_mono_ms() + 1000, &f, &value, NULL) == 0);
    }
}

static void end_link(struct comm_store_server *s, struct link *l)
{
    for (size_t i = 0; i < s->peers.n; i++)
        if (s->peers.v[i] == l->peer)
            drop_peer(s, i);
    comm_net_close(&l->rank.fd);
    l->peer = NULL;
}

/* As the server's thread does when bytes have come. */
static void hear(struct comm_store_server *s, struct link *l, const void *p, size_t n)
{
    buf_add(&l->peer->in, p, n);
    bool goes_on = take_frames(s, l->peer);
    drain(l);
    if (!goes_on)
        end_link(s, l);
    answer_due_verdicts(s);
    tell_unheard(s);
}

static void open_link(struct comm_store_server *s, struct link *l, int number)
{
    int fd[2];
    pair(fd);
    struct peer *p = det_zalloc(sizeof *p);
    *p = (struct peer){.fd = fd[0], .rank = -1, .since_ms = clk_mono_ms()};
    vec_push(&s->peers, p);
    *l = (struct link){.peer = p, .rank = {.fd = fd[1]}};
    if (number >= JOINED)
        return;
    struct comm_store_hello h = {.rank = (uint32_t)number};
    memcpy(h.secret, s->secret, sizeof h.secret);
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    comm_net_frame(&b, COMM_STORE_HELLO, "", &h, sizeof h);
    bool was_there = s->seen[number];
    hear(s, l, b.p, b.len);
    require(was_there == (l->peer == NULL));
}

static void check_server(const struct comm_store_server *s)
{
    for (size_t i = 0; i < s->peers.n; i++) {
        int rank = s->peers.v[i]->rank;
        require(rank >= -1 && rank < RANKS && (rank < 0 || (s->seen[rank] && !s->gone[rank])));
    }
}

static void serve_all(const uint8_t *data, size_t size)
{
    struct link links[PEERS] = {0};
    struct comm_store_server *s = open_server();
    for (size_t at = 0; at + 2 <= size;) {
        struct link *l = &links[data[at] % PEERS];
        size_t n = data[at + 1];
        bool ends = data[at] & 0x80;
        at += 2;
        n = n < size - at ? n : size - at;
        if (!l->peer)
            open_link(s, l, (int)(l - links));
        if (l->peer)
            hear(s, l, data + at, n);
        if (l->peer && ends)
            end_link(s, l);
        for (int i = 0; i < PEERS; i++)
            drain(&links[i]);
        check_server(s);
        at += n;
    }
    for (int i = 0; i < PEERS; i++)
        if (links[i].peer)
            end_link(s, &links[i]);
    server_destroy(s);
}

static void hear_all(const uint8_t *data, size_t size)
{
    int fd[2];
    struct det_err err = {0};
    void *answer;
    size_t n;
    pair(fd);
    struct comm_store *s = det_zalloc(sizeof *s);
    s->fd = fd[0];
    require(comm_net_send(fd[1], data, size < HEARD_MAX ? size : HEARD_MAX, NULL) == 0);
    comm_net_close(&fd[1]);
    while (recv_answer(s, COMM_STORE_VALUE, clk_mono_ms() + 1000, &answer, &n, &err) == 0) {
        require(n <= COMM_STORE_VALUE_MAX && ((char *)answer)[n] == 0);
        free(answer);
    }
    require((err.code == DET_ECORRUPT || err.code == DET_EPEER) && *err.text);
    comm_store_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    serve_all(data, size);
    hear_all(data, size);
    return 0;
}
