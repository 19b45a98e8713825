#include "uuid.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char hex_digits[] = "0123456789abcdef";

static void kernel_bytes(uint8_t *p, size_t n)
{
    while (n) {
        ssize_t got = getrandom(p, n, 0);
        if (got <= 0)
            continue; /* only a signal can interrupt it */
        p += got;
        n -= (size_t)got;
    }
}

void uuid_from_bytes(const uint8_t b[16], char out[UUID_STR_MAX])
{
    char *o = out;
    for (int i = 0; i < 16; i++) {
        uint8_t v = b[i];
        if (i == 6)
            v = (uint8_t)((v & 0x0f) | 0x40);
        if (i == 8)
            v = (uint8_t)((v & 0x3f) | 0x80);
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *o++ = '-';
        *o++ = hex_digits[v >> 4];
        *o++ = hex_digits[v & 15];
    }
    *o = '\0';
}

void uuid_random(char out[UUID_STR_MAX])
{
    uint8_t b[16];
    kernel_bytes(b, sizeof b);
    uuid_from_bytes(b, out);
}

bool uuid_is_valid(const char *s)
{
    if (strlen(s) != UUID_STR_MAX - 1)
        return false;
    for (int i = 0; i < UUID_STR_MAX - 1; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? s[i] != '-' : !isxdigit((unsigned char)s[i]))
            return false;
    }
    return true;
}

void random_hex(char *out, size_t n)
{
    uint8_t b[32];
    while (n) {
        size_t some = n < sizeof b ? n : sizeof b;
        kernel_bytes(b, some);
        for (size_t i = 0; i < some; i++) {
            *out++ = hex_digits[b[i] >> 4];
            *out++ = hex_digits[b[i] & 15];
        }
        n -= some;
    }
    *out = '\0';
}
