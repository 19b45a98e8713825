/* What /proc says of a host: the usual, and what it never should. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "loop_profile.h"

static void the_usual(void **state)
{
    struct host_load r;
    host_load_parse("cpu  10 1 5 70 4 2 3 5 9 9\ncpu0 1 1 1 1\n",
                    "MemTotal:  2000 kB\nMemAvailable:    1000 kB\n",
                    "Inter-| Receive\n face |bytes\n    lo: 5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n"
                    "  eth0: 100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n"
                    " wlan0:7 1 0 0 0 0 0 0 8 1 0 0 0 0 0 0\n",
                    " 253 0 vda 3 0 8 0 5 0 16 0 0 0 0\n 253 1 vda1 3 0 8 0 5 0 16 0 0 0 0\n"
                    " 259 0 nvme0n1 1 0 2 0 1 0 2 0\n 259 1 nvme0n1p1 1 0 2 0 1 0 2 0\n"
                    "   7 0 loop0 9 0 9 0 9 0 9 0\n",
                    &r);
    assert_true(r.cpu_all == 100 && r.cpu_busy == 26);
    assert_true(r.free_bytes == 1024000);
    assert_true(r.net_received == 107 && r.net_sent == 208);
    assert_true(r.disk_ops == 10 && r.disk_read == 5120 && r.disk_written == 9216);
}

static void what_cannot_be_read_is_zero(void **state)
{
    struct host_load r;
    host_load_parse("", "", "", "", &r);
    assert_true(r.cpu_all == 0 && r.free_bytes == 0 && r.net_sent == 0 && r.disk_ops == 0);
    host_load_parse("cpu x", "MemAvailable: many", "a: b\n:\n", "1 2 vda x\n\n\n", &r);
    assert_true(r.cpu_all == 0 && r.free_bytes == 0 && r.net_sent == 0 && r.disk_ops == 0);
    host_load_read(&r);
    assert_true(r.cpu_all > 0 && r.free_bytes > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_usual),
                                       cmocka_unit_test(what_cannot_be_read_is_zero)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
