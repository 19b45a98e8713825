#include "tfevents.h"

#include "hash.h"
#include <string.h>

uint32_t tfevents_masked_crc(const void *p, size_t n)
{
    uint32_t c = crc32c(0, p, n);
    return ((c >> 15) | (c << 17)) + 0xa282ead8u;
}

/* ---- protobuf ---- */

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static void put_le(char *p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        p[i] = (char)(v >> (8 * i));
}

static void add_le(struct buf *b, uint64_t v, int bytes)
{
    char le[8];
    put_le(le, v, bytes);
    buf_add(b, le, (size_t)bytes);
}

static void add_varint(struct buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        buf_add_ch(b, (char)(v | 0x80));
    buf_add_ch(b, (char)v);
}

static size_t varint_bytes(uint64_t v)
{
    size_t n = 1;
    while (v >>= 7)
        n++;
    return n;
}

static void add_key(struct buf *b, int field, enum wire type)
{
    add_varint(b, (uint64_t)field << 3 | type);
}

static void add_int(struct buf *b, int field, int64_t v)
{
    add_key(b, field, VARINT);
    add_varint(b, (uint64_t)v);
}

static void add_double_bytes(struct buf *b, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    add_le(b, bits, 8);
}

static void add_double(struct buf *b, int field, double v)
{
    add_key(b, field, FIXED64);
    add_double_bytes(b, v);
}

static void add_float(struct buf *b, int field, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    add_key(b, field, FIXED32);
    add_le(b, bits, 4);
}

static void add_bytes(struct buf *b, int field, const void *p, size_t n)
{
    add_key(b, field, BYTES);
    add_varint(b, n);
    buf_add(b, p, n);
}

static void add_doubles(struct buf *b, int field, const double *v, size_t n)
{
    add_key(b, field, BYTES); /* packed */
    add_varint(b, 8 * n);
    for (size_t i = 0; i < n; i++)
        add_double_bytes(b, v[i]);
}

static void add_message(struct buf *b, int field, struct buf *message)
{
    add_bytes(b, field, buf_str(message), message->len);
    buf_finish(message);
}

/* ---- records ---- */

/* A record is its length, that length's checksum, the data, their checksum: the first two are
 * filled in at its end. Returns where the data begin. */
static size_t begin_record(struct buf *out)
{
    add_le(out, 0, 8);
    add_le(out, 0, 4);
    return out->len;
}

static void end_record(struct buf *out, size_t data)
{
    size_t n = out->len - data;
    char *head = out->p + data - 12;
    put_le(head, n, 8);
    put_le(head + 8, tfevents_masked_crc(head, 8), 4);
    add_le(out, tfevents_masked_crc(out->p + data, n), 4);
}

void tfevents_version(struct buf *out, double wall_s)
{
    static const char version[] = "brain.Event:2";
    size_t data = begin_record(out);
    add_double(out, 1, wall_s);
    add_bytes(out, 3, version, sizeof version - 1);
    end_record(out, data);
}

/* Event{wall_time, step, summary{value}}, whose `bytes` bytes are to follow. */
static size_t begin_event(struct buf *out, const struct tfevents_value *v, size_t bytes)
{
    size_t data = begin_record(out);
    add_double(out, 1, v->wall_s);
    add_int(out, 2, v->step);
    add_key(out, 5, BYTES);
    add_varint(out, 1 + varint_bytes(bytes) + bytes);
    add_key(out, 1, BYTES);
    add_varint(out, bytes);
    return data;
}

/* Takes `value`. */
static void add_event(struct buf *out, const struct tfevents_value *v, struct buf *value)
{
    size_t data = begin_event(out, v, value->len);
    buf_add(out, buf_str(value), value->len);
    buf_finish(value);
    end_record(out, data);
}

static void add_tag(struct buf *value, const char *tag)
{
    add_bytes(value, 1, tag, strlen(tag));
}

void tfevents_scalar(struct buf *out, const struct tfevents_value *v, double value)
{
    size_t tag = strlen(v->tag);
    size_t data = begin_event(out, v, 1 + varint_bytes(tag) + tag + 1 + sizeof(float));
    add_bytes(out, 1, v->tag, tag);
    add_float(out, 2, (float)value);
    end_record(out, data);
}

void tfevents_histogram(struct buf *out, const struct tfevents_value *v,
                        const struct tfevents_histogram *h)
{
    struct buf b = BUF_INIT, histo = BUF_INIT;
    const double head[] = {h->min, h->max, h->num, h->sum, h->sum_squares};
    for (int i = 0; i < 5; i++)
        add_double(&histo, i + 1, head[i]);
    add_doubles(&histo, 6, h->limits, h->n);
    add_doubles(&histo, 7, h->counts, h->n);
    add_tag(&b, v->tag);
    add_message(&b, 5, &histo);
    add_event(out, v, &b);
}

void tfevents_image(struct buf *out, const struct tfevents_value *v,
                    const struct tfevents_image *image)
{
    struct buf b = BUF_INIT, m = BUF_INIT;
    add_int(&m, 1, image->height);
    add_int(&m, 2, image->width);
    add_int(&m, 3, image->channels);
    add_bytes(&m, 4, image->png, image->bytes);
    add_tag(&b, v->tag);
    add_message(&b, 4, &m);
    add_event(out, v, &b);
}

/* TensorProto: one string. */
static void add_string_tensor(struct buf *value, const char *text)
{
    enum { DT_STRING = 7 };
    struct buf tensor = BUF_INIT, shape = BUF_INIT, dim = BUF_INIT;
    add_int(&dim, 1, 1);
    add_message(&shape, 2, &dim);
    add_int(&tensor, 1, DT_STRING);
    add_message(&tensor, 2, &shape);
    add_bytes(&tensor, 8, text, strlen(text));
    add_message(value, 8, &tensor);
}

void tfevents_text(struct buf *out, const struct tfevents_value *v, const char *text)
{
    struct buf b = BUF_INIT, tag = BUF_INIT, metadata = BUF_INIT, plugin = BUF_INIT;
    buf_addf(&tag, "%s/text_summary", v->tag);
    add_tag(&b, buf_str(&tag));
    add_string_tensor(&b, text);
    add_bytes(&plugin, 1, "text", 4);
    add_message(&metadata, 1, &plugin);
    add_message(&b, 9, &metadata);
    add_event(out, v, &b);
    buf_finish(&tag);
}
