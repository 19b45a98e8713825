#include "names.h"

#include "hash.h"
#include <stdlib.h>
#include <string.h>

uint64_t name_hash(const char *name)
{
    char hex[HASH_HEX_MAX];
    hash_bytes(HASH_MD5, name, strlen(name), hex);
    return strtoull(hex + 16, NULL, 16);
}

static int digit_of_hex(char hex)
{
    return hex <= '9' ? hex - '0' : hex - 'a' + 10;
}

static void uuid_of(enum hash_kind kind, const char *name, char out[UUID_STR_MAX])
{
    char hex[HASH_HEX_MAX];
    uint8_t bytes[16];
    hash_bytes(kind, name, strlen(name), hex);
    for (int i = 0; i < 16; i++)
        bytes[i] = (uint8_t)(digit_of_hex(hex[2 * i]) << 4 | digit_of_hex(hex[2 * i + 1]));
    uuid_from_bytes(bytes, out);
}

void name_uuid(const char *name, char out[UUID_STR_MAX])
{
    uuid_of(HASH_SHA256, name, out);
}

void name_uuid_quick(const char *name, char out[UUID_STR_MAX])
{
    uuid_of(HASH_XXH128, name, out);
}
