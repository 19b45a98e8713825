#ifndef BASE_UUID_H
#define BASE_UUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UUID_STR_MAX 37
void uuid_random(char out[UUID_STR_MAX]);                          /* v4 from the kernel */
void uuid_from_bytes(const uint8_t b[16], char out[UUID_STR_MAX]); /* v4 bits are forced */
bool uuid_is_valid(const char *s);                                 /* 8-4-4-4-12 hex */
/* n random bytes of the kernel as 2n hex digits and NUL: tokens, passwords. */
void random_hex(char *out, size_t n);

#endif
