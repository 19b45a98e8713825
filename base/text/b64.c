#include "b64.h"

#include <string.h>

#define BAD UINT32_MAX

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* A digit's value plus one; 0: no digit. */
static const uint8_t values[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};

void b64_encode(struct buf *out, const void *p, size_t n)
{
    const uint8_t *b = p;
    buf_reserve(out, n / 3 * 4 + 4);
    char *to = out->p + out->len;
    for (size_t i = 0; i < n; i += 3, to += 4) {
        size_t left = n - i;
        uint32_t v = (uint32_t)b[i] << 16;
        if (left > 1)
            v |= (uint32_t)b[i + 1] << 8;
        if (left > 2)
            v |= b[i + 2];
        to[0] = digits[v >> 18];
        to[1] = digits[v >> 12 & 63];
        to[2] = left > 1 ? digits[v >> 6 & 63] : '=';
        to[3] = left > 2 ? digits[v & 63] : '=';
    }
    *to = '\0';
    out->len = (size_t)(to - out->p);
}

/* The 24 bits of four digits, or BAD. */
static uint32_t quad_bits(const char s[4])
{
    uint32_t a = values[(uint8_t)s[0]], b = values[(uint8_t)s[1]], c = values[(uint8_t)s[2]],
             d = values[(uint8_t)s[3]];
    return a && b && c && d ? (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6 | (d - 1) : BAD;
}

/* Decodes n / 4 quads without padding to `to`; returns the place of the first that is bad, or n. */
static size_t decode_quads(const char *s, size_t n, char *to)
{
    for (size_t i = 0; i < n; i += 4, to += 3) {
        uint32_t v = quad_bits(s + i);
        if (v == BAD)
            return i;
        to[0] = (char)(v >> 16), to[1] = (char)(v >> 8), to[2] = (char)v;
    }
    return n;
}

int b64_decode(struct buf *out, const char *s, size_t n, struct det_err *err)
{
    if (n % 4)
        return det_fail(err, DET_EINVAL, "base64: length %zu is not a multiple of 4", n);
    size_t pads = n == 0 || s[n - 1] != '=' ? 0 : s[n - 2] == '=' ? 2 : 1;
    size_t whole = pads ? n - 4 : n, len = n / 4 * 3;
    buf_reserve(out, len);
    char *to = out->p + out->len;
    size_t at = decode_quads(s, whole, to);
    if (pads && at == whole) {
        char last[4] = {s[whole], s[whole + 1], pads == 1 ? s[whole + 2] : 'A', 'A'};
        at += decode_quads(last, 4, to + len - 3);
    }
    out->len += at == n ? len - pads : 0;
    out->p[out->len] = '\0';
    return at == n ? 0 : det_fail(err, DET_EINVAL, "base64: bad digit near byte %zu", at);
}
