#include "b64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void b64_encode(struct buf *out, const void *p, size_t n)
{
    const uint8_t *b = p;
    buf_reserve(out, n / 3 * 4 + 4);
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        uint32_t v = (uint32_t)b[i] << 16;
        if (left > 1)
            v |= (uint32_t)b[i + 1] << 8;
        if (left > 2)
            v |= b[i + 2];
        char q[4] = {digits[v >> 18], digits[v >> 12 & 63], left > 1 ? digits[v >> 6 & 63] : '=',
                     left > 2 ? digits[v & 63] : '='};
        buf_add(out, q, 4);
    }
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes the quad at s; returns its bytes (1..3), or 0 if a digit is bad. */
static size_t decode_quad(const char *s, size_t pads, uint8_t ret[3])
{
    uint32_t v = 0;
    for (size_t i = 0; i < 4; i++) {
        int d = i >= 4 - pads ? 0 : value_of(s[i]);
        if (d < 0)
            return 0;
        v = v << 6 | (uint32_t)d;
    }
    ret[0] = (uint8_t)(v >> 16), ret[1] = (uint8_t)(v >> 8), ret[2] = (uint8_t)v;
    return 3 - pads;
}

int b64_decode(struct buf *out, const char *s, size_t n, struct det_err *err)
{
    size_t start = out->len;
    if (n % 4)
        return det_fail(err, DET_EINVAL, "base64: length %zu is not a multiple of 4", n);
    buf_reserve(out, n / 4 * 3);
    for (size_t i = 0; i < n; i += 4) {
        size_t pads = 0;
        if (i + 4 == n && s[i + 3] == '=')
            pads = s[i + 2] == '=' ? 2 : 1;
        uint8_t three[3];
        size_t got = decode_quad(s + i, pads, three);
        if (!got) {
            buf_reserve(out, 0);
            out->len = start;
            out->p[start] = '\0';
            return det_fail(err, DET_EINVAL, "base64: bad digit near byte %zu", i);
        }
        buf_add(out, three, got);
    }
    return 0;
}
