#include "wide.h"

#include "mem.h"
#include <stdbool.h>
#include <stdint.h>

struct range {
    uint32_t first, last;
};

/* What a terminal draws two columns wide: blocks of Unicode, and of blocks of mostly narrow
 * characters the single ones. */
static const struct range wides[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},
    {0x23f0, 0x23f0},   {0x23f3, 0x23f3},   {0x25fd, 0x25fe},   {0x2614, 0x2615},
    {0x2648, 0x2653},   {0x267f, 0x267f},   {0x2693, 0x2693},   {0x26a1, 0x26a1},
    {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},   {0x26ce, 0x26ce},
    {0x26d4, 0x26d4},   {0x26ea, 0x26ea},   {0x26f2, 0x26f3},   {0x26f5, 0x26f5},
    {0x26fa, 0x26fa},   {0x26fd, 0x26fd},   {0x2705, 0x2705},   {0x270a, 0x270b},
    {0x2728, 0x2728},   {0x274c, 0x274c},   {0x274e, 0x274e},   {0x2753, 0x2755},
    {0x2757, 0x2757},   {0x2795, 0x2797},   {0x27b0, 0x27b0},   {0x27bf, 0x27bf},
    {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},   {0x2b55, 0x2b55},   {0x2e80, 0x303e},
    {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xa000, 0xa4cf},
    {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
    {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf},
    {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a}, {0x1f200, 0x1f265}, {0x1f300, 0x1f64f},
    {0x1f680, 0x1f6ff}, {0x1f7e0, 0x1f7eb}, {0x1f7f0, 0x1f7f0}, {0x1f900, 0x1f9ff},
    {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
};
/* Marks over the character before, joiners, variants. */
static const struct range marks[] = {
    {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},
    {0x64b, 0x65f},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f},
    {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
};

static bool is_within(const struct range *r, size_t n, uint32_t code)
{
    for (size_t i = 0; i < n; i++)
        if (code >= r[i].first && code <= r[i].last)
            return true;
    return false;
}

/* Bytes that follow the first of a character. */
static int more_bytes(unsigned char first)
{
    return first < 0xc2 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : first < 0xf5 ? 3 : 0;
}

size_t wide_char(const char *s, int *ret_columns)
{
    const unsigned char *p = (const unsigned char *)s;
    int more = more_bytes(p[0]);
    uint32_t code = more ? p[0] & (0x3fU >> more) : p[0];
    *ret_columns = 1;
    for (int i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 1;
        code = code << 6 | (p[i] & 0x3fU);
    }
    if (is_within(marks, DET_ARRAY_LEN(marks), code))
        *ret_columns = 0;
    else if (is_within(wides, DET_ARRAY_LEN(wides), code))
        *ret_columns = 2;
    return (size_t)more + 1;
}

size_t wide_columns(const char *s)
{
    size_t n = 0;
    for (int columns; *s; n += (size_t)columns)
        s += wide_char(s, &columns);
    return n;
}

size_t wide_cut(const char *s, int columns)
{
    const char *p = s;
    while (*p && *p != '\n') {
        int one;
        size_t n = wide_char(p, &one);
        if (one > columns)
            break;
        columns -= one;
        p += n;
    }
    return (size_t)(p - s);
}
