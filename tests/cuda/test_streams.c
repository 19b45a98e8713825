/* Streams of the emulated device: what an event orders is ordered, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

#include "backend.h"
#include "mem.h"

enum { STREAMS = 2, FLOATS = 64, BYTES = FLOATS * 4 };

/* A device, two of its streams, memory on it, which is NaN, and an event. */
struct rig {
    const struct det_backend *b;
    struct det_device *device;
    struct det_stream *s[STREAMS];
    struct det_event *event;
    void *from, *to;
    float host[FLOATS];
};

static void must(int rc, const struct det_err *err)
{
    if (rc < 0)
        fail_msg("%s", err->text);
}

static void begin_on(struct rig *r, const char *device)
{
    struct det_err err;
    int index;
    must(det_backend_find(device, &r->b, &index, &err), &err);
    must(r->b->device_open(index, &(struct det_device_options){1}, &r->device, &err), &err);
    for (int i = 0; i < STREAMS; i++)
        must(r->b->stream_create(r->device, &r->s[i], &err), &err);
    must(r->b->event_create(r->device, &r->event, &err), &err);
    must(r->b->mem_alloc(r->device, BYTES, &r->from, &err), &err);
    must(r->b->mem_alloc(r->device, BYTES, &r->to, &err), &err);
}

static void begin(struct rig *r, const char *order)
{
    setenv("EMULATED_ORDER", order, 1);
    begin_on(r, "cuda");
}

static void finish(struct rig *r)
{
    for (int i = 0; i < STREAMS; i++)
        r->b->stream_destroy(r->s[i]);
    r->b->event_destroy(r->event);
    r->b->mem_free(r->device, r->from, BYTES);
    r->b->mem_free(r->device, r->to, BYTES);
    r->b->device_close(r->device);
    unsetenv("EMULATED_ORDER");
}

static void sync(struct rig *r, int stream)
{
    struct det_err err;
    must(r->b->stream_sync(r->s[stream], &err), &err);
}

static void copy(struct rig *r, int stream, void *dst, const void *src, enum det_copy_kind kind)
{
    struct det_err err;
    must(r->b->copy(r->s[stream], dst, src, BYTES, kind, &err), &err);
}

/* The first stream has `value` come to r->from. */
static void send(struct rig *r, float value)
{
    float v[FLOATS];
    for (int i = 0; i < FLOATS; i++)
        v[i] = value;
    copy(r, 0, r->from, v, DET_COPY_TO_DEVICE);
}

static void record(struct rig *r)
{
    struct det_err err;
    must(r->b->event_record(r->event, r->s[0], &err), &err);
}

static void await(struct rig *r)
{
    struct det_err err;
    must(r->b->event_wait(r->s[1], r->event, &err), &err);
}

/* What the second stream finds in r->from. */
static float found(struct rig *r)
{
    copy(r, 1, r->to, r->from, DET_COPY_ON_DEVICE);
    copy(r, 1, r->host, r->to, DET_COPY_TO_HOST);
    sync(r, 1);
    return r->host[FLOATS - 1];
}

static void test_without_an_event_either_may_come_first(void **state)
{
    struct rig r;
    begin(&r, "late");
    send(&r, 1);
    assert_true(isnan(found(&r)));
    finish(&r);
    begin(&r, "early");
    send(&r, 1);
    assert_true(found(&r) == 1);
    finish(&r);
}

/* With the device's memory NaN until the first stream is done, and never more than recorded. */
static void test_an_event_orders_two_streams(void **state)
{
    struct rig r;
    begin(&r, "late");
    send(&r, 1);
    record(&r);
    await(&r);
    send(&r, 2);
    assert_true(found(&r) == 1);
    finish(&r);
}

static void test_an_event_that_was_not_recorded_holds_nothing(void **state)
{
    struct rig r;
    begin(&r, "late");
    send(&r, 1);
    await(&r);
    record(&r); /* too late */
    assert_true(isnan(found(&r)));
    finish(&r);
}

