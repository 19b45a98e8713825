/* What is told of GPUs now and then, by looks in between. */
#include "gpufigures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct gpufigures *f;

static int setup(void **state)
{
    f = gpufigures_create();
    return 0;
}

static int teardown(void **state)
{
    gpufigures_destroy(f);
    return 0;
}

static struct gpu_sight at(double percent)
{
    return (struct gpu_sight){.mem_total = 80,
                              .mem_used = 7,
                              .utilisation = percent,
                              .temperature_c = 55.4,
                              .power_w = 312.5,
                              .sm_mhz = 1980,
                              .mem_mhz = GPU_UNKNOWN};
}

static void look(int slot, double percent, bool has_task, uint64_t now_ms)
{
    struct gpu_sight s = at(percent);
    gpufigures_add(f, slot, &s, has_task, now_ms);
}

static void told(const char *text)
{
    JSON_OWN j = gpufigures_take(f);
    det_cleanup(freep) char *got = j ? json_text(j) : det_strdup("nothing");
    assert_string_equal(got, text);
}

static void the_mean_of_the_looks_is_told(void **state)
{
    told("nothing");
    look(2, 10, true, 1000);
    look(2, 50, true, 3000);
    told("[{\"slot\":2,\"util_percent\":30,\"mem_used\":7,\"mem_total\":80,\"temp_c\":55,"
         "\"power_mw\":312500,\"sm_mhz\":1980,\"idle_s\":0}]");
    told("nothing"); /* twice */
    struct gpu_sight s = at(90);
    s.lost = "off the bus";
    gpufigures_add(f, 2, &s, true, 5000);
    told("nothing");
    s = (struct gpu_sight){0};
    s.utilisation = s.temperature_c = s.power_w = s.sm_mhz = s.mem_mhz = GPU_UNKNOWN;
    gpufigures_add(f, 0, &s, true, 9000);
    told("[{\"slot\":0,\"idle_s\":0}]");
}

static int64_t idle_after(double percent, bool has_task, uint64_t now_ms)
{
    look(0, percent, has_task, now_ms);
    JSON_OWN j = gpufigures_take(f);
    return json_int(json_array_get(j, 0), "idle_s", -1);
}

static void one_that_a_task_has_and_does_not_use_is_idle(void **state)
{
    assert_int_equal(idle_after(0, false, 1000), 0);
    assert_int_equal(idle_after(0, false, 60000), 0); /* nobody's */
    assert_int_equal(idle_after(4, true, 62000), 2);
    assert_int_equal(idle_after(0, true, 662000), 602);
    assert_int_equal(idle_after(5, true, 664000), 0);
    assert_int_equal(idle_after(0, true, 700000), 36);
    assert_int_equal(idle_after(GPU_UNKNOWN, true, 701000), 0); /* who knows */
    assert_int_equal(idle_after(0, true, 711000), 10);
    assert_int_equal(idle_after(0, false, 712000), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_mean_of_the_looks_is_told),
        T(one_that_a_task_has_and_does_not_use_is_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
