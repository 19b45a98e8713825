/* Which connection ends when: by its own limits, and to make room for another. */
#include "http_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static int ends[16]; /* the clients' ends, closed by finish() */
static size_t ends_n;

static struct http_peer *peer_add(struct http_peers *all, uint64_t now_ms)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    ends[ends_n++] = fds[1];
    return http_peer_add(all, fds[0], now_ms);
}

static void finish(struct http_peers *all)
{
    for (int i = 0; i < PEER_STATES; i++)
        while (all->lists[i].first) {
            close(all->lists[i].first->fd);
            http_peer_remove(all, all->lists[i].first);
        }
    while (ends_n > 0)
        close(ends[--ends_n]);
    assert_int_equal(all->count, 0);
}

/* The client sees its end. */
static bool is_cut(const struct http_peer *p, int end)
{
    char c;
    bool ended = recv(end, &c, 1, MSG_DONTWAIT) == 0;
    assert_int_equal(ended, p->state == PEER_CUT);
    return ended;
}

static void test_limits(void **state)
{
    struct http_peers all = {0};
    struct http_peer *silent = peer_add(&all, 1000), *idle = peer_add(&all, 1000),
                     *half = peer_add(&all, 1000), *slow = peer_add(&all, 1000),
                     *busy = peer_add(&all, 1000);
    http_peer_idle(&all, idle, 1000);
    http_peer_begins(&all, half, 1000);
    http_peer_begins(&all, slow, 1000);
    http_peer_in_hand(&all, busy, 1000);
    for (uint64_t t = 6000; t <= 31000; t += 5000) {
        http_peer_sent(&all, slow, 1, t);
        http_peers_sweep(&all, t);
        assert_int_equal(is_cut(half, ends[2]), t > 16000);
        assert_int_equal(is_cut(silent, ends[0]), t > 21000);
        assert_false(is_cut(slow, ends[3]));
    }
    http_peers_sweep(&all, 31001); /* a byte now and then is too slow */
    assert_true(is_cut(slow, ends[3]));
    http_peers_sweep(&all, 151000);
    assert_false(is_cut(idle, ends[1]));
    http_peers_sweep(&all, 151001);
    assert_true(is_cut(idle, ends[1]));
    http_peers_sweep(&all, 86400000);
    assert_false(is_cut(busy, ends[4]));
    finish(&all);
}

static void test_long_body(void **state)
{
    struct http_peers all = {0};
    struct http_peer *p = peer_add(&all, 0);
    http_peer_begins(&all, p, 0);
    for (uint64_t s = 1; s <= 300; s++) {
        http_peer_sent(&all, p, 33 << 10, s * 1000);
        http_peers_sweep(&all, s * 1000);
    }
    assert_false(is_cut(p, ends[0]));
    http_peer_in_hand(&all, p, 301000); /* who sends it is looked up, for long */
    http_peers_sweep(&all, 401000);
    http_peer_goes_on(&all, p, 401000);
    http_peers_sweep(&all, 416000);
    assert_false(is_cut(p, ends[0]));
    http_peers_sweep(&all, 416001);
    assert_true(is_cut(p, ends[0]));
    finish(&all);
}

static void test_room(void **state)
{
    struct http_peers all = {.room = 4};
    struct http_peer *busy = peer_add(&all, 1), *idle = peer_add(&all, 2),
                     *reading = peer_add(&all, 3), *fresh = peer_add(&all, 4);
    http_peer_in_hand(&all, busy, 5);
    http_peer_idle(&all, idle, 7);
    http_peer_begins(&all, reading, 5);
    http_peer_sent(&all, reading, 100, 8);
    peer_add(&all, 9); /* one more than there is room for: the longest silent goes */
    assert_true(is_cut(fresh, ends[3]));
    peer_add(&all, 9);
    assert_true(is_cut(idle, ends[1]));
    peer_add(&all, 9);
    assert_true(is_cut(reading, ends[2]));
    http_peer_begins(&all, reading, 10); /* what came before its end changes nothing */
    assert_true(reading->state == PEER_CUT);
    assert_false(is_cut(busy, ends[0]));
    finish(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_long_body),
                                       cmocka_unit_test(test_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