static void test_what_goes_to_the_host_comes_with_its_own_stream(void **state)
{
    static const char *const orders[] = {"early", "late"};
    for (int i = 0; i < 2; i++) {
        struct rig r;
        begin(&r, orders[i]);
        send(&r, 1);
        r.host[0] = 7;
        copy(&r, 0, r.host, r.from, DET_COPY_TO_HOST);
        sync(&r, 1);
        assert_true(r.host[0] == 7);
        sync(&r, 0);
        assert_true(r.host[0] == 1);
        finish(&r);
    }
}

/* The thread has another device in hand when it makes the event. */
static void test_an_event_is_its_devices(void **state)
{
    struct rig one, two;
    struct det_err err;
    setenv("EMULATED_DEVICES", "2", 1);
    begin_on(&one, "cuda:0");
    begin_on(&two, "cuda:1");
    one.b->event_destroy(one.event);
    must(one.b->event_create(one.device, &one.event, &err), &err);
    record(&one);
    finish(&one);
    finish(&two);
    unsetenv("EMULATED_DEVICES");
}

/* A copy takes a place of pinned memory, and there are fewer places than copies. */
static void test_a_place_is_not_filled_before_it_was_sent(void **state)
{
    enum { COPIES = 100 };
    struct rig r;
    struct det_err err;
    void *all;
    begin(&r, "late");
    must(r.b->mem_alloc(r.device, COPIES * BYTES, &all, &err), &err);
    for (int i = 0; i < COPIES; i++) {
        for (int k = 0; k < FLOATS; k++)
            r.host[k] = (float)i;
        copy(&r, 0, (char *)all + i * BYTES, r.host, DET_COPY_TO_DEVICE);
    }
    for (int i = 0; i < COPIES; i++) {
        copy(&r, 0, r.host, (char *)all + i * BYTES, DET_COPY_TO_HOST);
        sync(&r, 0);
        assert_true(r.host[0] == (float)i && r.host[FLOATS - 1] == (float)i);
    }
    r.b->mem_free(r.device, all, COPIES * BYTES);
    finish(&r);
}

/* ---- large copies, which have a stream of their own ---- */

enum { LARGE = 300 << 10, LARGE_FLOATS = LARGE / 4 };

static void send_large(struct rig *r, void *to, float *v, float value)
{
    struct det_err err;
    for (int i = 0; i < LARGE_FLOATS; i++)
        v[i] = value;
    must(r->b->copy(r->s[0], to, v, LARGE, DET_COPY_TO_DEVICE, &err), &err);
}

static void assert_large(struct rig *r, const void *from, float *v, float value)
{
    struct det_err err;
    must(r->b->copy(r->s[0], v, from, LARGE, DET_COPY_TO_HOST, &err), &err);
    sync(r, 0);
    for (int i = 0; i < LARGE_FLOATS; i++)
        assert_true(v[i] == value);
}

/* More of them than the ring has room for. */
static void many_copies(const char *order, const char *memory)
{
    enum { COPIES = 12 };
    static float v[LARGE_FLOATS];
    struct rig r;
    struct det_err err;
    void *all;
    begin(&r, order);
    must(r.b->mem_alloc(r.device, (size_t)COPIES * LARGE, &all, &err), &err);
    setenv("EMULATED_MEMORY", memory, 1);
    for (int i = 0; i < COPIES; i++)
        send_large(&r, (char *)all + i * LARGE, v, (float)i);
    for (int i = 0; i < COPIES; i++)
        assert_large(&r, (char *)all + i * LARGE, v, (float)i);
    unsetenv("EMULATED_MEMORY");
    r.b->mem_free(r.device, all, (size_t)COPIES * LARGE);
    finish(&r);
}

static void test_copies_do_not_mix(void **state)
{
    many_copies("early", "100000000");
    many_copies("late", "100000000");
}

static void test_copies_without_memory_beside_them(void **state)
{
    many_copies("early", "1"); /* none is left */
    many_copies("late", "1");
}

