/* Reading event files back: framing and checksums, and of each message its step and tags. */
#include "tfevents.h"

#include <stdbool.h>
#include <string.h>

struct in {
    const uint8_t *p;
    size_t n;
};

static uint64_t read_le(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static bool take_bytes(struct in *in, uint64_t n, struct in *ret)
{
    if (n > in->n)
        return false;
    *ret = (struct in){in->p, (size_t)n};
    in->p += n;
    in->n -= (size_t)n;
    return true;
}

static bool read_varint(struct in *in, uint64_t *ret)
{
    struct in byte;
    *ret = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (!take_bytes(in, 1, &byte))
            return false;
        *ret |= (uint64_t)(*byte.p & 0x7f) << shift;
        if (!(*byte.p & 0x80))
            return true;
    }
    return false;
}

/* One field: a number in *ret_number, or bytes in *ret_bytes. */
static bool read_field(struct in *in, unsigned *ret_key, uint64_t *ret_number, struct in *ret_bytes)
{
    uint64_t key, n;
    if (!read_varint(in, &key) || key > UINT32_MAX)
        return false;
    *ret_key = (unsigned)key;
    *ret_bytes = (struct in){0};
    switch (key & 7) {
    case 0: return read_varint(in, ret_number);
    case 1: return take_bytes(in, 8, ret_bytes);
    case 2: return read_varint(in, &n) && take_bytes(in, n, ret_bytes);
    case 5: return take_bytes(in, 4, ret_bytes);
    default: return false;
    }
}

enum { KEY_STEP = 2 << 3, KEY_SUMMARY = 5 << 3 | 2, KEY_VALUE = 1 << 3 | 2, KEY_TAG = 1 << 3 | 2 };

struct tags {
    void (*fn)(void *arg, const char *tag, size_t tag_bytes, int64_t step);
    void *arg;
    int64_t step;
};

static bool read_value(struct in in, const struct tags *t)
{
    unsigned key;
    uint64_t number;
    struct in bytes;
    while (in.n > 0) {
        if (!read_field(&in, &key, &number, &bytes))
            return false;
        if (key == KEY_TAG)
            t->fn(t->arg, (const char *)bytes.p, bytes.n, t->step);
    }
    return true;
}

static bool read_summary(struct in in, const struct tags *t)
{
    unsigned key;
    uint64_t number;
    struct in bytes;
    while (in.n > 0)
        if (!read_field(&in, &key, &number, &bytes) || (key == KEY_VALUE && !read_value(bytes, t)))
            return false;
    return true;
}

static bool read_event(struct in in, struct tags *t)
{
    unsigned key;
    uint64_t number;
    struct in bytes, values = {0};
    t->step = 0;
    while (in.n > 0) {
        if (!read_field(&in, &key, &number, &bytes))
            return false;
        if (key == KEY_STEP)
            t->step = (int64_t)number;
        else if (key == KEY_SUMMARY)
            values = bytes;
    }
    return read_summary(values, t);
}

int tfevents_read(const void *data, size_t bytes,
                  void (*fn)(void *arg, const char *tag, size_t tag_bytes, int64_t step), void *arg,
                  struct det_err *err)
{
    struct in in = {data, bytes}, head, body, sum;
    struct tags t = {.fn = fn, .arg = arg};
    while (take_bytes(&in, 12, &head)) {
        size_t at = (size_t)(head.p - (const uint8_t *)data);
        if (read_le(head.p + 8, 4) != tfevents_masked_crc(head.p, 8))
            return det_fail(err, DET_ECORRUPT, "record at %zu: wrong checksum of its length", at);
        if (!take_bytes(&in, read_le(head.p, 8), &body) || !take_bytes(&in, 4, &sum))
            break;
        if (read_le(sum.p, 4) != tfevents_masked_crc(body.p, body.n))
            return det_fail(err, DET_ECORRUPT, "record at %zu: wrong checksum", at);
        if (!read_event(body, &t))
            return det_fail(err, DET_ECORRUPT, "record at %zu: not an event", at);
    }
    return 0;
}