/* The memory that a batch comes to may be the pool's, and in use until the step before is done. */
static void test_a_copy_does_not_overtake_what_is_there(void **state)
{
    static float v[LARGE_FLOATS];
    struct rig r;
    struct det_err err;
    void *batch, *result;
    begin(&r, "early");
    must(r.b->mem_alloc(r.device, LARGE, &batch, &err), &err);
    must(r.b->mem_alloc(r.device, LARGE, &result, &err), &err);
    send_large(&r, batch, v, 1);
    must(r.b->copy(r.s[0], result, batch, LARGE, DET_COPY_ON_DEVICE, &err), &err);
    send_large(&r, batch, v, 2);
    sync(&r, 1);
    assert_large(&r, result, v, 1);
    assert_large(&r, batch, v, 2);
    r.b->mem_free(r.device, batch, LARGE);
    r.b->mem_free(r.device, result, LARGE);
    finish(&r);
}

/* Copies go the direct way while there is no memory, and have their ring again afterwards. */
static void test_memory_beside_copies_is_given_back(void **state)
{
    enum { RING = 1 << 20 };
    static float v[LARGE_FLOATS];
    struct rig r;
    struct det_err err;
    void *batch, *more;
    begin(&r, "late");
    must(r.b->mem_alloc(r.device, LARGE, &batch, &err), &err);
    assert_int_equal(r.b->mem_trim(r.device), 0);
    must(r.b->mem_alloc(r.device, LARGE, &more, &err), &err);
    send_large(&r, batch, v, 1);
    setenv("EMULATED_MEMORY", "1", 1);
    assert_int_equal(r.b->mem_trim(r.device), RING);
    assert_large(&r, batch, v, 1);
    send_large(&r, batch, v, 2);
    assert_large(&r, batch, v, 2);
    assert_int_equal(r.b->mem_trim(r.device), 0);
    unsetenv("EMULATED_MEMORY");
    send_large(&r, batch, v, 3); /* nobody has freed anything: it is not tried again */
    assert_large(&r, batch, v, 3);
    assert_int_equal(r.b->mem_trim(r.device), 0);
    r.b->mem_free(r.device, more, LARGE);
    send_large(&r, batch, v, 4);
    assert_large(&r, batch, v, 4);
    assert_int_equal(r.b->mem_trim(r.device), RING);
    r.b->mem_free(r.device, batch, LARGE);
    finish(&r);
}

static void *of_module(const char *symbol)
{
    det_cleanup(freep) char *path =
        det_asprintf("%s/det_backend_cuda.so", getenv("DET_BACKEND_DIR"));
    void *module = dlopen(path, RTLD_NOW | RTLD_NOLOAD), *ret = dlsym(module, symbol);
    assert_non_null(ret);
    return ret;
}

/* All that the host asked for of the step is still to be done. */
static void test_the_next_batch_arrives_during_the_step(void **state)
{
    static float v[LARGE_FLOATS];
    void (*run_others)(void *but);
    struct rig r;
    struct det_err err;
    void *batch;
    begin(&r, "late");
    long long *arrived = of_module("emulated_arrived"), before = *arrived;
    *(void **)&run_others = of_module("emulated_run_others");
    must(r.b->mem_alloc(r.device, LARGE, &batch, &err), &err);
    send_large(&r, batch, v, 1);
    send_large(&r, batch, v, 2);
    run_others(r.b->stream_native(r.s[0]));
    assert_true(*arrived - before == 2 * LARGE);
    assert_large(&r, batch, v, 2);
    r.b->mem_free(r.device, batch, LARGE);
    finish(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_an_event_either_may_come_first),
        cmocka_unit_test(test_an_event_orders_two_streams),
        cmocka_unit_test(test_an_event_that_was_not_recorded_holds_nothing),
        cmocka_unit_test(test_what_goes_to_the_host_comes_with_its_own_stream),
        cmocka_unit_test(test_an_event_is_its_devices),
        cmocka_unit_test(test_a_place_is_not_filled_before_it_was_sent),
        cmocka_unit_test(test_copies_do_not_mix),
        cmocka_unit_test(test_copies_without_memory_beside_them),
        cmocka_unit_test(test_memory_beside_copies_is_given_back),
        cmocka_unit_test(test_a_copy_does_not_overtake_what_is_there),
        cmocka_unit_test(test_the_next_batch_arrives_during_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
